"""Brick of Theorem 4: the task CPM-3 by its definition, two ways, and what the order of a pair changes.

For naturals x_0, ..., x_(N-1), a modulus M >= 1 and a coefficient G, the task asks at every position i for

    CPM_i = #{(j1, j2) in [N]^2 : x_i + G x_j1 + x_j2 = 0 mod M},

ordered pairs, j1 = j2 allowed. Nothing here knows of layers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import product

import numpy as np


def residue(x: int, first: int, second: int, coefficient: int, modulus: int) -> int:
    """(x + G x_j1 + x_j2) mod M: the predicate of CPM-3 holds where it is 0."""
    return (x + coefficient * first + second) % modulus


def count_by_definition(tokens: Sequence[int], modulus: int, coefficient: int) -> list[int]:
    """The counts of CPM-3, one for each token, by trying every ordered pair."""
    return [sum(residue(x, a, b, coefficient, modulus) == 0 for a in tokens for b in tokens) for x in tokens]


def count_by_histogram(tokens: Sequence[int], modulus: int, coefficient: int) -> list[int]:
    """The counts of CPM-3 from how often each residue occurs: for x_i and a residue a, x_j2 must be -(x_i + G a)."""
    often = Counter(token % modulus for token in tokens)
    return [sum(times * often[-(x + coefficient * a) % modulus] for a, times in often.items()) for x in tokens]


def every_input(n: int, values: Iterable[int]) -> np.ndarray:
    """All sequences of n tokens with the given values, one a row: (values ** n, n), Python integers."""
    return np.array(list(product(values, repeat=n)), dtype=object)


def counts(rows: np.ndarray, modulus: int, coefficient: int, counter=count_by_definition) -> np.ndarray:
    """A counter on each row of (batch, n) tokens: (batch, n)."""
    return np.array([counter(list(row), modulus, coefficient) for row in rows], dtype=object)


def is_symmetric(modulus: int, coefficient: int, predicate=residue) -> bool:
    """Whether the predicate never changes when x_j1 and x_j2 change places, tried on all residues."""
    return all((predicate(x, a, b, coefficient, modulus) == 0) == (predicate(x, b, a, coefficient, modulus) == 0)
               for x, a, b in product(range(modulus), repeat=3))


def detects_every_swap(modulus: int, coefficient: int, predicate=residue) -> bool:
    """Whether exchanging two different residues always changes x_i + G x_j1 + x_j2 mod M, tried on all residues."""
    return all(predicate(x, a, b, coefficient, modulus) != predicate(x, b, a, coefficient, modulus)
               for x, a, b in product(range(modulus), repeat=3) if a != b)


def is_order_sensitive(tokens: Sequence[int], modulus: int, coefficient: int) -> bool:
    """Whether exchanging x_j1 and x_j2 changes x_i + G x_j1 + x_j2 mod M for some pair of these tokens."""
    return any(residue(x, a, b, coefficient, modulus) != residue(x, b, a, coefficient, modulus)
               for x, a, b in product(tokens, repeat=3))
