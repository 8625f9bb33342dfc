"""Shared brick of Theorem 3: the parameter count for all sizes, and what routing by fewer pseudo-heads needs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

from constructions.blocks import symbols
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.count import parameters
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain


@dataclass(frozen=True)
class Search:
    """All covers of the all-ones H x L matrix by H rank-one matrices of supports at most P, over a set of values."""

    heads: int
    pseudo_heads: int
    modulo_2: bool

    @cached_property
    def covers(self) -> int:
        vectors = [v for v in product((0, 1), repeat=self.heads) if sum(v) <= self.pseudo_heads]
        sums = {(0,) * self.heads**2: 1}
        for _ in range(self.heads):
            following: dict[tuple[int, ...], int] = {}
            for total, count in sums.items():
                for c in vectors:
                    for g in vectors:
                        added = tuple(t + x * y for t, (x, y) in zip(total, product(c, g), strict=True))
                        reached = tuple(t % 2 for t in added) if self.modulo_2 else added
                        if max(reached) <= 1:
                            following[reached] = following.get(reached, 0) + count
            sums = following
        return sums.get((1,) * self.heads**2, 0)


SEARCH = Section(
    title="what the signed routing needs",
    instance=lambda *, domain, **sizes: Search(**sizes),
    cases=(
        Case("0/1 rectangles, H=L=3, P=2", INTEGERS, Scope.SIZE, {"heads": 3, "pseudo_heads": 2, "modulo_2": False}),
        Case("modulo 2, H=L=3, P=2", INTEGERS, Scope.SIZE, {"heads": 3, "pseudo_heads": 2, "modulo_2": True}),
    ),
    claims=(Claim("no-cover", "no cover exists without 1/2: neither by 0/1 rectangles nor modulo 2", Relation.EQUAL,
                  lambda i: i.covers, lambda i: 0),),
    mutants=(Mutant("P = 3", lambda i: replace(i, pseudo_heads=3), ("no-cover",)),),
)


@dataclass(frozen=True)
class Count:
    """Symbols N, d, H and the paper's parameter count."""

    n: Any
    d: Any
    h: Any
    formula: Any

    def iha(self, heads: Any) -> Any:
        """The parameters of the construction with P = H and L = H, from the axes."""
        return parameters({"source": heads, "head": heads, "out": heads, "pseudo": heads, "model": self.d + self.n,
                           "key": self.n, "value": self.d * heads})

    def mha(self, k: int) -> Any:
        """The parameters of k heads of multi-head attention."""
        return 2 * self.n * (self.n + self.d) * k + self.d * (self.n + self.d) * k


def _count(*, domain: Domain) -> Count:
    _, (n, d, h) = symbols({}, extra=["N", "d", "H"])
    return Count(n, d, h, 2 * n * (n + d) * h + d * (n + d) * h**2 + 4 * h**3)


COUNT = Section(
    title="parameters",
    instance=_count,
    cases=(Case("N, d, H symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("count", "H heads with P = H have 2N(N+d)H + d(N+d)H^2 + 4H^3 parameters", Relation.EQUAL,
              lambda i: i.iha(i.h), lambda i: i.formula),
        Claim("count-k1", "for k = 1, IHA has 4 parameters more than multi-head attention", Relation.EQUAL,
              lambda i: i.iha(1) - i.mha(1), lambda i: i.n - i.n + 4),
        Claim("count-k2", "for k = 2, IHA has 2d(N+d) + 32 parameters more than multi-head attention", Relation.EQUAL,
              lambda i: i.iha(2) - i.mha(2), lambda i: 2 * i.d * (i.n + i.d) + 32),
    ),
    mutants=(
        Mutant("3 H^3 for 4 H^3", lambda i: replace(i, formula=i.formula - i.h**3), ("count",)),
        Mutant("one token fewer", lambda i: _FewerTokens(i.n, i.d, i.h, i.formula), ("count-k1", "count-k2")),
    ),
)


class _FewerTokens(Count):
    """A wrong count: multi-head attention over N - 1 tokens."""

    def mha(self, k: int) -> Any:
        return super().mha(k) - 2 * self.n * k
