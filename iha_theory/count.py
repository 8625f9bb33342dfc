"""Counting: parameters from the axes, with integers or with symbols; heads; head counts."""

from __future__ import annotations

from collections.abc import Mapping
from math import isqrt
from typing import Any

from iha_theory.layer import AXES, IHA, MIXING


def ceil_sqrt(k: int) -> int:
    """The least H with H * H >= k, for k >= 1: the head count of Theorems 3 and 4.

    Raises:
        ValueError: k is below 1.
    """
    if k < 1:
        raise ValueError(f"k: got {k}, wanted at least 1")
    return isqrt(k - 1) + 1


def parameters(sizes: Mapping[str, Any], *, mixed: bool = True) -> Any:
    """The parameter count of a layer: for each weight the product of the sizes of its axes, summed.

    Args:
        sizes: axis name to size, an integer or a symbol (any value that adds and multiplies).
        mixed: False leaves out the mixing and collapse weights, as for multi-head attention.
    """
    total: Any = 0
    for name, axes in AXES.items():
        if mixed or name not in MIXING:
            product: Any = 1
            for axis in axes.split():
                product = product * sizes[axis]
            total = total + product
    return total


def counted(weights: IHA) -> int:
    """The parameter count of built weights: the number of entries of the arrays that are there."""
    return sum(array.size for array in weights.fields().values())


def memory(weights: Mapping[str, int], tokens: int, bytes_per_entry: int) -> int:
    """Bytes of the arrays that live at once while a layer is run: weights, pseudo-heads and their temporaries.

    Args:
        weights: the sizes of the axes (see :attr:`iha_theory.layer.IHA.sizes`). tokens: N.
        bytes_per_entry: 8 for float64 and residues; for exact entries the size of a number and its pointer.
    """
    stored = parameters(weights)
    virtual = weights["head"] * weights["pseudo"] * tokens
    return bytes_per_entry * (stored + 2 * virtual * (weights["key"] + weights["value"]))
