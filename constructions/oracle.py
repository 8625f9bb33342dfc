"""The filter bank by its definition: repeat Y <- A Y. It shares no code with the constructions it judges."""

from __future__ import annotations

import numpy as np


def filter_bank(a: np.ndarray, x: np.ndarray, k: int) -> np.ndarray:
    """``[X, AX, ..., A^(k-1) X]`` side by side: (n, k d), for a (n, n) matrix and (n, d) features."""
    columns = [x]
    while len(columns) < k:
        columns.append(a @ columns[-1])
    return np.concatenate(columns, axis=1)
