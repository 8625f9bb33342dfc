"""When IHA is smaller than multi-head attention: the exact condition, the least N, and the proofs.

Statement. For the bank of k powers on N tokens with d features (Theorem 3), with H = ceil(sqrt k) heads, a =
k - H and b = H L - k, IHA has fewer parameters than k heads of multi-head attention iff

    (N + d)(2 a N - b d) > 4 H^2 P          (the paper's routing: L = P = H).

Never for k = 1 and k = 2; for k >= 3 from some N on. In the paper's regime k d < N: iff k >= 3.

Idea. The margin is a polynomial in the sizes. H = ceil(sqrt k) means (H - 1)^2 + 1 <= k <= H^2. Writing k =
(H - 1)^2 + 1 + s, H = 3 + u, d = 1 + e, N = k d + 1 + t, the letters s, u, e, t run over the naturals and
reach every k >= 5; H = 2 with k = 3 + s reaches k = 3 and 4. All coefficients of the margin in these letters
are non-negative and the constant one is positive. The list of coefficients is the certificate.

Checked: for all sizes, by polynomial identities and certificates; the least N by the counts on both sides of
it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from sympy import ZZ
from sympy.polys.rings import ring

from constructions.closed_forms import (
    Routing,
    filter_iha,
    filter_mha,
    least_tokens,
    margin,
    paper_routing,
    tiled_routing,
)
from constructions.cpm3_crossovers import CPM3_SECTIONS
from constructions.for_all_sizes import for_all
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section, Theorem
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain


@dataclass(frozen=True)
class Condition:
    """Polynomials in N with coefficients in Z[d, k, H, L, P]; ``margin`` is the difference of the counts."""

    n: Any
    d: Any
    k: Any
    heads: Any
    blocks: Any
    pseudo_heads: Any
    margin: Callable[..., Any] = margin

    @property
    def difference(self) -> Any:
        return self.margin(self.n, self.d, self.k, self.heads, self.blocks, self.pseudo_heads)

    @property
    def mha(self) -> Any:
        return filter_mha(self.n, self.d, self.k)

    @property
    def iha(self) -> Any:
        """Multi-head attention less the margin."""
        return self.mha - self.difference

    @property
    def a(self) -> Any:
        return self.k - self.heads

    @property
    def b(self) -> Any:
        return self.heads * self.blocks - self.k

    @property
    def square(self) -> Any:
        """(4aN + (2a - b)d)^2 - (2a + b)^2 d^2 - 32 a H^2 P."""
        root = 4 * self.a * self.n + (2 * self.a - self.b) * self.d
        mixing = self.heads**2 * self.pseudo_heads
        return root**2 - ((2 * self.a + self.b) * self.d) ** 2 - 32 * self.a * mixing


def _condition(*, domain: Domain) -> Condition:
    coefficients = ZZ.poly_ring("d", "k", "H", "L", "P")
    _, n = ring("N", coefficients)
    return Condition(n, *(n - n + letter for letter in coefficients.gens))


CONDITION = Section(
    title="the exact condition",
    instance=_condition,
    cases=(Case("N, d, k, H, L, P symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("condition", "MHA less IHA is (N+d)(2aN - bd) - 4H^2 P, with a = k - H and b = HL - k",
              Relation.EQUAL,
              lambda i: i.difference,
              lambda i: (i.n + i.d) * (2 * i.a * i.n - i.b * i.d) - 4 * i.heads**2 * i.pseudo_heads),
        Claim("condition-root", "8a times it is (4aN + (2a-b)d)^2 - ((2a+b)^2 d^2 + 32aH^2 P)",
              Relation.EQUAL,
              lambda i: 8 * i.a * i.difference, lambda i: i.square),
        Claim("ratio-degree", "both counts are quadratic in N", Relation.EQUAL,
              lambda i: [i.mha.degree(), i.iha.degree()], lambda i: 2, domain=INTEGERS),
        Claim("ratio-limit", "MHA / IHA tends to k / H as N grows: the leading coefficients are as k to H",
              Relation.EQUAL,
              lambda i: i.mha.LC * i.heads.LC, lambda i: i.iha.LC * i.k.LC),
    ),
    mutants=(
        Mutant("one head more", lambda i: replace(i, margin=lambda n, d, k, h, blocks, p: margin(
            n, d, k, h + 1, blocks, p)), ("condition", "condition-root", "ratio-limit")),
        Mutant("3 H^2 P for 4 H^2 P", lambda i: replace(i, margin=lambda n, d, k, h, blocks, p: margin(
            n, d, k, h, blocks, p) + h**2 * p), ("condition", "condition-root")),
        Mutant("N^3 heads", lambda i: replace(i, margin=lambda n, d, k, h, blocks, p: n**3),
               ("ratio-degree",)),
    ),
)

_SMALLER = for_all(
    "k d < N and k >= 3: IHA is smaller", "smaller", "under k d < N and k >= 3, IHA with P = H has fewer "
                                                     "parameters",
    {
        "H=2, k=3+s, d=1+e, N=kd+1+t": ("s e t", lambda s, e, t: _margin_below(2, 3 + s, 1 + e, t)),
        "H=3+u, k=(H-1)^2+1+s, d=1+e, N=kd+1+t": (
            "u s e t", lambda u, s, e, t: _margin_below(3 + u, (2 + u) ** 2 + 1 + s, 1 + e, t)),
    },
)


def _margin_below(heads: Any, k: Any, d: Any, t: Any) -> Any:
    return margin(k * d + 1 + t, d, k, heads, heads, heads)


_LARGER = for_all(
    "k = 1 and k = 2: IHA is larger", "larger", "for k = 1 and k = 2 IHA has more parameters, for every N, "
                                                "d, L and P",
    {f"k=H={k}, L=1+l, P=1+p, d=1+e, N=1+t": ("l p e t", lambda blocks, p, e, t, k=k: -margin(
        1 + t, 1 + e, k, k, 1 + blocks, 1 + p)) for k in (1, 2)},
)
_STAYS = for_all(
    "once smaller, smaller for every larger N", "stays",
    "with m = 2aN - bd >= 0 the product (N+d)m does not fall as N grows by t",
    {"N, d, a, m, t >= 0": ("n d a m t", lambda n, d, a, m, t: (n + t + d) * (m + 2 * a * t) - (n + d) * m)},
    strict=False,
)
_TILED = for_all(
    "the tiled routing is never larger", "tiled",
    "L <= H blocks and P <= H pseudo-heads cost no more than L = P = H",
    {"H=1+h, L=H-x, P=H-y, d=1+e, N=1+t": ("h x y e t", lambda h, x, y, e, t: filter_iha(
        1 + t, 1 + e, 1 + h, 1 + h, 1 + h) - filter_iha(1 + t, 1 + e, 1 + h, 1 + h - x, 1 + h - y))},
    strict=False,
)
_ORDER = {
    "k=H=1, d=1+e, N=kd+1+t": ("e t", lambda e, t: (1, 1, 1 + e, t)),
    "H=2, k=2+s, d=1+e, N=kd+1+t": ("s e t", lambda s, e, t: (2, 2 + s, 1 + e, t)),
    "H=3+u, k=(H-1)^2+1+s, d=1+e, N=kd+1+t": (
        "u s e t", lambda u, s, e, t: (3 + u, (2 + u) ** 2 + 1 + s, 1 + e, t)),
}


def _scaled(sizes: tuple[Any, Any, Any, Any], sign: int, factor: int) -> Any:
    """``sign`` times (``factor`` H N^2 less the parameters of IHA)."""
    heads, k, d, t = sizes
    n = k * d + 1 + t
    return sign * (factor * heads * n**2 - filter_iha(n, d, heads, heads, heads))


_UPPER = for_all(
    "k d < N: at most 6 H N^2 parameters", "order-above", "under k d < N, IHA has at most 6 H N^2 parameters",
    {name: (names, lambda *letters, sizes=sizes: _scaled(sizes(*letters), 1, 6))
     for name, (names, sizes) in _ORDER.items()},
    strict=False,
)
_LOWER = for_all(
    "more than 2 H N^2 parameters", "order-below", "IHA has more than 2 H N^2 parameters",
    {name: (names, lambda *letters, sizes=sizes: _scaled(sizes(*letters), -1, 2))
     for name, (names, sizes) in _ORDER.items()},
)


@dataclass(frozen=True)
class Least:
    """The bank of k powers with d features; ``n`` is the least N at which IHA is smaller."""

    k: int
    d: int
    routing: Routing
    n: int

    def counts(self, n: int) -> tuple[int, int]:
        """(IHA, MHA) on n tokens."""
        return filter_iha(n, self.d, *self.routing), filter_mha(n, self.d, self.k)


def _least(*, domain: Domain, k: int, d: int, tiled: bool) -> Least:
    routing = tiled_routing(k) if tiled else paper_routing(k)
    n = least_tokens(k, d, routing)
    if n is None:
        raise ValueError(f"k={k}: IHA is never smaller; give k >= 3")
    return Least(k, d, routing, n)


LEAST = Section(
    title="the least N",
    instance=_least,
    cases=tuple(Case(f"k={k}, d={d}, {'tiled' if tiled else 'P = H'}", INTEGERS, Scope.SIZE,
                     {"k": k, "d": d, "tiled": tiled})
                for k, d, tiled in ((5, 1, False), (3, 1, False), (4, 2, False), (9, 4, False),
                                    (10, 64, False),
                                    (16, 8, False), (16, 8, True), (100, 16, False), (100, 16, True))),
    claims=(
        Claim("least", "at the least N IHA is smaller", Relation.LESS, lambda i: i.counts(i.n)[0],
              lambda i: i.counts(i.n)[1]),
        Claim("least-before", "one token fewer, and it is not", Relation.AT_MOST,
              lambda i: i.counts(i.n - 1)[1], lambda i: i.counts(i.n - 1)[0]),
    ),
    mutants=(Mutant("one token fewer", lambda i: replace(i, n=i.n - 1), ("least",)),
             Mutant("one token more", lambda i: replace(i, n=i.n + 1), ("least-before",))),
)

THEOREM = Theorem(
    number="Crossovers",
    title="When IHA has fewer parameters than multi-head attention",
    source="beyond §4.2 and §4.3: the counts of Theorems 3 and 4 compared",
    statement="Under k d < N a filter bank has fewer parameters with IHA iff k >= 3; CPM-3 iff N = 4 or N >= "
              "6.",
    sections=(CONDITION, _SMALLER, _LARGER, _STAYS, _TILED, _UPPER, _LOWER, LEAST, *CPM3_SECTIONS),
    headline=("smaller", "cpm3-total"),
)
