"""Sections of Theorem 2: what the proof of inclusion leaves unsaid, for causal kernels and rotary positions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from einops import einsum, rearrange

from constructions.inclusion_sections import Inclusion, drawn_inclusion, equal, unread
from constructions.inclusions import inclusion
from constructions.rotations import turn_of
from constructions.score_functions import average, case, quotient
from iha_theory.attention import Mask, flat_causal, rotary, token_causal
from iha_theory.claims import Claim, Erratum, Mutant, Relation, Section, Verdict
from iha_theory.layer import IHA, forward
from iha_theory.scalars import BALLS, POLYNOMIALS, RATIONALS


@dataclass(frozen=True)
class Earlier(Inclusion):
    """An inclusion whose R picks the J-th pseudo-head, J < P, and its error under the flat causal mask."""

    @property
    def j(self) -> int:
        """J, counted from 1."""
        return 1 + (self.picked or 0)

    @cached_property
    def heads(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of the multi-head attention: scores and causal weights (head, token, seen), values (head, seen, value)."""
        q, k, v = (einsum(self.x, w, "token model, head model feature -> head token feature")
                   for w in (self.original.w_q, self.original.w_k, self.original.w_v))
        scores = einsum(q, k, "head token key, head seen key -> head token seen")
        past = np.tri(len(self.x), dtype=int).astype(object)
        return scores, np.frompyfunc(self.score.weight, 1, 1)(scores) * past, v

    @cached_property
    def closed_form(self) -> np.ndarray:
        """The error, -(P-J) p (1-p) / (P - (P-J) p) (v_n - u); 0 at the first token, which has no past."""
        _, weight, v = self.heads
        rest = self.pseudo_heads - self.j
        error = np.repeat(v[:, :1] * 0, len(self.x), axis=1)
        for head, n in np.ndindex(len(v), len(self.x)):
            if n == 0:
                continue
            past = weight[head, n, :n].sum()
            p = quotient(weight[head, n, n], past + weight[head, n, n])
            factor = -p * (1 - p) * rest / (self.pseudo_heads - p * rest)
            for feature in range(v.shape[2]):
                u = quotient((weight[head, n, :n] * v[head, :n, feature]).sum(), past)
                error[head, n, feature] = factor * (v[head, n, feature] - u)
        return rearrange(error, "head token value -> token (head value)")

    @cached_property
    def biased(self) -> np.ndarray:
        """Multi-head attention with the causal mask whose own key's weight is multiplied by J / P."""
        scores, weight, v = self.heads
        weight = weight.copy()
        for head, n in np.ndindex(*weight.shape[:2]):
            weight[head, n, n] = self.score.scaled(scores[head, n, n], self.j, self.pseudo_heads)
        return rearrange(average(weight, v), "head token value -> token (head value)")

    @cached_property
    def moved(self) -> np.ndarray:
        """The same layer with R moved to the last pseudo-head, with the flat causal mask."""
        collapse = np.roll(self.layer.fields()["collapse"], self.pseudo_heads - self.j, axis=2)
        return forward(replace(self.layer, collapse=collapse), self.x, self.score.attention(flat_causal))


EARLIER = Section(
    title="the flat causal mask and an earlier pseudo-head",
    instance=lambda **sizes: Earlier(**vars(drawn_inclusion(**sizes))),
    cases=(
        case(RATIONALS, "J=1", n=2, d=1, heads=1, pseudo_heads=2, pick=0, seed=3),
        case(POLYNOMIALS, "J=2", n=3, d=1, heads=1, pseudo_heads=3, pick=1),
        case(POLYNOMIALS, "J=1", n=2, d=1, heads=2, pseudo_heads=4, pick=0),
        case(RATIONALS, "J=2", n=4, d=3, key=2, value=3, heads=2, pseudo_heads=5, pick=1),
        case(BALLS, "J=1", n=4, d=3, key=2, value=3, heads=2, pseudo_heads=3, pick=0),
    ),
    claims=(),
    errata=(
        Erratum(
            "thm2-flat-causal", "gap", "Theorem 5, proof of inclusion (Appendix B)",
            "Printed: R picks the first pseudo-head of each head, and the layer then equals multi-head attention. "
            "The proof is for attention without a mask, and there it is right; so it is with a causal mask on "
            "tokens. A standard causal kernel on the N P virtual tokens hides from pseudo-head J the copies J+1, "
            "..., P of its own token, but none of the past ones: the own key counts J times, every past key P "
            "times. Only the last pseudo-head is exact there; for an earlier one the error has a closed form.",
            printed=replace(
                equal("flat-printed", "with the flat causal mask and R on the first pseudo-head, or any but the "
                      "last, the layer equals multi-head attention", flat_causal), expect=Verdict.FAILS),
            corrected=(
                Claim("flat-error", "the error is -(P-J) p(1-p) / (P - (P-J) p) (v - u): p the weight of the token "
                      "on itself, v its value, u the average over the earlier tokens", Relation.EQUAL,
                      lambda i: i.output(flat_causal) - i.wanted(flat_causal), lambda i: i.closed_form),
                Claim("flat-bias", "the layer is multi-head attention with log(J/P) added to the score of a token "
                      "with itself: the own key's weight times J/P", Relation.EQUAL,
                      lambda i: i.output(flat_causal), lambda i: i.biased),
                Claim("flat-last", "with R moved to the last pseudo-head it equals multi-head attention",
                      Relation.EQUAL, lambda i: i.moved, lambda i: i.wanted(flat_causal)),
            ),
        ),
    ),
    mutants=(
        Mutant("R picks the last pseudo-head", lambda i: replace(i, layer=inclusion(i.original, i.pseudo_heads)),
               ("flat-printed", "flat-error", "flat-bias")),
        Mutant("one pseudo-head more than R expects",
               lambda i: replace(i, layer=inclusion(i.original, i.pseudo_heads + 1, pick=i.picked)),
               ("flat-last", "flat-error", "flat-bias")),
    ),
)


@dataclass(frozen=True, kw_only=True)
class Rotary(Inclusion):
    """An inclusion, R on the last pseudo-head, with rotary positions: quarter turns, over balls one radian.

    ``virtual`` is the position of (token n, pseudo-head j) in the order of the virtual tokens.
    """

    virtual: Callable[[int, int], int]

    def turned(self, layer: IHA, mask: Mask | None, position: Callable[[int, int], int]) -> np.ndarray:
        attention = rotary(self.score.attention(mask), position, turn_of(self.domain))
        return forward(layer, self.x, attention)


def _rotary(*, n: int, heads: int, pseudo_heads: int, **sizes: Any) -> Rotary:
    instance = drawn_inclusion(n=n, heads=heads, pseudo_heads=pseudo_heads, scores=4 * heads * n * n, **sizes)
    return Rotary(**vars(instance), virtual=lambda token, j: token * pseudo_heads + j)


def _token(n: int, j: int) -> int:
    return n


def _rotated(name: str, says: str, relation: Relation, mask: Mask | None, *, virtual: bool,
             expect: Verdict = Verdict.HOLDS) -> Claim:
    return Claim(name, says, relation, lambda i: i.turned(i.layer, mask, i.virtual if virtual else _token),
                 lambda i: i.turned(i.original, mask, _token), expect)


ROTARY = Section(
    title="rotary positions",
    instance=_rotary,
    cases=(
        case(RATIONALS, "quarter turns", n=2, d=1, key=2, heads=1, pseudo_heads=2, seed=7),
        case(POLYNOMIALS, "quarter turns", n=2, d=1, key=2, heads=1, pseudo_heads=2),
        case(POLYNOMIALS, "quarter turns", n=2, d=1, key=2, heads=1, pseudo_heads=3),
        case(RATIONALS, "quarter turns", n=4, d=3, key=2, value=5, heads=2, pseudo_heads=3),
        case(BALLS, "one radian", n=4, d=3, key=2, value=5, heads=2, pseudo_heads=3),
    ),
    claims=(
        _rotated("rope-virtual-token", "at positions n P + j the layer differs with the token-causal mask",
                 Relation.DIFFERENT, token_causal, virtual=True),
        _rotated("rope-virtual-flat", "and with the flat causal mask, R on the last pseudo-head",
                 Relation.DIFFERENT, flat_causal, virtual=True),
    ),
    errata=(
        Erratum(
            "thm2-rope", "gap", "Theorem 5, proof of inclusion (Appendix B)",
            "Printed: the copies equal multi-head attention; the proof is for attention without positions in the "
            "kernel. When rotary positions count the N P virtual tokens, n P + j, the copies of a key turn by "
            "different angles and their scores differ: the inclusion breaks, without a mask and with either "
            "causal one. With one position n for all pseudo-tokens of a token it holds again, with the flat "
            "causal mask for the last pseudo-head.",
            printed=_rotated("rope-printed", "with rotary positions n P + j the layer equals multi-head attention",
                             Relation.EQUAL, None, virtual=True, expect=Verdict.FAILS),
            corrected=(
                _rotated("rope", "with one position for each token the layer equals multi-head attention",
                         Relation.EQUAL, None, virtual=False),
                _rotated("rope-token", "so it does with the token-causal mask", Relation.EQUAL, token_causal,
                         virtual=False),
                _rotated("rope-flat", "so it does with the flat causal mask, R on the last pseudo-head",
                         Relation.EQUAL, flat_causal, virtual=False),
            ),
        ),
    ),
    free=lambda i: unread(i.layer, i.picked),
    mutants=(Mutant("one position for each token", lambda i: replace(i, virtual=_token),
                    ("rope-printed", "rope-virtual-token", "rope-virtual-flat")),),
)
