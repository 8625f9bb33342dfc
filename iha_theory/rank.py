"""Exact ranks over the rationals, with a certificate that a reader can check alone."""

from __future__ import annotations

from dataclasses import dataclass

import flint
import numpy as np

from iha_theory.scalars import RATIONALS


@dataclass(frozen=True)
class Minor:
    """Rows and columns of a matrix on which its determinant is ``value``, not zero: the rank is at least their number."""

    rows: tuple[int, ...]
    columns: tuple[int, ...]
    value: flint.fmpq


def rank(matrix: np.ndarray) -> int:
    """The rank over the rationals of a matrix of integers or rationals, exactly."""
    return int(_flint(matrix).rank()) if matrix.size else 0


def nonzero_minor(matrix: np.ndarray) -> Minor:
    """A non-zero minor of the largest size: it shows that the rank is at least its size.

    Raises:
        ValueError: the matrix is zero or empty.
    """
    columns = _pivots(_flint(matrix)) if matrix.size else []
    if not columns:
        raise ValueError("a zero matrix has no non-zero minor")
    rows = _pivots(_flint(matrix[:, columns].T))
    value = _flint(matrix[np.ix_(rows, columns)]).det()
    return Minor(tuple(rows), tuple(columns), value)


def is_nonzero_minor(matrix: np.ndarray, minor: Minor) -> bool:
    """Whether the certificate is right: its rows and columns give a square block with that determinant, not zero."""
    distinct = all(len(set(side)) == len(minor.rows) for side in (minor.rows, minor.columns))
    block = matrix[np.ix_(minor.rows, minor.columns)]
    return bool(distinct and minor.value != 0 and _flint(block).det() == minor.value)


def _flint(matrix: np.ndarray) -> flint.fmpq_mat:
    return flint.fmpq_mat(*matrix.shape, RATIONALS.array(matrix).ravel().tolist())


def _pivots(matrix: flint.fmpq_mat) -> list[int]:
    reduced, size = matrix.rref()
    pivots: list[int] = []
    for row in range(size):
        pivots.append(next(column for column in range(reduced.ncols()) if reduced[row, column] != 0))
    return pivots
