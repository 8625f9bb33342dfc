"""Inequalities for all sizes: a polynomial whose coefficients, after a shift, are not negative.

To show F(N, ...) >= 0 for all sizes in a set, write the sizes as polynomials in new variables that run over
the naturals (N = 4 + t, for example). If every coefficient of the shifted polynomial is at least 0, so is its
value at every t >= 0; if its constant coefficient is positive, so is every value. The certificate is the list
of coefficients.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sympy import ZZ
from sympy.polys.rings import ring


@dataclass(frozen=True)
class Certificate:
    """The coefficients of a polynomial in variables that are at least 0.

    Attributes:
        names: the variables. coefficients: exponents, one for each variable, to the integer coefficient.
    """

    names: tuple[str, ...]
    coefficients: Mapping[tuple[int, ...], int]

    @property
    def constant(self) -> int:
        """The coefficient of 1: the value where all variables are 0."""
        return self.coefficients.get((0,) * len(self.names), 0)

    def polynomial(self) -> Any:
        """The polynomial that the coefficients spell out, in Z[names]."""
        domain, *variables = ring(self.names, ZZ)
        total = domain.zero
        for exponents, coefficient in self.coefficients.items():
            term = domain(coefficient)
            for variable, exponent in zip(variables, exponents, strict=True):
                term = term * variable**exponent
            total = total + term
        return total


def expanded(function: Callable[..., Any], names: tuple[str, ...]) -> Any:
    """``function`` at the generators of Z[names]."""
    domain, *variables = ring(names, ZZ)
    return domain(function(*variables))


def certificate(function: Callable[..., Any], names: tuple[str, ...]) -> Certificate:
    """The coefficients of ``function(*names)``, that of 1 included; whether they serve is not asked."""
    polynomial = expanded(function, names)
    coefficients = {tuple(exponents): int(coefficient) for exponents, coefficient in polynomial.terms()}
    return Certificate(names, {(0,) * len(names): 0} | coefficients)


def accepts(function: Callable[..., Any], found: Certificate, *, strict: bool) -> bool:
    """Whether a certificate shows that ``function`` is at least 0, if ``strict`` above 0, at all naturals.

    The independent checker: the coefficients spell out the function, none is negative, and the constant one
    is positive where the inequality is strict.
    """
    return (found.polynomial() == expanded(function, found.names)
            and all(coefficient >= 0 for coefficient in found.coefficients.values())
            and found.constant >= int(strict))
