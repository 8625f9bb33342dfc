"""What the command line is given: the catalogue, the worked examples and the builders, loaded only when needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iha_theory.claims import Theorem
from iha_theory.device_cases import DeviceCase
from iha_theory.display import Example
from iha_theory.layer import IHA, Attention
from iha_theory.tables import Table


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
class AccountTable:
    """A table that ``counts`` offers: ``options`` are the options that ``make`` takes, all of them optional."""

    says: str
    options: tuple[str, ...]
    make: Callable[..., Table]


@dataclass(frozen=True)
class BoundReport:
    """What is possible and what is not for one matrix: numbers, one row for each convention, certificates.

    Attributes:
        numbers: s, rho, tau and the like, each with its value in words.
        rows: convention, least heads, why not fewer, how the layer that meets it was verified, what the paper says.
        certificates: each as plain data, with ``accepted``: what its checker says.
        notes: sentences on pseudo-heads and on what the bounds rest on.
        is_sound: whether every certificate was accepted and every layer output the bank.
    """

    numbers: Mapping[str, str]
    rows: tuple[tuple[str, ...], ...]
    certificates: tuple[Mapping[str, Any], ...]
    notes: tuple[str, ...]
    is_sound: bool


@dataclass(frozen=True)
class Book:
    """Everything the command line reads."""

    theorems: tuple[Theorem, ...]
    examples: Mapping[str, Callable[[], Example]]
    builders: Mapping[str, Builder]
    attentions: Mapping[str, Attention]
    accounts: Mapping[str, AccountTable] = field(default_factory=dict)
    bounds: Callable[[np.ndarray, int], BoundReport] | None = None
    device_cases: Callable[[str], tuple[DeviceCase, ...]] | None = None


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
