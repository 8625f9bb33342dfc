"""Matrices whose powers are worked by hand: for each, how many heads the bounds should come to."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from iha_theory.graphs import load_graph
from iha_theory.scalars import RATIONALS

#: The name of a matrix and the k that it is tried at.
GALLERY = (("identity", 3), ("triple", 3), ("swap", 5), ("nilpotent", 5), ("transvection", 4), ("projection", 4),
           ("degree 2", 4), ("cyclic", 4), ("cyclic", 6), ("invertible", 3), ("two components", 4), ("halves", 4))
#: s, rho, min(k, tau) and the least heads in order with one width, worked by hand.
EXPECTED = {
    ("identity", 3): (1, 1, 1, 1), ("triple", 3): (1, 1, 1, 1), ("swap", 5): (2, 2, 5, 5),
    ("nilpotent", 5): (3, 3, 3, 5), ("transvection", 4): (2, 4, 4, 4), ("projection", 4): (2, 2, 2, 4),
    ("degree 2", 4): (2, 4, 4, 4), ("cyclic", 4): (4, 4, 4, 4), ("cyclic", 6): (4, 4, 6, 6),
    ("invertible", 3): (3, 3, 3, 3), ("two components", 4): (2, 2, 4, 4), ("halves", 4): (2, 4, 4, 4),
}


def sample(name: str) -> np.ndarray:
    """A matrix of the gallery, exact.

    Raises:
        KeyError: an unknown name.
    """
    eye = np.eye(4, dtype=int)
    gallery: dict[str, Any] = {
        "identity": eye,
        "triple": 3 * eye,
        "swap": [[0, 1], [1, 0]],
        "nilpotent": np.eye(4, k=1, dtype=int) * np.array([1, 1, 0, 0])[:, None],
        "transvection": [[1, 1], [0, 1]],
        "projection": [[1, 1], [0, 0]],
        "degree 2": np.diag([1, 1, 2]),
        "cyclic": np.roll(eye, 1, axis=1),
        "path": np.eye(2, k=1, dtype=int),
        "invertible": [[2, 1, 0], [0, 1, -1], [1, 0, 3]],
        "two components": np.kron(np.eye(2, dtype=int), [[0, 1], [1, 0]]),
        "halves": [[Fraction(1, 2), Fraction(1, 3)], [0, Fraction(1, 2)]],
    }
    return RATIONALS.array(gallery[name] if name in gallery else load_graph(name).adjacency)
