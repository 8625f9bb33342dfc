"""Shared brick of Appendix C: the closed forms of the score pairs, against the masks and by induction.

Token n sees min(n + 1, W) tokens under a causal window of W. So the count of W tokens grows from that of W -
1 by W, and from then on by W with every token; with one token it is 1. These steps are polynomial identities,
and they make the closed forms right for all N and W by induction. The flat window counts virtual tokens, NP
of them, in the same way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sympy import QQ
from sympy.polys.rings import ring

from iha_theory.attention import Mask, flat_causal, token_causal, windowed
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.flops import score_pairs
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain

Pairs = Callable[..., Any]


def too_few(*sizes: Any, **more: Any) -> Any:
    """A wrong count: N tokens fewer, as by N(N-1)/2 for N(N+1)/2."""
    return score_pairs(*sizes, **more) - sizes[0]


@dataclass(frozen=True)
class Enumerated:
    """N tokens, P pseudo-heads and a window of W tokens; ``pairs`` is the closed form under test."""

    n: int
    p: int
    w: int
    pairs: Pairs = score_pairs

    def _flat_window(self, n: np.ndarray, j: np.ndarray, n2: np.ndarray, j2: np.ndarray) -> np.ndarray:
        return flat_causal(n, j, n2, j2) & ((n - n2) * self.p + j - j2 < self.w * self.p)

    def enumerated(self) -> list[int]:
        """The pairs of each mask, one by one: token, flat, flat-token with a window, token, flat without."""
        masks: tuple[Mask, ...] = (windowed(token_causal, self.w), self._flat_window,
                                   windowed(flat_causal, self.w),
                                   token_causal, flat_causal)
        n, j, n2, j2 = np.ogrid[: self.n, : self.p, : self.n, : self.p]
        return [int(np.broadcast_to(mask(n, j, n2, j2), (self.n, self.p, self.n,
                                                         self.p)).sum()) for mask in masks]

    def closed(self) -> list[int]:
        """The same by the closed forms."""
        return [self.pairs(self.n, self.p, "token", self.w), self.pairs(self.n, self.p, "flat",
                                                                        self.w * self.p),
                self.pairs(self.n, self.p, "flat-token", self.w), self.pairs(self.n, self.p, "token"),
                self.pairs(self.n, self.p, "flat")]


ENUMERATION = Section(
    title="every pair, one by one",
    instance=lambda *, domain, n, p, w: Enumerated(n, p, w),
    cases=tuple(Case(f"N={n}, P={p}, W={w}", INTEGERS, Scope.SIZE, {"n": n, "p": p, "w": w})
                for n, p, w in ((8, 2, 1), (1, 1, 1), (5, 1, 3), (7, 3, 7), (16, 2, 2), (18, 3, 1),
                                (32, 4, 1))),
    claims=(Claim("pairs", "the masks let as many pairs meet as the closed forms say", Relation.EQUAL,
                  lambda i: i.enumerated(), lambda i: i.closed()),),
    mutants=(Mutant("N(N-1)/2 for N(N+1)/2", lambda i: replace(i, pairs=too_few), ("pairs",)),),
)


@dataclass(frozen=True)
class Growing:
    """Symbols N, P, W, and the closed forms under test."""

    n: Any
    p: Any
    w: Any
    pairs: Pairs = score_pairs

    def first(self, mask: str) -> Any:
        """The pairs of one token."""
        return self.pairs(self.n.ring.one, self.p, mask, self.n.ring.one)

    def grown(self, mask: str) -> Any:
        """What token N adds, for N >= W."""
        return self.pairs(self.n + 1, self.p, mask, self.w) - self.pairs(self.n, self.p, mask, self.w)

    def widened(self, mask: str) -> Any:
        """What token W adds to W tokens that all see each other."""
        return self.pairs(self.w + 1, self.p, mask, self.w + 1) - self.pairs(self.w, self.p, mask, self.w)

    @property
    def own(self) -> Any:
        """The pairs of the pseudo-heads of one token under the flat mask: P(P+1)/2."""
        return self.p * (self.p + 1) / 2


def _growing(*, domain: Domain) -> Growing:
    _, n, p, w = ring("N, P, W", QQ)
    return Growing(n, p, w)


GROWTH = Section(
    title="the pairs of all sizes, by induction",
    instance=_growing,
    cases=(Case("N, P, W symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("pairs-first", "one token has P^2 pairs with the token mask, P(P+1)/2 with the flat one and "
                             "whole tokens",
              Relation.EQUAL, lambda i: [i.first(mask) for mask in ("token", "flat-token")],
              lambda i: [i.p**2, i.own]),
        Claim("pairs-grow", "a token beyond the window adds P^2 W pairs; flat, P^2 (W-1) + P(P+1)/2",
              Relation.EQUAL,
              lambda i: [i.grown("token"), i.grown("flat-token")],
              lambda i: [i.p**2 * i.w, i.p**2 * (i.w - 1) + i.own]),
        Claim("pairs-widen", "a token within the window adds one pair more for each token before it",
              Relation.EQUAL,
              lambda i: [i.widened("token"), i.widened("flat-token")],
              lambda i: [i.p**2 * (i.w + 1), i.p**2 * i.w + i.own]),
        Claim("pairs-flat", "a flat window of W among NP virtual tokens has the pairs of a token window "
                            "among NP tokens",
              Relation.EQUAL, lambda i: i.pairs(i.n, i.p, "flat", i.w),
              lambda i: score_pairs(i.n * i.p, 1, "token", i.w)),
    ),
    mutants=(Mutant("N(N-1)/2 for N(N+1)/2", lambda i: replace(i, pairs=too_few),
                    ("pairs-first", "pairs-grow", "pairs-widen", "pairs-flat")),),
)
