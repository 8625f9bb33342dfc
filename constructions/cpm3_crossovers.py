"""Shared brick of the crossovers: when CPM-3 is smaller with IHA, and the best constants of its bound.

H = ceil(sqrt N) heads, N = (H - 1)^2 + 1 + s with 0 <= s <= 2H - 2, so that H^2 - N = 2H - 2 - s. The MLP has
one hidden unit for each of the N^2 ordered pairs and reads H^2 columns with IHA, N with multi-head attention.
Counts from the axes:

    IHA: attention 2HN(N+1) + (N+1)H^2 + 4H^3, MLP H^2 N^2 + N^2;    MHA: attention 2N^2(N+1) + N(N+1), MLP
    N^3 + N^2.

The bound. IHA's total less N^3 is attention + (H^2 - N + 1)N^2, at most the majorant attention + (2H - 1)N^2.
For a positive c, X <= c N^2.5 follows from X^2 <= c^2 N^5, an inequality of polynomials. Equality at N = 2
shows that no smaller constant serves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sympy import ZZ
from sympy.polys.rings import ring

from constructions.closed_forms import counting_mlp_size, cpm3_iha, cpm3_mha, shifts_iha, shifts_mha
from constructions.counting import MLP, counting_mlp
from constructions.for_all_sizes import for_all
from constructions.shifts import cyclic_shifts, cyclic_shifts_mha
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.count import ceil_sqrt, counted
from iha_theory.layer import IHA
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain


def _tokens(heads: Any, s: Any) -> Any:
    return (heads - 1) ** 2 + 1 + s


def _excess(n: Any, heads: Any) -> Any:
    """IHA's total less N^3."""
    return cpm3_iha(n, heads) - n**3


def _majorant(n: Any, heads: Any) -> Any:
    return shifts_iha(n, heads) + (2 * heads - 1) * n**2


def _over_heads(function: Any) -> dict[str, Any]:
    """The cases of an inequality in N and H for all N >= 1."""
    return {
        "H=1, N=1": ("s", lambda s: function(1 + s - s, 1)),
        "H=2+u, N=(H-1)^2+1+s": ("u s", lambda u, s: function(_tokens(2 + u, s), 2 + u)),
    }


def _from_six(function: Any) -> dict[str, Any]:
    """The cases of an inequality in N and H for all N >= 6."""
    return {
        "H=3, N=6+t": ("t", lambda t: function(6 + t, 3)),
        "H=4+u, N=(H-1)^2+1+s": ("u s", lambda u, s: function(_tokens(4 + u, s), 4 + u)),
    }


@dataclass(frozen=True)
class BuiltCpm3:
    """The built layers and MLPs of CPM-3 on n tokens."""

    n: int
    iha: tuple[IHA, MLP]
    mha: tuple[IHA, MLP]

    @staticmethod
    def _counts(parts: tuple[IHA, MLP]) -> tuple[int, int]:
        attention = counted(parts[0])
        return attention, attention + parts[1].parameters

    @cached_property
    def counts(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """(attention, total) of IHA and of multi-head attention."""
        return self._counts(self.iha), self._counts(self.mha)


def _built(*, domain: Domain, n: int) -> BuiltCpm3:
    return BuiltCpm3(n, (cyclic_shifts(n), counting_mlp(n, 3, 1)), (cyclic_shifts_mha(n),
                                                                    counting_mlp(n, 3, 1, width=n)))


def with_heads_of_mha(instance: BuiltCpm3, change: int) -> BuiltCpm3:
    """Multi-head attention with more or fewer heads (dropped from the end, or the last one repeated)."""
    layer, mlp = instance.mha
    keep = np.minimum(np.arange(layer.w_q.shape[0] + change), layer.w_q.shape[0] - 1)
    fewer = MLP(mlp.w_1[: instance.n + change], mlp.w_2, mlp.activation) if change < 0 else MLP(
        np.repeat(mlp.w_1, 1 + change, axis=0), mlp.w_2, mlp.activation)
    return replace(instance, mha=(IHA(layer.w_q[keep], layer.w_k[keep], layer.w_v[keep]), fewer))


SMALL_SMALLER = Section(
    title="CPM-3 with N = 4 and N = 6",
    instance=_built,
    cases=tuple(Case(f"N={n}, built", INTEGERS, Scope.SIZE, {"n": n}) for n in (4, 6)),
    claims=(Claim("cpm3-built-smaller", "the built weights of IHA have fewer entries, in attention and in "
                                        "total",
                  Relation.LESS, lambda i: i.counts[0], lambda i: i.counts[1]),),
    mutants=(Mutant("one head of multi-head attention fewer", lambda i: with_heads_of_mha(i, -1),
                    ("cpm3-built-smaller",)),),
)
SMALL_LARGER = Section(
    title="CPM-3 with N = 1, 2, 3 and 5",
    instance=_built,
    cases=tuple(Case(f"N={n}, built", INTEGERS, Scope.SIZE, {"n": n}) for n in (1, 2, 3, 5)),
    claims=(Claim("cpm3-built-larger", "the built weights of IHA have more entries, in attention and in "
                                       "total",
                  Relation.LESS, lambda i: i.counts[1], lambda i: i.counts[0]),),
    mutants=(Mutant("one head of multi-head attention more", lambda i: with_heads_of_mha(i, 1),
                    ("cpm3-built-larger",)),),
)


@dataclass(frozen=True)
class Squares:
    """At N tokens, attention and excess over N^3, squared, against the constants' squares times N^5."""

    n: int
    heads: int

    @property
    def squares(self) -> list[int]:
        return [2 * shifts_iha(self.n, self.heads) ** 2, _excess(self.n, self.heads) ** 2]


ATTAINED = Section(
    title="the best constants",
    instance=lambda *, domain, n: Squares(n, ceil_sqrt(n)),
    cases=(Case("N=2", INTEGERS, Scope.SIZE, {"n": 2}),),
    claims=(Claim("cpm3-best", "at N = 2 both bounds are met: attention = 17/sqrt2 N^2.5, total = 10 sqrt2 "
                               "N^2.5 + N^3",
                  Relation.EQUAL, lambda i: i.squares, lambda i: [17**2 * i.n**5, 200 * i.n**5]),),
    mutants=(Mutant("one head more", lambda i: replace(i, heads=i.heads + 1), ("cpm3-best",)),),
)


@dataclass(frozen=True)
class Leading:
    """The counts at N = H^2 as polynomials in H, named; ``h`` is H."""

    h: Any

    @property
    def counts(self) -> list[Any]:
        """Attention of IHA and MHA, totals of IHA and MHA."""
        n = self.h**2
        return [shifts_iha(n, self.h), shifts_mha(n), cpm3_iha(n, self.h), cpm3_mha(n)]


def _leading(*, domain: Domain) -> Leading:
    return Leading(ring("H", ZZ)[1])


RATIO = Section(
    title="how the ratio grows",
    instance=_leading,
    cases=(Case("N=H^2, H symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("cpm3-ratio", "at N = H^2 the counts lead with 2H^5, 2H^6 (attention), H^6, 3H^6 (total): the "
                            "attention's ratio grows as sqrt N, the total's tends to 3", Relation.EQUAL,
              lambda i: [(count.degree(), int(count.LC)) for count in i.counts],
              lambda i: [(5, 2), (6, 2), (6, 1), (6, 3)], domain=INTEGERS),
    ),
    mutants=(Mutant("N = H", lambda i: _Roots(i.h), ("cpm3-ratio",)),),
)


class _Roots(Leading):
    """A wrong case: N = H in place of H^2."""

    @property
    def counts(self) -> list[Any]:
        return [shifts_iha(self.h, self.h), shifts_mha(self.h), cpm3_iha(self.h, self.h), cpm3_mha(self.h)]


CPM3_SECTIONS = (
    SMALL_SMALLER,
    SMALL_LARGER,
    for_all("CPM-3, attention, N >= 6", "cpm3-attention", "for N >= 6 IHA has fewer parameters in attention",
            _from_six(lambda n, heads: shifts_mha(n) - shifts_iha(n, heads))),
    for_all("CPM-3, total, N >= 6", "cpm3-total", "for N >= 6 IHA has fewer parameters in total",
            _from_six(lambda n, heads: cpm3_mha(n) - cpm3_iha(n, heads))),
    for_all("CPM-3, attention bound", "cpm3-17", "for N >= 1 IHA's attention has at most 17/sqrt2 N^2.5 "
                                                 "parameters (squared)",
            _over_heads(lambda n, heads: 17**2 * n**5 - 2 * shifts_iha(n, heads) ** 2), strict=False),
    for_all("CPM-3, majorant of the total", "cpm3-majorant", "IHA's total less N^3 is at most attention + "
                                                             "(2H - 1)N^2",
            {"H=1+u, N=(H-1)^2+1+s": ("u s", lambda u, s: _majorant(_tokens(1 + u, s), 1 + u)
                                      - _excess(_tokens(1 + u, s), 1 + u))}, strict=False),
    for_all("CPM-3, total bound", "cpm3-200", "for N >= 1 the majorant is at most 10 sqrt2 N^2.5 (squared)",
            _over_heads(lambda n, heads: 200 * n**5 - _majorant(n, heads) ** 2), strict=False),
    for_all("CPM-3, the paper's upper bound", "cpm3-37", "for N >= 1 the majorant is below 37 N^2.5 "
                                                         "(squared), so that IHA's total is below 37 N^2.5 + "
                                                         "N^3",
            _over_heads(lambda n, heads: 37**2 * n**5 - _majorant(n, heads) ** 2)),
    for_all("CPM-3, total above N^3", "cpm3-cube", "IHA's total is above N^3 for every H^2 = N + b, so that "
                                                   "MHA / IHA is below 3 + 4/N + 1/N^2",
            {"N=1+t, H=1+h, b >= 0": ("t h b", lambda t, h, b: shifts_iha(1 + t, 1 + h)
                                                        + counting_mlp_size(1 + t,
                                                                            1 + t + b) - (1 + t) ** 3)}),
    ATTAINED,
    RATIO,
)
