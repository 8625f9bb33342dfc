"""Sections of Theorem 2: multi-head attention is contained for every P, and where it is free to train."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from einops import einsum

from constructions.inclusions import free_inclusion, inclusion
from constructions.score_functions import ScoreFunction, case, drawn, score_function
from iha_theory.attention import Mask, flat_causal, token_causal, windowed
from iha_theory.claims import Claim, Mutant, Relation, Scope, Section
from iha_theory.count import counted
from iha_theory.layer import IHA, forward, multi_head
from iha_theory.scalars import BALLS, INTEGERS, POLYNOMIALS, RATIONALS, Domain


@dataclass(frozen=True)
class Inclusion:
    """A layer with P pseudo-heads, the multi-head attention that it should equal, and an input (n, D).

    ``formal`` are the generators for the score function; ``picked`` is the pseudo-head that R picks, None for the
    mean.
    """

    domain: Domain
    layer: IHA
    original: IHA
    x: np.ndarray
    formal: list[Any]
    pseudo_heads: int
    picked: int | None = None

    @cached_property
    def score(self) -> ScoreFunction:
        return score_function(self.domain, self.original.sizes["key"], self.formal)

    @property
    def is_last(self) -> bool:
        return self.picked == self.pseudo_heads - 1

    def output(self, mask: Mask | None) -> np.ndarray:
        return forward(self.layer, self.x, self.score.attention(mask))

    def wanted(self, mask: Mask | None) -> np.ndarray:
        return forward(self.original, self.x, self.score.attention(mask))


def drawn_heads(domain: Domain, n: int, d: int, heads: int, key: int, value: int, *, scores: int = 0,
                seed: int = 0, **more: tuple[int, ...]) -> tuple[IHA, dict[str, np.ndarray], list[Any]]:
    """Multi-head attention with drawn weights, an input x (n, D) and whatever is to be drawn with them."""
    shapes = {"x": (n, d), "w_q": (heads, d, key), "w_k": (heads, d, key), "w_v": (heads, d, value), **more}
    arrays, formal = drawn(domain, shapes, scores=scores or heads * n * n, seed=seed)
    return multi_head(arrays["w_q"], arrays["w_k"], arrays["w_v"]), arrays, formal


def drawn_inclusion(*, domain: Domain, n: int, d: int, heads: int, pseudo_heads: int, key: int = 1,
                    value: int = 1, pick: str | int = "last", scores: int = 0, seed: int = 0) -> Inclusion:
    """The inclusion of drawn multi-head attention, at a drawn input."""
    original, arrays, formal = drawn_heads(domain, n, d, heads, key, value, scores=scores, seed=seed)
    layer = inclusion(original, pseudo_heads, pick=pick)
    picked = {"last": pseudo_heads - 1, "first": 0, "mean": None}[pick] if isinstance(pick, str) else pick
    return Inclusion(domain, layer, original, arrays["x"], formal, pseudo_heads, picked)


def equal(name: str, says: str, mask: Mask | None, applies: Callable[[Any], bool] = lambda i: True) -> Claim:
    """The claim that the layer equals the multi-head attention under a mask."""
    return Claim(name, says, Relation.EQUAL, lambda i: i.output(mask), lambda i: i.wanted(mask), applies=applies,
                 sides=("the layer's output", "that of multi-head attention"))


def unread(layer: IHA, picked: int | None) -> dict[str, np.ndarray]:
    """The free entries of a layer: the pseudo-queries that R does not pick; none for the mean."""
    alpha_q = layer.fields()["alpha_q"]
    free = np.zeros(alpha_q.shape, dtype=bool)
    if picked is not None:
        free[:, :, np.arange(alpha_q.shape[2]) != picked] = True
    return {"layer.alpha_q": free}


INCLUSION = Section(
    title="inclusion of multi-head attention",
    instance=drawn_inclusion,
    cases=(
        case(RATIONALS, n=2, d=2, heads=2, pseudo_heads=2, seed=1),
        case(POLYNOMIALS, n=3, d=2, heads=2, pseudo_heads=2),
        case(POLYNOMIALS, "R the first", n=3, d=1, heads=1, pseudo_heads=5, pick="first"),
        case(POLYNOMIALS, "R the middle", n=2, d=1, heads=2, pseudo_heads=3, pick=1),
        case(POLYNOMIALS, "R the mean", n=2, d=1, heads=2, pseudo_heads=3, pick="mean"),
        case(POLYNOMIALS, n=2, d=3, key=2, value=4, heads=1, pseudo_heads=1),
        case(POLYNOMIALS, n=1, d=2, heads=3, pseudo_heads=2),
        case(RATIONALS, n=5, d=7, key=2, value=4, heads=3, pseudo_heads=4),
        case(BALLS, n=5, d=3, key=2, value=4, heads=2, pseudo_heads=3),
        case(BALLS, "R the mean", n=5, d=3, key=2, value=4, heads=2, pseudo_heads=3, pick="mean"),
    ),
    claims=(
        equal("inclusion", "without a mask the layer equals multi-head attention, whatever R takes of each head",
              None),
        equal("inclusion-token", "so it does with the token-causal mask", token_causal),
        equal("inclusion-flat", "with the flat causal mask it does when R picks the last pseudo-head",
              flat_causal, lambda i: i.is_last),
        equal("inclusion-window", "so it does with a flat causal window of two whole tokens",
              windowed(flat_causal, 2), lambda i: i.is_last),
        Claim("parameters", "the built layer has 4 H^2 P parameters more than multi-head attention",
              Relation.EQUAL, lambda i: counted(i.layer),
              lambda i: counted(i.original) + 4 * i.original.sizes["source"] ** 2 * i.pseudo_heads,
              domain=INTEGERS, scope=Scope.SIZE),
    ),
    free=lambda i: unread(i.layer, i.picked),
    mutants=(
        Mutant("R picks the first pseudo-head",
               lambda i: replace(i, layer=inclusion(i.original, i.pseudo_heads, pick="first")),
               ("inclusion-flat", "inclusion-window")),
        Mutant("one pseudo-head fewer", lambda i: replace(i, layer=inclusion(i.original, i.pseudo_heads - 1)),
               ("parameters",)),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Free(Inclusion):
    """A layer that equals multi-head attention with pseudo-heads of its own; ``values`` is any alpha^V."""

    values: np.ndarray

    @cached_property
    def with_any_values(self) -> np.ndarray:
        """P times the layer with alpha^V = ``values``: no mask, then token-causal, then flat causal."""
        layer = replace(self.layer, alpha_v=self.values)
        masks = (None, token_causal, flat_causal)
        outputs = [forward(layer, self.x, self.score.attention(mask)) for mask in masks]
        return np.concatenate(outputs) * self.pseudo_heads

    @cached_property
    def with_summed_values(self) -> np.ndarray:
        """Multi-head attention with W_V^h = sum_j sum_m values[m, h, j] W_V^m: no mask, causal, causal."""
        w_v = einsum(self.values, self.original.w_v,
                     "source head pseudo, source model value -> head model value")
        heads = replace(self.original, w_v=w_v)
        full, causal = (forward(heads, self.x, self.score.attention(mask)) for mask in (None, token_causal))
        return np.concatenate([full, causal, causal])


def _free(*, domain: Domain, n: int, d: int, heads: int, pseudo_heads: int, key: int = 1, value: int = 1,
          seed: int = 0) -> Free:
    rest = (heads, heads, pseudo_heads - 1)
    original, arrays, formal = drawn_heads(domain, n, d, heads, key, value, seed=seed, queries=rest,
                                           deviations=rest, values=(heads, heads, pseudo_heads),
                                           scores=heads * pseudo_heads * n * n)
    layer = free_inclusion(original, pseudo_heads, queries=arrays["queries"], deviations=arrays["deviations"])
    return Free(domain=domain, layer=layer, original=original, x=arrays["x"], formal=formal,
                pseudo_heads=pseudo_heads, picked=pseudo_heads - 1, values=arrays["values"])


def _altered(instance: Free, name: str, change: Callable[[np.ndarray], np.ndarray]) -> Free:
    return replace(instance, layer=replace(instance.layer, **{name: change(instance.layer.fields()[name])}))


FREE = Section(
    title="the points that equal multi-head attention and are free to train",
    instance=_free,
    cases=(
        case(RATIONALS, n=2, d=1, heads=2, pseudo_heads=2, seed=3),
        case(POLYNOMIALS, n=2, d=1, heads=1, pseudo_heads=2),
        case(POLYNOMIALS, n=2, d=1, heads=1, pseudo_heads=3),
        case(POLYNOMIALS, n=2, d=1, heads=2, pseudo_heads=2),
        case(POLYNOMIALS, n=2, d=2, heads=2, pseudo_heads=1),
        case(RATIONALS, n=4, d=3, key=2, value=5, heads=3, pseudo_heads=4),
        case(BALLS, n=4, d=3, key=2, value=5, heads=2, pseudo_heads=3),
    ),
    claims=(
        equal("free", "R picks the last pseudo-head, the keys are copies, alpha^V_j = identity + deviation_j with "
              "sum 0, the other pseudo-queries are arbitrary: without a mask the layer equals multi-head "
              "attention", None),
        equal("free-token", "so it does with the token-causal mask", token_causal),
        equal("free-flat", "so it does with the flat causal mask", flat_causal),
        Claim("free-values", "for any alpha^V the layer is multi-head attention with W_V^h replaced by the mean "
              "over j of sum_m alpha^V[m,h,j] W_V^m, under the three masks: it is the given one for every W_V "
              "only if the deviations sum to 0", Relation.EQUAL,
              lambda i: i.with_any_values, lambda i: i.with_summed_values),
    ),
    free=lambda i: unread(i.layer, i.picked),
    mutants=(
        Mutant("keys that are no copies", lambda i: _altered(i, "alpha_k", lambda a: np.roll(a, 1, axis=0)),
               ("free", "free-token", "free-flat", "free-values")),
        Mutant("deviations that do not sum to zero", lambda i: _altered(i, "alpha_v", lambda a: a + a),
               ("free", "free-token", "free-flat")),
        Mutant("R picks the first pseudo-head",
               lambda i: _altered(i, "collapse", lambda r: np.roll(r, 1, axis=2)),
               ("free", "free-token", "free-flat", "free-values")),
    ),
)
