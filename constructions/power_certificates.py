"""Certificates of what the powers of a matrix are to one another, and a checker of a few lines for each kind.

Why the certificates suffice. A vector x and a non-zero minor of [x, Mx, ..., M^(s-1) x] show that s powers are
independent. Coefficients with M^s = sum_i c_i M^i show that no more are (if s < k). Two powers with equal primitive
directions are proportional; two entries on which a 2 x 2 minor is not zero show that they are not.

A checker reads M and a certificate and nothing else; :mod:`constructions.power_structure` finds the certificates.
"""

from __future__ import annotations

from dataclasses import dataclass

import flint

from iha_theory.rank import Minor


@dataclass(frozen=True)
class Independence:
    """The first ``size`` powers are independent: at x, the Krylov matrix [x, Mx, ...] has this non-zero minor."""

    x: tuple[int, ...]
    minor: Minor

    @property
    def size(self) -> int:
        return len(self.minor.rows)


@dataclass(frozen=True)
class Dependence:
    """M^s = sum_i coefficients[i] M^i, s the number of coefficients."""

    coefficients: tuple[flint.fmpq, ...]


@dataclass(frozen=True)
class Proportional:
    """M^power = factor M^representative, the representative being the first power of its class; factor 0 for zero."""

    power: int
    representative: int
    factor: flint.fmpq


@dataclass(frozen=True)
class Apart:
    """Two powers are not proportional: the 2 x 2 minor of their entries at these two flat places is not zero."""

    first: int
    second: int
    places: tuple[int, int]


def is_independence(matrix: flint.fmpz_mat, certificate: Independence) -> bool:
    """Whether the Krylov matrix of M at x has the minor that the certificate states, and it is not zero."""
    rows, columns, value = certificate.minor.rows, certificate.minor.columns, certificate.minor.value
    if value == 0 or len(set(rows)) != len(rows) or tuple(columns) != tuple(range(len(rows))):
        return False
    vector = flint.fmpz_mat(matrix.nrows(), 1, list(certificate.x))
    block: list[list[flint.fmpz]] = []
    for _ in columns:
        block.append([vector[row, 0] for row in rows])
        vector = matrix * vector
    return bool(flint.fmpz_mat(block).det() == value)


def is_dependence(matrix: flint.fmpz_mat, certificate: Dependence) -> bool:
    """Whether M^s = sum_i c_i M^i: one matrix identity, by Horner's rule."""
    size = matrix.nrows()
    identity = flint.fmpq_mat(flint.fmpz_mat([[int(i == j) for j in range(size)] for i in range(size)]))
    total, rational = identity, flint.fmpq_mat(matrix)
    for coefficient in reversed(certificate.coefficients):
        total = total * rational - identity * coefficient
    return all(entry == 0 for entry in total.entries())


def is_proportional(matrix: flint.fmpz_mat, certificate: Proportional) -> bool:
    """Whether M^power = factor M^representative (or M^power = 0 for factor 0)."""
    left = flint.fmpq_mat(matrix**certificate.power)
    return bool(left == flint.fmpq_mat(matrix**certificate.representative) * certificate.factor)


def is_apart(matrix: flint.fmpz_mat, certificate: Apart) -> bool:
    """Whether the 2 x 2 minor of the two powers at the two places is not zero."""
    left, right = (matrix**power for power in (certificate.first, certificate.second))
    p, q = certificate.places
    row, column = divmod(p, matrix.ncols())
    row2, column2 = divmod(q, matrix.ncols())
    return bool(left[row, column] * right[row2, column2] != left[row2, column2] * right[row, column])
