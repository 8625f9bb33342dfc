"""Exact linear algebra over the rationals, with certificates that a reader can check alone.

Each certificate is a record of numbers; each has a checker of a few lines that uses nothing but the numbers and
determinants or products, and shares no code with what found them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from math import gcd, lcm

import flint
import numpy as np

from iha_theory.scalars import RATIONALS, as_fraction

_PRIME = (1 << 61) - 1


@dataclass(frozen=True)
class Minor:
    """Rows and columns of a matrix on which its determinant is ``value``, not zero: the rank is at least their number."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    value: flint.fmpq


def exact_rank(matrix: np.ndarray) -> int:
    """The rank over the rationals of a matrix of integers or rationals, exactly."""
    return int(rational_matrix(matrix).rank()) if matrix.size else 0


def nonzero_minor(matrix: np.ndarray) -> Minor:
    """A non-zero minor of the largest size: it shows that the rank is at least its size.

    Raises:
        ValueError: the matrix is zero or empty.
    """
    size = exact_rank(matrix)
    if not size:
        raise ValueError("a zero matrix has no non-zero minor")
    columns = _pivots(matrix, size)
    rows = _pivots(matrix[:, columns].T, size)
    value = rational_matrix(matrix[np.ix_(rows, columns)]).det()
    return Minor(tuple(rows), tuple(columns), value)


def is_nonzero_minor(matrix: np.ndarray, minor: Minor) -> bool:
    """Whether the certificate is right: its rows and columns give a square block with that determinant, not zero."""
    distinct = all(len(set(side)) == len(side) == len(minor.rows) for side in (minor.rows, minor.columns))
    if not distinct:
        return False
    block = matrix[np.ix_(minor.rows, minor.columns)]
    return bool(minor.value != 0 and rational_matrix(block).det() == minor.value)


def rational_matrix(matrix: np.ndarray) -> flint.fmpq_mat:
    """An object array of integers or rationals as flint's exact matrix."""
    rows, columns = matrix.shape
    return flint.fmpq_mat(rows, columns, RATIONALS.array(matrix).ravel().tolist())


def integer_matrix(matrix: np.ndarray) -> tuple[flint.fmpz_mat, int]:
    """(M, q) with M = q times the matrix, an integer matrix, and q the least such factor."""
    fractions = [as_fraction(value) for value in matrix.flat]
    common = reduce(lcm, (f.denominator for f in fractions), 1)
    rows, columns = matrix.shape
    return flint.fmpz_mat(rows, columns, [f.numerator * (common // f.denominator) for f in fractions]), common


def primitive(matrix: flint.fmpz_mat) -> tuple[tuple[int, ...], int]:
    """(direction, factor) of an integer matrix: its entries are factor times the direction's, whose gcd is 1.

    The first non-zero entry of the direction is positive, so that two non-zero matrices are proportional exactly if
    their directions are equal. The zero matrix has factor 0.
    """
    entries = [int(entry) for entry in matrix.entries()]
    common = reduce(gcd, entries, 0)
    if not common:
        return tuple(entries), 0
    factor = common if next(entry for entry in entries if entry) > 0 else -common
    return tuple(entry // factor for entry in entries), factor


def _pivots(matrix: np.ndarray, size: int) -> Sequence[int]:
    """Columns on which the matrix has its full rank: found modulo a large prime, exactly if that loses rank."""
    integers, _ = integer_matrix(matrix)
    reduced, rank = flint.nmod_mat(integers, _PRIME).rref()
    exact = None
    if rank != size:
        exact, rank = rational_matrix(matrix).rref()
    echelon = reduced if exact is None else exact
    pivots: list[int] = []
    for row in range(rank):
        pivots.append(next(c for c in range(echelon.ncols()) if int(echelon[row, c] != 0)))
    return pivots
