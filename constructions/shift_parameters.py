"""The parameter counts of Theorem 4, layer and MLP, for all sizes and in built weights.

The layer's counts come from the axes of its weights, the MLP's from its own: a first layer of (columns of the
workspace) x (ordered pairs) and one output weight for each pair.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from constructions.blocks import symbols
from constructions.counting import counting_mlp
from constructions.cpm3_request import OPTIONS, asked
from constructions.shifts import cyclic_shifts, cyclic_shifts_mha
from iha_theory.claims import Case, Claim, Erratum, Mutant, Relation, Request, Scope, Section, Verdict
from iha_theory.count import ceil_sqrt, counted, parameters
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain


@dataclass(frozen=True)
class Count:
    """N and H, and the counts of both constructions: symbols and polynomials, or numbers.

    ``first_layer`` are the weights of the MLP's first layer on N columns.
    """

    n: Any
    h: Any
    iha: Any
    iha_mlp: Any
    mha: Any
    mha_mlp: Any
    first_layer: Any

    @property
    def mha_total(self) -> Any:
        return self.mha + self.mha_mlp

    def totals(self, sizes: range) -> np.ndarray:
        """The total of multi-head attention at some N, from its polynomial."""
        return np.array([int(self.mha_total.evaluate([(self.n, size), (self.h, 0)])) for size in sizes], dtype=object)

    @property
    def gap(self) -> np.ndarray:
        """The coefficients of 4 N^3 - total at N = 5 + t, as a polynomial in t."""
        shifted = (4 * self.n**3 - self.mha_total).compose(self.n, self.n + 5)
        return np.array([int(shifted.coeff(self.n**power)) if power else int(shifted.coeff(1))
                         for power in range(shifted.degree(self.n) + 1)], dtype=object)


def layer_sizes(n: Any, heads: Any, pseudo_heads: Any, value: Any) -> dict[str, Any]:
    """The axes of the layer on [x, I] with N tokens."""
    sizes = dict.fromkeys(("source", "head", "out"), heads)
    return sizes | {"pseudo": pseudo_heads, "model": n + 1, "key": n, "value": value}


def _count(*, domain: Domain, n: int | None = None) -> Count:
    """Without ``n`` for all N and H at once; with it counted in the built weights."""
    if n is None:
        _, (size, heads) = symbols({}, extra=["N", "H"])
        pairs = size**2
        return Count(size, heads,
                     parameters(layer_sizes(size, heads, heads, heads)), heads**2 * pairs + pairs,
                     parameters(layer_sizes(size, size, 1, 1), mixed=False), size * pairs + pairs, size * pairs)
    mlp = counting_mlp(n, 2, 1, width=n)
    return Count(n, ceil_sqrt(n), counted(cyclic_shifts(n)), counting_mlp(n, 2, 1).parameters,
                 counted(cyclic_shifts_mha(n)), mlp.parameters, mlp.w_1.size)


def _requested(request: Request) -> tuple[Case, ...]:
    if (sizes := asked(request)) is None:
        return ()
    return (Case(f"N={sizes.n}, counted in the weights", INTEGERS, Scope.SIZE, {"n": sizes.n}),)


def _is_symbolic(count: Count) -> bool:
    return not isinstance(count.n, int)


_TESTED = range(1, 13)

PARAMETERS = Section(
    title="parameters",
    instance=_count,
    cases=(Case("N, H symbolic", POLYNOMIALS, Scope.ALL),
           *(Case(f"N={n}, counted in the weights", INTEGERS, Scope.SIZE, {"n": n}) for n in (1, 2, 3, 5, 9))),
    claims=(
        Claim("iha-parameters", "the IHA layer has 2HN(N+1) + (N+1)H^2 + 4H^3 parameters", Relation.EQUAL,
              lambda i: i.iha, lambda i: 2 * i.h * i.n * (i.n + 1) + (i.n + 1) * i.h**2 + 4 * i.h**3),
        Claim("iha-mlp-parameters", "its MLP has H^2 N^2 + N^2 parameters", Relation.EQUAL,
              lambda i: i.iha_mlp, lambda i: i.h**2 * i.n**2 + i.n**2),
        Claim("mha-parameters", "N heads of multi-head attention have 2N^2(N+1) + N(N+1) parameters", Relation.EQUAL,
              lambda i: i.mha, lambda i: 2 * i.n**2 * (i.n + 1) + i.n * (i.n + 1)),
        Claim("mha-mlp-parameters", "their MLP has N^3 + N^2 parameters", Relation.EQUAL,
              lambda i: i.mha_mlp, lambda i: i.n**3 + i.n**2),
    ),
    errata=(
        Erratum(
            "thm4-mha-lower-bound", "false", "Theorem 7, the parameters of multi-head attention (Appendix B.3)",
            "The construction with N heads is said to have at least 3N^3 + N^2(N-1) + N^2 = 4N^3 parameters. That "
            "counts N^3 value parameters, while the N value matrices have N+1 rows and one column each, N(N+1) in all. "
            "With N^2 hidden units the total is 3N^3 + 4N^2 + N, which is below 4N^3 for every N >= 5. The order N^3 "
            "stands.",
            printed=Claim("mha-lower-bound", "the construction with N heads has at least 4N^3 parameters",
                          Relation.AT_MOST, lambda i: np.array([4 * n**3 for n in _TESTED], dtype=object),
                          lambda i: i.totals(_TESTED), Verdict.FAILS, domain=INTEGERS, scope=Scope.SIZE,
                          applies=_is_symbolic),
            corrected=(
                Claim("mha-total", "layer and MLP have 3N^3 + 4N^2 + N parameters", Relation.EQUAL,
                      lambda i: i.mha_total, lambda i: 3 * i.n**3 + 4 * i.n**2 + i.n),
                Claim("mha-below", "below 4N^3 for every N >= 5: 4N^3 - total at N = 5 + t has positive coefficients",
                      Relation.LESS, lambda i: 0, lambda i: i.gap, domain=INTEGERS, applies=_is_symbolic),
                Claim("mha-small", "at least 4N^3 for N = 1, 2, 3, 4", Relation.AT_MOST,
                      lambda i: np.array([4 * n**3 for n in range(1, 5)], dtype=object),
                      lambda i: i.totals(range(1, 5)), domain=INTEGERS, scope=Scope.SIZE, applies=_is_symbolic),
            ),
        ),
        Erratum(
            "thm4-pair-parameters", "false", "Theorem 7, the parameters of the MLP (Appendix B.3)",
            "Both totals count N^2(N-1) weights in the first layer of the MLP, those of N(N-1) units on N columns. The "
            "task has N^2 ordered pairs (j1 = j2 is allowed), so N columns and N^2 units have N^3 weights there.",
            printed=Claim("first-layer-printed", "the first layer of the MLP has N^2(N-1) weights on N columns",
                          Relation.EQUAL, lambda i: i.first_layer, lambda i: i.n**2 * (i.n - 1), Verdict.FAILS),
            corrected=(Claim("first-layer", "the first layer of the MLP has N^3 weights on N columns", Relation.EQUAL,
                             lambda i: i.first_layer, lambda i: i.n**3),),
        ),
    ),
    mutants=(
        Mutant("one head more in IHA", lambda i: replace(i, iha=parameters(layer_sizes(i.n, i.h + 1, i.h, i.h))),
               ("iha-parameters",)),
        Mutant("N value columns for one",
               lambda i: replace(i, mha=parameters(layer_sizes(i.n, i.n, 1, i.n), mixed=False)),
               ("mha-parameters", "mha-total", "mha-below")),
        Mutant("a bias for each hidden unit",
               lambda i: replace(i, iha_mlp=i.iha_mlp + i.n**2, mha_mlp=i.mha_mlp + i.n**2),
               ("iha-mlp-parameters", "mha-mlp-parameters")),
        Mutant("N^3 parameters more", lambda i: replace(i, mha=i.mha + i.n**3), ("mha-lower-bound",)),
        Mutant("nothing counted", lambda i: replace(i, mha=i.mha - i.mha), ("mha-small",)),
        Mutant("unequal pairs only", lambda i: replace(i, first_layer=i.n**2 * (i.n - 1)),
               ("first-layer-printed", "first-layer")),
    ),
    requested=_requested,
    options=OPTIONS,
)
