"""Sections of Theorem 2 on repeated tokens: multi-head attention, one pseudo-head, and any layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
from einops import einsum, rearrange

from constructions.blocks import unit_like, zeros_like
from constructions.repeated_tokens import on_repeated_tokens, repeated, separating_layer
from constructions.rotations import turn_of
from constructions.score_functions import ScoreFunction, case, drawn, score_function
from iha_theory.attention import Mask, flat_causal, rotary, token_causal
from iha_theory.claims import Claim, Mutant, Relation, Section
from iha_theory.layer import IHA, forward, multi_head
from iha_theory.scalars import BALLS, POLYNOMIALS, RATIONALS, Domain


@dataclass(frozen=True)
class Repeated:
    """A layer at repeated tokens x or y (model). ``formal`` are the generators for the score function."""

    domain: Domain
    layer: IHA
    x: np.ndarray
    y: np.ndarray
    n: int
    formal: list[Any]

    @cached_property
    def score(self) -> ScoreFunction:
        return score_function(self.domain, self.layer.sizes["key"], self.formal)

    def at(self, x: np.ndarray, mask: Mask | None = None) -> np.ndarray:
        """The layer's output at the token x, repeated."""
        return forward(self.layer, repeated(x, self.n), self.score.attention(mask))


def seeing(chosen: tuple[int, ...]) -> Mask:
    """The mask by which every row sees the chosen tokens and no others."""
    return lambda n, j, n2, j2: np.isin(n2, chosen) & (n == n) & (j == j) & (j2 == j2)


@dataclass(frozen=True)
class MultiHead(Repeated):
    """Multi-head attention, its value weights once more, and an output projection (head value, out).

    ``code`` (n, n) are the positional columns of the input [1 x_0, code] that breaks the premise.
    """

    w_v: np.ndarray
    projection: np.ndarray
    code: np.ndarray

    @property
    def wanted(self) -> np.ndarray:
        """x^T W_V of every head, side by side, in every row."""
        values = einsum(self.x, self.w_v, "model, head model value -> head value")
        return repeated(rearrange(values, "head value -> (head value)"), self.n)

    @cached_property
    def over_seen_sets(self) -> np.ndarray:
        """The output for every set of tokens that the rows may see, one below the other.

        Since a row's output depends on what this row sees, these are the rows of all masks.
        """
        sets = [chosen for size in range(1, self.n + 1) for chosen in combinations(range(self.n), size)]
        return np.concatenate([self.at(self.x, seeing(chosen)) for chosen in sets])

    @cached_property
    def turned(self) -> np.ndarray:
        """The output with rotary positions and the causal mask."""
        attention = rotary(self.score.attention(token_causal), lambda n, j: n, turn_of(self.domain))
        return forward(self.layer, repeated(self.x, self.n), attention)

    def projected(self, x: np.ndarray) -> np.ndarray:
        return self.at(x) @ self.projection

    def coded(self, first: Any) -> np.ndarray:
        """The layer's output at [1 x_0, code]."""
        x = np.concatenate([np.full((self.n, 1), first, dtype=object), self.code], axis=1)
        return forward(self.layer, x, self.score.attention(None))


def _multi_head(*, domain: Domain, n: int, d: int, heads: int, key: int, value: int = 1,
                seed: int = 0) -> MultiHead:
    arrays, formal = drawn(domain, {"x": (d,), "y": (d,), "w_q": (heads, d, key), "w_k": (heads, d, key),
                                    "w_v": (heads, d, value), "projection": (heads * value, 2)},
                           scores=heads * (5 * n * n + 3), seed=seed)
    layer = multi_head(arrays["w_q"], arrays["w_k"], arrays["w_v"])
    return MultiHead(domain, layer, arrays["x"], arrays["y"], n, formal, arrays["w_v"], arrays["projection"],
                     unit_like(arrays["w_v"], n))


def _everywhere(weights: IHA, field: str, *names: str) -> dict[str, np.ndarray]:
    """All entries of the named weights, as free entries."""
    return {f"{field}.{name}": np.ones(weights.fields()[name].shape, dtype=bool) for name in names}


MULTI_HEAD = Section(
    title="multi-head attention on repeated tokens",
    instance=_multi_head,
    cases=(
        case(RATIONALS, n=2, d=3, key=2, heads=1, seed=27),
        case(POLYNOMIALS, n=2, d=3, key=2, heads=1),
        case(RATIONALS, n=3, d=4, key=2, value=5, heads=3),
        case(BALLS, n=3, d=4, key=2, value=5, heads=3),
    ),
    claims=(
        Claim("repeated", "every head outputs x^T W_V in every row, whatever set of tokens a row may see",
              Relation.EQUAL, lambda i: i.over_seen_sets, lambda i: np.concatenate([i.wanted] * (2**i.n - 1))),
        Claim("repeated-causal", "so it does with the causal mask", Relation.EQUAL,
              lambda i: i.at(i.x, token_causal), lambda i: i.wanted),
        Claim("repeated-rope", "so it does with the causal mask and rotary positions", Relation.EQUAL,
              lambda i: i.turned, lambda i: i.wanted),
        Claim("repeated-additive", "with any output projection the layer is additive: f(x + y) = f(x) + f(y)",
              Relation.EQUAL, lambda i: i.projected(i.x + i.y), lambda i: i.projected(i.x) + i.projected(i.y)),
        Claim("repeated-code", "with a positional code, at the input [1 x, I], it is not even affine: "
              "f(x + y) + f(0) is not f(x) + f(y)", Relation.DIFFERENT,
              lambda i: i.coded(i.x[0] + i.y[0]) + i.coded(i.x[0] * 0),
              lambda i: i.coded(i.x[0]) + i.coded(i.y[0])),
    ),
    free=lambda i: _everywhere(i.layer, "layer", "w_q", "w_k"),
    mutants=(
        Mutant("two pseudo-heads of opposite signs", lambda i: replace(i, layer=separating_layer(i.layer)),
               ("repeated", "repeated-causal", "repeated-rope", "repeated-additive")),
        Mutant("no positional code", lambda i: replace(i, code=zeros_like(i.code, i.code.shape)),
               ("repeated-code",)),
    ),
)


@dataclass(frozen=True)
class General(Repeated):
    """Any layer, and once more the weights from which its closed form is evaluated."""

    weights: IHA

    def closed_form(self, *, flat: bool = False) -> np.ndarray:
        return on_repeated_tokens(self.weights, self.x, self.n, self.score, flat=flat)

    @cached_property
    def values(self) -> np.ndarray:
        """sum_h R[o, h, 0] sum_m alpha^V[m, h, 0] x^T W_V^m in every row: what one pseudo-head outputs."""
        fields = self.weights.fields()
        heads = einsum(fields["collapse"], fields["alpha_v"], self.x, fields["w_v"],
                       "out head pseudo, source head pseudo, model, source model value -> out value")
        return repeated(np.asarray(heads).ravel(), self.n)


def _general(*, domain: Domain, n: int, d: int, heads: int, pseudo_heads: int, key: int = 1, value: int = 1,
             seed: int = 0) -> General:
    mixing = dict.fromkeys(("alpha_q", "alpha_k", "alpha_v", "collapse"), (heads, heads, pseudo_heads))
    arrays, formal = drawn(domain, {"w_q": (heads, d, key), "w_k": (heads, d, key), "w_v": (heads, d, value),
                                    **mixing, "x": (d,), "y": (d,)},
                           scores=heads * max(3, pseudo_heads**2), seed=seed)
    x, y = arrays.pop("x"), arrays.pop("y")
    return General(domain, IHA(**arrays), x, y, n, formal, IHA(**arrays))


GENERAL = Section(
    title="any layer on repeated tokens",
    instance=_general,
    cases=(
        case(RATIONALS, n=2, d=1, heads=2, pseudo_heads=2),
        case(POLYNOMIALS, n=3, d=1, heads=1, pseudo_heads=2),
        case(POLYNOMIALS, n=2, d=1, heads=1, pseudo_heads=3),
        case(RATIONALS, n=4, d=1, key=2, value=5, heads=2, pseudo_heads=3),
        case(BALLS, n=4, d=3, key=2, value=5, heads=2, pseudo_heads=3),
    ),
    claims=(
        Claim("terms", "without a mask each pseudo-head outputs an average of its P pseudo-values, the same at "
              "every token", Relation.EQUAL, lambda i: i.at(i.x), lambda i: i.closed_form()),
        Claim("terms-token", "so it does with the token-causal mask", Relation.EQUAL,
              lambda i: i.at(i.x, token_causal), lambda i: i.closed_form()),
        Claim("terms-flat", "with the flat causal mask, for pseudo-head j at token t, pseudo-key j' counts "
              "t + 1[j' <= j] times", Relation.EQUAL,
              lambda i: i.at(i.x, flat_causal), lambda i: i.closed_form(flat=True)),
    ),
)

SINGLE = Section(
    title="one pseudo-head on repeated tokens",
    instance=_general,
    cases=(
        case(RATIONALS, n=2, d=2, heads=2, pseudo_heads=1, seed=1),
        case(POLYNOMIALS, n=2, d=2, heads=2, pseudo_heads=1),
        case(BALLS, n=4, d=3, key=2, value=5, heads=3, pseudo_heads=1),
    ),
    claims=(
        Claim("single", "with P = 1, any alpha and any R, head o outputs sum_h R[o,h] sum_m alpha^V[m,h] x^T W_V^m",
              Relation.EQUAL, lambda i: i.at(i.x), lambda i: i.values),
        Claim("single-additive", "so it is additive: f(x + y) = f(x) + f(y)", Relation.EQUAL,
              lambda i: i.at(i.x + i.y), lambda i: i.at(i.x) + i.at(i.y)),
    ),
    free=lambda i: {**_everywhere(i.layer, "layer", "w_q", "w_k", "alpha_q", "alpha_k"),
                    **_everywhere(i.weights, "weights", "w_q", "w_k", "alpha_q", "alpha_k")},
    mutants=(
        Mutant("two pseudo-heads of opposite signs", lambda i: replace(
            i, layer=separating_layer(multi_head(i.layer.w_q, i.layer.w_k, i.layer.w_v))),
            ("single", "single-additive")),
    ),
)
