"""What the tests of Theorem 4 share: tokens as a column, the shifts of a layer, and counting by brute force."""

from fractions import Fraction
from typing import Any

import numpy as np

from constructions.shifts import with_positions
from iha_theory import RATIONALS, forward, hard

HALF: Any = 2.5


def column(*tokens):
    return RATIONALS.array(np.array(tokens, dtype=object).reshape(-1, 1))


def shifts_of(weights, *tokens):
    return forward(weights, with_positions(column(*tokens)), hard)


def fractions(array) -> Any:
    """The nested lists of an array, as Fractions."""
    if isinstance(array, np.ndarray):
        return [fractions(part) for part in array]
    return Fraction(int(array.p), int(array.q))


def brute_force(tokens, modulus, coefficient):
    counts = []
    for i in range(len(tokens)):
        hits = 0
        for j1 in range(len(tokens)):
            for j2 in range(len(tokens)):
                if (tokens[i] + coefficient * tokens[j1] + tokens[j2]) % modulus == 0:
                    hits += 1
        counts.append(hits)
    return counts
