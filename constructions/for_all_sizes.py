"""Shared brick of the accounts: an inequality for all sizes as a section, with its certificate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.positivity import Certificate, certificate, expanded
from iha_theory.scalars import INTEGERS, POLYNOMIALS, object_array


@dataclass(frozen=True)
class Inequality:
    """``function(*names)`` is at least 0, or above 0 if ``strict``, wherever all variables are at least 0.

    ``given`` is a certificate to judge; None takes the list of coefficients of the function.
    """

    names: tuple[str, ...]
    function: Callable[..., Any]
    strict: bool
    given: Certificate | None = None

    @cached_property
    def found(self) -> Certificate:
        return self.given or certificate(self.function, self.names)

    @property
    def coefficients(self) -> np.ndarray:
        """The certificate's coefficients, that of 1 first."""
        rest = [value for exponents, value in self.found.coefficients.items() if any(exponents)]
        return object_array([self.found.constant, *rest])

    @property
    def least(self) -> np.ndarray:
        """What each coefficient must be at least: 0, but 1 for the constant one of a strict inequality."""
        least = object_array([0] * len(self.coefficients))
        least[0] = int(self.strict)
        return least


def reversed_sign(inequality: Inequality) -> Inequality:
    """The opposite inequality, which must be refused."""
    return replace(inequality, function=lambda *sizes: -inequality.function(*sizes))


def tampered(inequality: Inequality) -> Inequality:
    """The same inequality with one coefficient of its certificate changed."""
    found = inequality.found
    last = list(found.coefficients)[-1]
    return replace(inequality, given=replace(found, coefficients={**found.coefficients,
                                                                  last: found.coefficients[last] + 1}))


def for_all(title: str, claim: str, says: str, cases: Mapping[str, tuple[str, Callable[..., Any]]], *,
            strict: bool = True, mutants: tuple[Mutant, ...] = ()) -> Section:
    """A section that establishes one inequality by certificates, one for each case of the argument.

    Args: claim: the claim's name. says: the inequality in one sentence.
        cases: what a case covers, with the names of the variables that are at least 0, and the function of
        them.
        mutants: wrong functions, which must flip the claim named by ``claim``.
    """
    return Section(
        title=title,
        instance=lambda *, domain, names, function: Inequality(tuple(names.split()), function, strict),
        cases=tuple(Case(name, POLYNOMIALS, Scope.ALL, {"names": names, "function": function})
                    for name, (names, function) in cases.items()),
        claims=(
            Claim(claim, f"{says}: no coefficient of the shifted difference is negative"
                  + (", and the constant one is positive" if strict else ""),
                  Relation.AT_MOST, lambda i: i.least, lambda i: i.coefficients, domain=INTEGERS),
            Claim(f"{claim}-certificate", "the coefficients spell out the shifted difference of the counts",
                  Relation.EQUAL,
                  lambda i: i.found.polynomial(), lambda i: expanded(i.function, i.names)),
        ),
        mutants=(Mutant("the inequality reversed", reversed_sign, (claim,)),
                 Mutant("one coefficient of the certificate changed", tampered, (f"{claim}-certificate",)),
                 *mutants),
    )
