"""Shared bricks of the constructions: powers, routing by a cover of the all-ones matrix, generic inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import reduce
from math import lcm
from typing import Any

import flint
import numpy as np
from sympy import QQ, ZZ
from sympy.polys.rings import ring

from iha_theory.count import ceil_sqrt
from iha_theory.layer import IHA
from iha_theory.residues import PRIME_BITS, PRIME_COUNT, Residues
from iha_theory.scalars import as_fraction, object_array


def unit_like(array: np.ndarray, size: int) -> np.ndarray:
    """The identity matrix (size, size) over the scalars of ``array``."""
    if isinstance(array, Residues):
        return Residues(np.eye(size, dtype=int), array.prime)
    if array.dtype != object:
        return np.eye(size)
    some = array.flat[0]
    zero = some - some
    identity = np.full((size, size), zero, dtype=object)
    for i in range(size):
        identity[i, i] = zero + 1
    return identity


def zeros_like(array: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Zeros of the given shape over the scalars of ``array``."""
    if isinstance(array, Residues):
        return Residues(np.zeros(shape, dtype=int), array.prime)
    if array.dtype != object:
        return np.zeros(shape)
    some = array.flat[0]
    return np.full(shape, some - some, dtype=object)


def lifted(values: Any, like: np.ndarray) -> np.ndarray:
    """Integers or rationals as an array over the scalars of ``like``, same shape as ``values``."""
    values = object_array(values)
    if isinstance(like, Residues):
        return Residues(values, like.prime)
    if like.dtype != object:
        return np.asarray([float(as_fraction(v)) for v in values.flat]).reshape(values.shape)
    some = like.flat[0]
    one = some - some + 1
    result = np.empty(values.shape, dtype=object)
    for index, value in np.ndenumerate(values):
        fraction = as_fraction(value)
        term = one * fraction.numerator
        result[index] = term if fraction.denominator == 1 else _divided(term, fraction.denominator)
    return result


def _divided(element: Any, denominator: int) -> Any:
    parent = getattr(element, "ring", None)
    if parent is None:
        if isinstance(element, int | flint.fmpz):
            raise ValueError(f"1/{denominator} is no integer; use the rationals")
        return element / denominator
    if not parent.domain.is_Field:
        raise ValueError(f"1/{denominator} is not in the coefficient ring {parent.domain}; use the rationals")
    return element * parent.domain(1, denominator)


def powers(a: np.ndarray, count: int) -> list[np.ndarray]:
    """``[I, A, ..., A^(count-1)]`` of a square matrix, by repeated multiplication."""
    result = [unit_like(a, a.shape[0])]
    while len(result) < count:
        result.append(result[-1] @ a if len(result) > 1 else a)
    return result


@dataclass(frozen=True)
class Cover:
    """The all-ones H x L matrix as a sum of rank-one matrices c_i g_i^T, one for each head i.

    ``c`` is (head, row), ``g`` is (head, column). The number of pseudo-heads that a layer needs to route by a cover is
    the largest support of a c_i or a g_i.
    """

    c: np.ndarray
    g: np.ndarray

    def __post_init__(self) -> None:
        heads, rows = self.c.shape
        if rows != heads or self.g.shape[0] != heads:
            raise ValueError(f"Cover: c has shape {self.c.shape} and g {self.g.shape}; want (H, H) and (H, L)")
        if not np.all(self.c.T @ self.g == 1):
            raise ValueError("Cover: the rank-one matrices c_i g_i^T do not sum to the all-ones matrix")

    @property
    def heads(self) -> int:
        return self.c.shape[0]

    @property
    def columns(self) -> int:
        return self.g.shape[1]

    @property
    def pseudo_heads(self) -> int:
        return max(int((side != 0).sum(axis=1).max()) for side in (self.c, self.g))


def full_cover(heads: int, columns: int | None = None) -> Cover:
    """The paper's routing, P = H: c_i is the i-th unit vector and g_i is all ones."""
    return Cover(np.eye(heads, dtype=int).astype(object), np.ones((heads, columns or heads), dtype=int).astype(object))


def tiled_cover(heads: int, columns: int, pseudo_heads: int) -> Cover:
    """Rectangles of at most P x P: rows and columns are cut into runs of P.

    Raises:
        ValueError: more rectangles than heads; then no cover by 0/1 rectangles of at most P x P exists.
    """
    runs = [[range(start, min(start + pseudo_heads, size)) for start in range(0, size, pseudo_heads)]
            for size in (heads, columns)]
    tiles = [(rows, cols) for rows in runs[0] for cols in runs[1]]
    if len(tiles) > heads:
        raise ValueError(f"P={pseudo_heads} pseudo-heads: {len(tiles)} rectangles for H={heads} heads and "
                         f"{columns} column blocks; give more heads or more pseudo-heads")
    c = np.zeros((heads, heads), dtype=int).astype(object)
    g = np.zeros((heads, columns), dtype=int).astype(object)
    for i, (rows, cols) in enumerate(tiles):
        c[i, list(rows)] = 1
        g[i, list(cols)] = 1
    return Cover(c, g)


def cheapest_sizes(k: int, pseudo_heads: int) -> tuple[int, int]:
    """(H, L): the fewest heads H whose H L >= k blocks, L <= H, a tiling by rectangles of at most P x P reaches.

    Raises:
        ValueError: no pseudo-heads.
    """
    if pseudo_heads < 1:
        raise ValueError(f"pseudo-heads: got {pseudo_heads}, wanted at least 1")
    heads = ceil_sqrt(k)
    while True:
        columns = -(-k // heads)
        if -(-heads // pseudo_heads) * -(-columns // pseudo_heads) <= heads:
            return heads, columns
        heads += 1


def cheapest_cover(k: int, pseudo_heads: int) -> Cover:
    """The tiled cover with the fewest heads for k blocks and P pseudo-heads (see :func:`cheapest_sizes`)."""
    return tiled_cover(*cheapest_sizes(k, pseudo_heads), pseudo_heads)


def routing(cover: Cover, like: np.ndarray, pseudo_heads: int | None = None, *, averaged: bool = False,
            ) -> dict[str, np.ndarray]:
    """The mixing and collapse weights that route by a cover, over the scalars of ``like``.

    Head i's j-th pseudo-query is the base query m that is the j-th element of the support of c_i, and R gives it to
    output m with the weight c_i[m]. Its pseudo-keys are the base keys in the support of g_i, its pseudo-values the same
    base values times g_i. Then output m collects sum_i c_i[m] g_i[l] = 1 times what query m reads through key l, for
    every column block l.

    Args:
        averaged: the attention averages over its maximal scores (hard attention); each pseudo-value is then multiplied
            by the number of pseudo-keys of its head, which is how many scores tie.
    """
    heads, p = cover.heads, pseudo_heads or cover.pseudo_heads
    mixing = {name: np.zeros((heads, heads, p), dtype=int).astype(object)
              for name in ("alpha_q", "alpha_k", "alpha_v", "collapse")}
    for i in range(heads):
        for j, m in enumerate(np.flatnonzero(cover.c[i])):
            mixing["alpha_q"][m, i, j] = 1
            mixing["collapse"][m, i, j] = cover.c[i, m]
        keys = np.flatnonzero(cover.g[i])
        for j, m in enumerate(keys):
            mixing["alpha_k"][m, i, j] = 1
            mixing["alpha_v"][m, i, j] = cover.g[i, m] * (len(keys) if averaged else 1)
    return {name: lifted(array, like) for name, array in mixing.items()}


def symbols(shapes: dict[str, tuple[int, int]], *, rational: bool = False,
            extra: Sequence[str] = ()) -> tuple[dict[str, np.ndarray], list[Any]]:
    """Matrices of independent polynomial symbols, in one ring: name to (rows, columns), and the extra generators.

    ``rational`` takes the rationals as coefficients, else the integers.
    """
    names = [f"{name}{i}_{j}" for name, (rows, columns) in shapes.items() for i in range(rows) for j in range(columns)]
    _, *generators = ring([*names, *extra], QQ if rational else ZZ)
    rest = iter(generators)
    matrices: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        matrix = np.empty(shape, dtype=object)
        for index in np.ndindex(shape):
            matrix[index] = next(rest)
        matrices[name] = matrix
    return matrices, list(rest)


def expansion_bound(weights: IHA, tokens: int, projection: np.ndarray | None = None) -> tuple[int, int]:
    """(bound, denominator): what a coefficient of the output, as a polynomial in the input's entries, can be.

    Every output entry of linear attention is a sum of products of one entry of each weight (w_q, w_k, w_v, alpha_q,
    alpha_k, alpha_v, collapse) and three input entries. ``denominator`` times a coefficient is an integer, and
    ``bound`` is at least its absolute value: the number of products times the largest product. An output projection
    (rows, columns) is one more factor of each product, and as many more products as it has rows.
    """
    size = weights.sizes
    terms = (size["source"] * size["model"]) ** 3 * tokens * size["key"] * size["pseudo"] ** 2 * size["head"]
    arrays = list(weights.fields().values())
    if projection is not None:
        terms *= projection.shape[0]
        arrays.append(projection)
    bound, denominator = terms, 1
    for array in arrays:
        fractions = [as_fraction(value) for value in array.flat]
        common = reduce(lcm, (f.denominator for f in fractions), 1)
        denominator *= common
        bound *= max(1, max(abs(f.numerator) * (common // f.denominator) for f in fractions))
    return bound, denominator


def row_sum(a: np.ndarray) -> tuple[int, int]:
    """(bound, denominator) of a matrix: the largest absolute row sum, rounded up, and the common denominator."""
    fractions = [[as_fraction(value) for value in row] for row in a]
    largest = max(sum(abs(f) for f in row) for row in fractions)
    return int(largest) + 1, reduce(lcm, (f.denominator for row in fractions for f in row), 1)


def generic_features(rows: int, columns: int, bound: int) -> np.ndarray:
    """A (rows, columns) matrix of integers on which an affine function with small coefficients vanishes only if it is 0.

    Entry number i is B^(i+1) with B = 2 bound + 2 (Kronecker's substitution). An affine function c + sum_i c_i X_i with
    integer coefficients of absolute value at most ``bound`` is then a number in base B with digits in
    [-bound, bound], and such a number is 0 only if every digit is. So one exact evaluation decides the identity in X.
    """
    base = 2 * bound + 2
    flat = np.empty(rows * columns, dtype=object)
    value = 1
    for index in range(flat.size):
        value *= base
        flat[index] = value
    return flat.reshape(rows, columns)


def miss_probability(height: int, degree: int) -> Fraction:
    """The probability that a non-zero polynomial over the integers vanishes at a random point modulo a random prime.

    At most log(height) / 20 of the ``PRIME_COUNT`` primes above 2^20 divide a coefficient of absolute value at most
    ``height``; otherwise a polynomial of that degree vanishes with probability at most degree / p (Schwartz, Zippel).
    The primes are drawn without replacement and may avoid some (those of a denominator): a thousand are left out here.
    """
    return Fraction(height.bit_length(), PRIME_BITS * (PRIME_COUNT - 1000)) + Fraction(degree, 2**PRIME_BITS)
