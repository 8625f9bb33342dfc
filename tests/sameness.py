"""Whether two values hold the same numbers, however deep."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np


def is_same(one: Any, other: Any) -> bool:
    """Whether two records, arrays, collections or scalars are equal part by part; functions are taken to be."""
    if isinstance(one, np.ndarray):
        return one.shape == other.shape and all(map(is_same, one.flat, other.flat))
    if dataclasses.is_dataclass(one):
        return all(is_same(getattr(one, field.name), getattr(other, field.name)) for field in dataclasses.fields(one))
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(is_same, one, other))
    if isinstance(one, Mapping):
        return is_same(list(one.items()), list(other.items()))
    return callable(one) or str(one) == str(other)
