"""Parameters three ways: closed forms from the axes, the printed formulas, and the built weights.

For filter banks (Theorems 1, 3 and 6), CPM-3 (Theorems 4 and 7: attention, MLP, total) and the layer of
Theorems 2 and 5. The closed form and the formula are compared as polynomials in all sizes; what is built is
counted at given sizes.

The MLP of CPM-3 is counted with all N^2 ordered pairs, as the task is defined.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sympy import ZZ
from sympy.polys.rings import ring

from constructions.blocks import tiled_cover
from constructions.closed_forms import (
    counting_mlp_size,
    cpm3_iha,
    cpm3_mha,
    filter_iha,
    filter_mha,
    paper_routing,
    shifts_iha,
    shifts_mha,
    tiled_routing,
)
from constructions.counting import counting_mlp
from constructions.inclusions import inclusion
from constructions.shifts import cyclic_shifts, cyclic_shifts_mha
from constructions.theorem_1_operator_count import polynomial_filter_mha
from constructions.theorem_3_polynomial_filter import polynomial_filter
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section, Theorem
from iha_theory.count import ceil_sqrt, counted, parameters
from iha_theory.layer import IHA, multi_head
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain

Formula = Callable[..., Any]


@dataclass(frozen=True)
class Account:
    """One thing to count.

    Attributes: sizes: the arguments of ``closed`` and ``printed``. closed: from the axes. printed: the
        paper's formula.
        built: builds the weights of the sizes that ``of`` is called with, and counts their entries.
        of: the sizes that a case gives, to the arguments of ``closed``.
    """

    name: str
    sizes: str
    closed: Formula
    printed: Formula
    built: Callable[..., int]
    of: Callable[..., tuple[int, ...]]


def _ones(n: int) -> np.ndarray:
    return INTEGERS.array(np.ones((n, n), dtype=int))


def _layer(heads: int, model: int, key: int, value: int) -> IHA:
    shapes = ((heads, model, key), (heads, model, key), (heads, model, value))
    return multi_head(*(INTEGERS.array(np.ones(shape, dtype=int)) for shape in shapes))


def _layer_size(heads: Any, model: Any, key: Any, value: Any, pseudo: Any, *, mixed: bool = True) -> Any:
    return parameters({"source": heads, "head": heads, "out": heads, "pseudo": pseudo, "model": model,
                       "key": key,
                       "value": value}, mixed=mixed)


def _tiled_filter(n: int, d: int, k: int) -> IHA:
    return polynomial_filter(_ones(n), k, d, cover=tiled_cover(*tiled_routing(k)))


ACCOUNTS = (
    Account("filter-mha", "N d k", filter_mha, lambda n, d, k: 2 * n * (n + d) * k + d * (n + d) * k,
            lambda n, d, k: counted(polynomial_filter_mha(_ones(n), k, d)), lambda n, d, k: (n, d, k)),
    Account("filter-iha", "N d H", lambda n, d, h: filter_iha(n, d, h, h, h),
            lambda n, d, h: 2 * n * (n + d) * h + d * (d + n) * h**2 + 4 * h**3,
            lambda n, d, k: counted(polynomial_filter(_ones(n), k, d)), lambda n, d,
            k: (n, d, paper_routing(k).heads)),
    Account("filter-tiled", "N d H L P", filter_iha,
            lambda n, d, h, blocks, p: 2 * n * (n + d) * h + d * (d + n) * h * blocks + 4 * h**2 * p,
            lambda n, d, k: counted(_tiled_filter(n, d, k)), lambda n, d, k: (n, d, *tiled_routing(k))),
    Account("cpm3-attention-iha", "N H", shifts_iha, lambda n,
            h: 2 * h * n * (n + 1) + (n + 1) * h**2 + 4 * h**3,
            lambda n: counted(cyclic_shifts(n)), lambda n: (n, ceil_sqrt(n))),
    Account("cpm3-attention-mha", "N", shifts_mha, lambda n: 2 * n**2 * (n + 1) + n * (n + 1),
            lambda n: counted(cyclic_shifts_mha(n)), lambda n: (n,)),
    Account("cpm3-mlp-iha", "N H", lambda n, h: counting_mlp_size(n, h * h), lambda n, h: h**2 * n**2 + n**2,
            lambda n: counting_mlp(n, 3, 1).parameters, lambda n: (n, ceil_sqrt(n))),
    Account("cpm3-mlp-mha", "N", lambda n: counting_mlp_size(n, n), lambda n: n**3 + n**2,
            lambda n: counting_mlp(n, 3, 1, width=n).parameters, lambda n: (n,)),
    Account("cpm3-total-iha", "N H", cpm3_iha,
            lambda n, h: 2 * h * n * (n + 1) + (n + 1) * h**2 + 4 * h**3 + h**2 * n**2 + n**2,
            lambda n: counted(cyclic_shifts(n)) + counting_mlp(n, 3, 1).parameters,
            lambda n: (n, ceil_sqrt(n))),
    Account("cpm3-total-mha", "N", cpm3_mha, lambda n: 3 * n**3 + 4 * n**2 + n,
            lambda n: counted(cyclic_shifts_mha(n)) + counting_mlp(n, 3, 1, width=n).parameters,
            lambda n: (n,)),
    Account("layer-iha", "H D d_k d_v P", _layer_size,
            lambda h, m, k, v, p: _layer_size(h, m, k, v, p, mixed=False) + 4 * h**2 * p,
            lambda h, m, k, v, p: counted(inclusion(_layer(h, m, k, v), p)), lambda *sizes: sizes),
    Account("layer-mha", "H D d_k d_v", lambda h, m, k, v: _layer_size(h, m, k, v, 1, mixed=False),
            lambda h, m, k, v: 2 * h * m * k + h * m * v, lambda h, m, k, v: counted(_layer(h, m, k, v)),
            lambda *sizes: sizes),
)
BY_NAME: Mapping[str, Account] = {account.name: account for account in ACCOUNTS}
_SAYS = {
    "filter-mha": "k heads of multi-head attention have 2N(N+d)k + d(N+d)k parameters",
    "filter-iha": "H heads with P = H have 2N(N+d)H + d(N+d)H^2 + 4H^3 parameters",
    "filter-tiled": "H heads with L blocks and P pseudo-heads have 2N(N+d)H + d(N+d)HL + 4H^2 P parameters",
    "cpm3-attention-iha": "the shifts with IHA have 2HN(N+1) + (N+1)H^2 + 4H^3 parameters",
    "cpm3-attention-mha": "the shifts with multi-head attention have 2N^2(N+1) + N(N+1) parameters",
    "cpm3-mlp-iha": "the MLP on H^2 columns has H^2 N^2 + N^2 parameters",
    "cpm3-mlp-mha": "the MLP on N columns has N^3 + N^2 parameters",
    "cpm3-total-iha": "CPM-3 with IHA has the sum of both",
    "cpm3-total-mha": "CPM-3 with multi-head attention has 3N^3 + 4N^2 + N parameters",
    "layer-iha": "an IHA layer has Q + 4H^2 P parameters, Q those of its projections",
    "layer-mha": "the projections of multi-head attention have 2HD d_k + HD d_v parameters",
}


@dataclass(frozen=True)
class Symbols:
    """An account at symbols."""

    account: Account

    def at_symbols(self, formula: Formula) -> Any:
        domain, *letters = ring(self.account.sizes.split(), ZZ)
        return domain(formula(*letters))


@dataclass(frozen=True)
class Sizes:
    """An account at given sizes; ``entries`` is what was counted in the built weights."""

    account: Account
    sizes: tuple[int, ...]
    entries: int


def _sized(account: Account) -> Callable[..., Sizes]:
    return lambda *, domain, sizes: Sizes(account, account.of(*sizes), account.built(*sizes))


def _one_more(formula: Formula) -> Formula:
    """A formula with its last size one too large: one head, power, pseudo-head or token more."""
    return lambda *sizes: formula(*sizes[:-1], sizes[-1] + 1)


def _symbolic(account: Account) -> Section:
    def instance(*, domain: Domain) -> Symbols:
        return Symbols(account)

    return Section(
        title=f"{account.name}: for all sizes",
        instance=instance,
        cases=(Case(f"{', '.join(account.sizes.split())} symbolic", POLYNOMIALS, Scope.ALL),),
        claims=(Claim(account.name, _SAYS[account.name], Relation.EQUAL,
                      lambda i: i.at_symbols(i.account.closed),
                      lambda i: i.at_symbols(i.account.printed)),),
        mutants=(Mutant(f"{account.sizes.split()[-1]} one too large", lambda i: replace(
            i, account=replace(i.account, printed=_one_more(i.account.printed))), (account.name,)),),
    )


def _counted(account: Account, cases: tuple[tuple[int, ...], ...], letters: str) -> Section:
    def case(sizes: tuple[int, ...]) -> Case:
        name = ", ".join(f"{letter}={size}" for letter, size in zip(letters.split(), sizes, strict=True))
        return Case(f"{name}, built", INTEGERS, Scope.SIZE, {"sizes": sizes})

    return Section(
        title=f"{account.name}: as built",
        instance=_sized(account),
        cases=tuple(map(case, cases)),
        claims=(
            Claim(f"{account.name}-built", "the built weights have as many entries as the axes say",
                  Relation.EQUAL,
                  lambda i: i.entries, lambda i: i.account.closed(*i.sizes)),
            Claim(f"{account.name}-printed", f"and as the formula says: {_SAYS[account.name]}",
                  Relation.EQUAL,
                  lambda i: i.entries, lambda i: i.account.printed(*i.sizes)),
        ),
        mutants=(Mutant("one entry not counted", lambda i: replace(i, entries=i.entries - 1),
                        (f"{account.name}-built", f"{account.name}-printed")),),
    )


_BANKS = ((2, 1, 3), (1, 1, 1), (3, 2, 2), (3, 2, 4), (2, 3, 5), (5, 2, 16), (7, 1, 17))
_TOKENS = ((2,), (1,), (3,), (4,), (5,), (9,), (10,))
_LAYERS = ((2, 3, 5, 7, 3), (1, 1, 1, 1, 1), (3, 2, 5, 7, 2))

THEOREM = Theorem(
    number="Accounts",
    title="Parameters three ways",
    source="§4; Theorems 1 to 7",
    statement="The paper's parameter formulas are the products of the axes, summed, and the built weights "
              "have that many entries.",
    sections=tuple(
        section
        for account in ACCOUNTS
        for section in (_symbolic(account), _counted(account, *(
            (_BANKS, "N d k") if account.name.startswith("filter") else
            (_TOKENS, "N") if account.name.startswith("cpm3") else
            (tuple(sizes[: len(account.sizes.split())] for sizes in _LAYERS), account.sizes))))
    ),
    headline=("filter-iha-printed", "layer-iha-printed"),
)
