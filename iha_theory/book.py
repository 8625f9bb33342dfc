"""What the command line is given: the catalogue, the worked examples and the builders, loaded only when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iha_theory.claims import Theorem
from iha_theory.display import Example
from iha_theory.layer import IHA, Attention


@dataclass(frozen=True)
class Built:
    """Weights with the attention they are meant for.

    Attributes:
        attention: a name in :attr:`Book.attentions`.
        positions: how many columns of an identity positional code follow the features in the input; 0 for none.
        columns: how many output columns are meant; the rest is padding.
    """

    weights: IHA
    attention: str
    positions: int
    columns: int


@dataclass(frozen=True)
class Builder:
    """A construction that ``build`` offers: ``options`` are the options that ``make`` takes, those required first."""

    says: str
    required: tuple[str, ...]
    optional: tuple[str, ...]
    make: Callable[..., Built]


@dataclass(frozen=True)
class Book:
    """Everything the command line reads."""

    theorems: tuple[Theorem, ...]
    examples: Mapping[str, Callable[[], Example]]
    builders: Mapping[str, Builder]
    attentions: Mapping[str, Attention]


def with_positions(features: np.ndarray, positions: int) -> np.ndarray:
    """``[X, I]`` in float64: the features with the identity positional code beside them.

    Raises:
        ValueError: the number of rows is not the number of positions.
    """
    if not positions:
        return features
    if features.shape[0] != positions:
        raise ValueError(f"the input has {features.shape[0]} rows, but the layer was built for {positions} tokens")
    return np.concatenate([features, np.eye(positions)], axis=1)
