"""When the order of a pair matters in CPM-3: the claims on the premise G > 2M and on the example (1, 2, 3).

Exchanging x_j1 and x_j2 changes x_i + G x_j1 + x_j2 by (G - 1)(x_j2 - x_j1). Modulo M that depends on the residue of G
only, so G > 2M says nothing, and the M coefficients after 2M stand for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd

import numpy as np

from constructions.cpm3 import count_by_definition, detects_every_swap, is_order_sensitive, is_symmetric, residue
from constructions.cpm3_request import OPTIONS, asked
from iha_theory.claims import Case, Claim, Erratum, Mutant, Relation, Request, Scope, Section, Verdict
from iha_theory.scalars import INTEGERS, Domain


@dataclass(frozen=True)
class Order:
    """A modulus and the predicate's residue, a function of (x_i, x_j1, x_j2, G, M)."""

    modulus: int
    predicate: Callable[[int, int, int, int, int], int] = residue

    @property
    def coefficients(self) -> range:
        """One coefficient above 2M for every residue, 2M + 1 first."""
        return range(2 * self.modulus + 1, 3 * self.modulus + 1)

    def each(self, question: Callable[[int], bool]) -> np.ndarray:
        """The answer for each coefficient, 1 or 0."""
        return np.array([int(question(g)) for g in self.coefficients], dtype=object)

    @property
    def symmetric(self) -> np.ndarray:
        return self.each(lambda g: is_symmetric(self.modulus, g, self.predicate))

    @property
    def detected(self) -> np.ndarray:
        return self.each(lambda g: detects_every_swap(self.modulus, g, self.predicate))


def _order(*, domain: Domain, modulus: int) -> Order:
    return Order(modulus)


def _case(modulus: int) -> Case:
    return Case(f"M={modulus}, every G, every residue", INTEGERS, Scope.SIZE, {"modulus": modulus})


#: Trying all residues for every coefficient grows as M^4.
_LARGEST_MODULUS = 24


def _requested(request: Request) -> tuple[Case, ...]:
    sizes = asked(request)
    return (_case(sizes.modulus),) if sizes is not None and sizes.modulus <= _LARGEST_MODULUS else ()


ORDER = Section(
    title="when the order of a pair matters",
    instance=_order,
    cases=tuple(_case(modulus) for modulus in (5, 1, 2, 3, 4, 6, 7, 8, 9, 10)),
    claims=(),
    errata=(
        Erratum(
            "thm4-order", "false", "§4.3, the condition G > 2M of CPM-3",
            "The condition G > 2M is said to make the predicate depend on the order of x_j1 and x_j2. Only G mod M "
            "enters, so no lower bound on G can do that: G = 2M + 1 is symmetric for every M (M = 5, G = 11). "
            "The predicate is symmetric exactly when G = 1 mod M, and every exchange of two different residues changes "
            "x_i + G x_j1 + x_j2 mod M exactly when gcd(G - 1, M) = 1. Theorem 4 does not use the condition.",
            printed=Claim("order-printed", "no predicate with G > 2M is symmetric in j1 and j2", Relation.EQUAL,
                          lambda i: i.symmetric, lambda i: i.symmetric * 0, Verdict.FAILS),
            corrected=(
                Claim("order-symmetric", "the predicate is symmetric exactly when G = 1 mod M", Relation.EQUAL,
                      lambda i: i.symmetric, lambda i: i.each(lambda g: (g - 1) % i.modulus == 0)),
                Claim("order-swaps", "every exchange of different residues is seen exactly when gcd(G-1, M) = 1",
                      Relation.EQUAL, lambda i: i.detected, lambda i: i.each(lambda g: gcd(g - 1, i.modulus) == 1)),
            ),
        ),
    ),
    mutants=(
        Mutant("x_j1 squared in the predicate", lambda i: replace(
            i, predicate=lambda x, a, b, g, m: residue(x, a * a, b, g, m)), ("order-printed", "order-symmetric")),
        Mutant("a predicate without x_j2", lambda i: replace(
            i, predicate=lambda x, a, b, g, m: residue(x, a, 0, g, m)), ("order-swaps",)),
    ),
    requested=_requested,
    options=OPTIONS,
)


@dataclass(frozen=True)
class Example:
    """Tokens, G and counts of the printed example, the modulus they belong to, and (tokens, M, G) to put instead."""

    tokens: tuple[int, ...]
    coefficient: int
    counts: tuple[int, ...]
    modulus: int
    instead: tuple[tuple[int, ...], int, int]

    def has_counts(self, modulus: int, coefficient: int) -> bool:
        return tuple(count_by_definition(self.tokens, modulus, coefficient)) == self.counts

    @property
    def moduli(self) -> np.ndarray:
        """Which moduli M with 2M < G give the counts: 1 or 0 for M = 1, 2, ..."""
        allowed = range(1, (self.coefficient + 1) // 2)
        return np.array([int(self.has_counts(m, self.coefficient)) for m in allowed], dtype=object)


def _example(*, domain: Domain) -> Example:
    return Example((1, 2, 3), 10, (3, 3, 3), 3, ((1, 2, 3, 4), 5, 13))


EXAMPLE_123 = Section(
    title="the example (1, 2, 3)",
    instance=_example,
    cases=(Case("tokens 1, 2, 3; G=10", INTEGERS, Scope.INPUT),),
    claims=(
        Claim("example-counts", "modulo 3 the tokens 1, 2, 3 with G = 10 have the counts 3, 3, 3", Relation.EQUAL,
              lambda i: np.array(count_by_definition(i.tokens, i.modulus, i.coefficient), dtype=object),
              lambda i: np.array(i.counts, dtype=object)),
        Claim("example-modulus", "of the moduli with G > 2M only M = 3 gives these counts", Relation.EQUAL,
              lambda i: i.moduli, lambda i: np.array([int(m == i.modulus) for m in range(1, len(i.moduli) + 1)])),
    ),
    errata=(
        Erratum(
            "thm4-example-order", "false", "§4.3, the example (1, 2, 3) with G = 10",
            "The example illustrates a task that depends on order. Its counts 3, 3, 3 are right, and they are those of "
            "M = 3. There 10 = 1 mod 3, so the predicate of the example is symmetric; and since 1, 2, 3 are all "
            "residues modulo 3, every G gives 3, 3, 3. Order does matter in (1, 2, 3, 4) with M = 5, G = 13.",
            printed=Claim("example-order", "the order of a pair matters in the example", Relation.EQUAL,
                          lambda i: int(is_order_sensitive(i.tokens, i.modulus, i.coefficient)), lambda i: 1,
                          Verdict.FAILS),
            corrected=(
                Claim("example-every-g", "every G gives the counts 3, 3, 3 modulo 3", Relation.EQUAL,
                      lambda i: np.array([int(i.has_counts(i.modulus, g)) for g in range(i.modulus)], dtype=object),
                      lambda i: 1, scope=Scope.SIZE),
                Claim("example-instead", "the order of a pair matters for (1, 2, 3, 4), M = 5, G = 13", Relation.EQUAL,
                      lambda i: int(is_order_sensitive(*i.instead)), lambda i: 1),
            ),
        ),
    ),
    mutants=(
        Mutant("modulus 4", lambda i: replace(i, modulus=4),
               ("example-counts", "example-modulus", "example-order", "example-every-g")),
        Mutant("G = 11 modulo 5", lambda i: replace(i, instead=((1, 2, 3, 4), 5, 11)), ("example-instead",)),
    ),
)
