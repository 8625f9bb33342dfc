"""Appendix C: what local and global layers cost in score pairs, and which window matches the FLOPs.

Statement. Four IHA layers with a window of W = N/(2P^2) tokens and one global layer of multi-head attention
cost, with causal masks, 1 - 1/(5P^2) of five global multi-head layers to leading order in N, and exactly 1 -
(N/P^2 + 2)/(5(N + 1)) with the token mask.

Idea. A causal window of W among N positions in a row has NW - W(W-1)/2 pairs. A local IHA layer has P^2 times
that for N tokens (token mask), or that for NP virtual tokens and a window of WP (flat mask). With W =
N/(2P^2) both lead with N^2/2 - N^2/(8P^2): the first term is the causal half of N^2, the second what the
window cannot see before the first token.

The exact match. Multi-head attention has N(N+1)/2 pairs. With c = sqrt(1 - 1/P^2), a token window of (N +
1/2)(1 - c) makes a local IHA layer cost exactly 1/8 pair more. That is an identity in N and t, with P = (1 +
t^2)/(2t) and c = (1 - t^2)/(1 + t^2), which reaches every P >= 1 by 0 < t <= 1.

Checked: as polynomial identities in N and P, with the growth of each count by one token; by enumeration of
every mask at small sizes. Windows are whole numbers only where 2P^2 divides N (2P for the flat mask). Not
counted: exponentials.

Errata: the average of 3/5.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from sympy import QQ
from sympy.polys.rings import ring

from constructions.for_all_sizes import for_all
from constructions.score_pair_sections import ENUMERATION, GROWTH, Pairs, too_few
from iha_theory.claims import Case, Claim, Erratum, Mutant, Relation, Scope, Section, Theorem, Verdict
from iha_theory.flops import Layer, flops, score_pairs
from iha_theory.scalars import POLYNOMIALS, Domain


@dataclass(frozen=True)
class Schedules:
    """Counts of one head as polynomials in N over Q(P); ``w`` is the window N/(2P^2) in tokens."""

    n: Any
    p: Any
    pairs: Pairs = score_pairs

    @property
    def w(self) -> Any:
        return self.n / (2 * self.p**2)

    @property
    def mha(self) -> Any:
        return self.pairs(self.n, 1)

    def local(self, mask: str) -> Any:
        """A local IHA layer with the window of Appendix C."""
        return self.pairs(self.n, self.p, mask, self.w * self.p if mask == "flat" else self.w)

    def schedule(self, mask: str, last: Any) -> Any:
        """Four local layers and the global one."""
        return 4 * self.local(mask) + last

    @property
    def global_iha(self) -> Any:
        return self.pairs(self.n, self.p)

    def lead(self, schedule: Any) -> Any:
        """The ratio to five global multi-head layers as N grows: that of the coefficients of N^2."""
        return schedule.coeff(self.n**2) / (5 * self.mha).coeff(self.n**2)

    def constant(self, numerator: Any, denominator: Any = 1) -> Any:
        """A ratio as an element of Q(P)."""
        return self.n.ring.domain.one * numerator / denominator


def _schedules(*, domain: Domain) -> Schedules:
    coefficients = QQ.frac_field("P")
    _, n = ring("N", coefficients)
    return Schedules(n, coefficients.gens[0])


AVERAGE = Erratum(
    "appC-average", "gap", "Appendix C, the average over four local layers and a global one",
    "Printed: the average (4 * 1/2 + 1)/5 = 3/5 of the baseline. It holds to leading order where the global "
    "layer and the baseline see all N^2 pairs. The layers of a decoder are causal: the baseline then has "
    "N(N+1)/2 pairs, while the local IHA layers keep about N^2/2, and the average is 1 - 1/(5P^2). The "
    "schedule matches the baseline better than printed.",
    printed=Claim("average-printed", "with causal masks the schedule costs 3/5 of the baseline to leading "
                                     "order",
                  Relation.EQUAL, lambda i: i.lead(i.schedule("flat", i.mha)), lambda i: i.constant(3, 5),
                  Verdict.FAILS),
    corrected=(
        Claim("average", "with causal masks it is 1 - 1/(5P^2), for the token and the flat mask",
              Relation.EQUAL,
              lambda i: [i.lead(i.schedule(mask, i.mha)) for mask in ("token", "flat")],
              lambda i: [1 - i.constant(1, 5 * i.p**2)] * 2),
        Claim("average-uncut", "with N^2 pairs for the global layer and the baseline, and NP x WP for a "
                               "local layer, it is 3/5 exactly",
              Relation.EQUAL, lambda i: 4 * (i.n * i.p) * (i.w * i.p) + i.pairs(i.n, 1, "none"),
              lambda i: i.constant(3, 5) * 5 * i.n**2),
    ),
)
COSTS = Section(
    title="for all N and P",
    instance=_schedules,
    cases=(Case("N, P symbolic, W=N/(2P^2)", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("global", "global causal multi-head attention has N(N+1)/2 pairs, IHA P^2 times as many (token "
                        "mask)",
              Relation.EQUAL, lambda i: [i.mha, i.global_iha],
              lambda i: [i.n * (i.n + 1) / 2, i.p**2 * i.n * (i.n + 1) / 2]),
        Claim("local-flat", "the local layer has N^2/2 - N^2/(8P^2) + N/(4P) pairs with the flat mask, "
                            "window N/(2P) virtual tokens", Relation.EQUAL, lambda i: i.local("flat"),
              lambda i: i.n**2 / 2 - i.n**2 / (8 * i.p**2) + i.n / (4 * i.p)),
        Claim("local-token", "and N^2/2 - N^2/(8P^2) + N/4 with the token mask", Relation.EQUAL,
              lambda i: i.local("token"), lambda i: i.n**2 / 2 - i.n**2 / (8 * i.p**2) + i.n / 4),
        Claim("schedule-token", "the schedule costs 1 - (N/P^2 + 2)/(5(N+1)) of the baseline (token mask)",
              Relation.EQUAL,
              lambda i: (i.n + 1) * i.schedule("token", i.mha),
              lambda i: (5 * (i.n + 1) - i.n / i.p**2 - 2) * i.mha),
        Claim("schedule-flat", "and 1 - (N/P^2 + 4 - 2/P)/(5(N+1)) with the flat mask", Relation.EQUAL,
              lambda i: (i.n + 1) * i.schedule("flat", i.mha),
              lambda i: (5 * (i.n + 1) - i.n / i.p**2 - 4 + i.constant(2, i.p)) * i.mha),
        Claim("schedule-global-iha", "with a global IHA layer it costs (P^2 + 4 - 1/P^2)/5 of it to leading "
                                     "order: 31/20 for P = 2, 319/80 for P = 4",
              Relation.EQUAL, lambda i: i.lead(i.schedule("token", i.global_iha)),
              lambda i: (i.constant(i.p**2) + 4 - i.constant(1, i.p**2)) / 5),
        Claim("schedule-excess", "and exceeds it by ((P^2-1)(N+1)P^2 - N - 2P^2)/(5P^2 (N+1)) of it, exactly",
              Relation.EQUAL,
              lambda i: (i.n + 1) * i.p**2 * (i.schedule("token", i.global_iha) - 5 * i.mha),
              lambda i: _excess_factor(i.p, i.n) * i.mha),
    ),
    errata=(AVERAGE,),
    mutants=(
        Mutant("N(N-1)/2 for N(N+1)/2", lambda i: replace(i, pairs=too_few),
               ("global", "local-flat", "local-token", "schedule-token", "schedule-flat")),
        Mutant("N^2 more pairs", lambda i: replace(i,
                                                   pairs=lambda *sizes: score_pairs(*sizes) + sizes[0] ** 2),
               ("schedule-global-iha", "schedule-excess", "average", "average-uncut")),
        Mutant("layers of which the printed average is true", lambda i: replace(
            i, pairs=lambda *sizes: score_pairs(sizes[0], 1, "none") / (2 if sizes[1] != 1 else 1)),
               ("average-printed",)),
    ),
)


@dataclass(frozen=True)
class Windows:
    """Local IHA at real windows: polynomials in N over Q(t), P = (1 + t^2)/(2t), c = sqrt(1 - 1/P^2)."""

    n: Any
    p: Any
    c: Any
    pairs: Pairs = score_pairs

    def excess(self, mask: str, window: Any) -> Any:
        """Pairs of a local IHA layer above those of global multi-head attention."""
        return self.pairs(self.n, self.p, mask, window) - self.pairs(self.n, 1)


def _windows(*, domain: Domain) -> Windows:
    coefficients = QQ.frac_field("t")
    t = coefficients.gens[0]
    _, n = ring("N", coefficients)
    return Windows(n, (1 + t**2) / (2 * t), (1 - t**2) / (1 + t**2))


MATCHING = Section(
    title="the window that matches",
    instance=_windows,
    cases=(Case("N, P symbolic", POLYNOMIALS, Scope.ALL),),
    claims=(
        Claim("match-root", "c is sqrt(1 - 1/P^2)", Relation.EQUAL, lambda i: i.c**2 * i.p**2,
              lambda i: i.p**2 - 1),
        Claim("match", "a token window of (N + 1/2)(1 - c) costs 1/8 pair more than multi-head attention",
              Relation.EQUAL,
              lambda i: 8 * i.excess("token", (i.n + i.n.ring.domain.one / 2) * (1 - i.c)),
              lambda i: i.n.ring.one),
        Claim("match-estimate", "a token window of N(1 - c) costs Nc/(2(1 + c)) pairs less: a share below "
                                "1/(2(N+1))",
              Relation.EQUAL, lambda i: -i.excess("token", i.n * (1 - i.c)),
              lambda i: i.n * (i.c / (2 * (1 + i.c)))),
        Claim("match-estimate-flat", "a flat window of NP(1 - c) costs N(1 - P(1 - c))/2 pairs less",
              Relation.EQUAL,
              lambda i: -i.excess("flat", i.n * i.p * (1 - i.c)),
              lambda i: i.n * ((1 - i.p * (1 - i.c)) / 2)),
    ),
    mutants=(
        Mutant("N(N-1)/2 for N(N+1)/2 in IHA", lambda i: replace(i, pairs=lambda *sizes: (
            too_few if len(sizes) > 2 else score_pairs)(*sizes)), ("match", "match-estimate",
                                                                   "match-estimate-flat")),
        Mutant("c = 1 - 1/P^2", lambda i: replace(i, c=1 - 1 / i.p**2), ("match-root",)),
    ),
)


@dataclass(frozen=True)
class Mixing:
    """An IHA layer with D = H d_h, all sizes symbols, and N."""

    layer: Layer
    n: Any


def _mixing(*, domain: Domain) -> Mixing:
    _, n, heads, feature, p = ring("N, H, d_h, P", QQ)
    return Mixing(Layer("iha", heads, feature, feature, heads * feature, p), n)


MIXING_COST = Section(
    title="what mixing costs",
    instance=_mixing,
    cases=(Case("N, H, d_h, P symbolic, D=H d_h", POLYNOMIALS, Scope.ALL),),
    claims=(Claim("mixing", "mixing and collapse add P/d_h of the FLOPs of the four projections",
                  Relation.EQUAL,
                  lambda i: flops(i.layer, i.n).mixing * i.layer.key,
                  lambda i: flops(i.layer, i.n).projections * i.layer.pseudo),),
    mutants=(Mutant("a model of twice the width", lambda i: replace(i, layer=replace(
        i.layer, model=2 * i.layer.model)), ("mixing",)),),
)

GLOBAL_IHA = for_all(
    "a global IHA layer is never matched by this window", "schedule-above",
    "with a global IHA layer, P >= 2, the schedule costs more than the baseline, by the factor of "
    "schedule-excess",
    {"P=2+p, N=1+t": ("p t", lambda p, t: _excess_factor(2 + p, 1 + t))},
)


def _excess_factor(p: Any, n: Any) -> Any:
    return (p**2 - 1) * (n + 1) * p**2 - n - 2 * p**2


THEOREM = Theorem(
    number="Appendix C",
    title="FLOPs of local and global layers",
    source="Appendix C; Figure 1 has the window in virtual tokens",
    statement="Four local IHA layers with a window of N/(2P^2) tokens and one global layer of multi-head "
              "attention cost 1 - 1/(5P^2) of five global multi-head layers to leading order, with causal "
              "masks.",
    sections=(ENUMERATION, GROWTH, COSTS, GLOBAL_IHA, MATCHING, MIXING_COST),
    headline=("schedule-token", "schedule-flat"),
)
