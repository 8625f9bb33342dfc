"""Constructions to be run in floating point on a device: what goes in, what should come out, and how far off it may be.

Nothing here needs torch; :mod:`iha_theory.torch_device` runs the cases.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from iha_theory.layer import IHA


class Arithmetic(NamedTuple):
    """Relative errors of one rounding.

    Attributes:
        stored: of numbers that are kept (weights, results of products). added: inside sums.
        factor: of the factors of a matrix product, where they are rounded once more (TF32); 0 elsewhere.
    """

    stored: float
    added: float
    factor: float = 0.0

    def gamma(self, stored: int, added: int, factors: int) -> float:
        """The relative error that so many roundings of each kind can make: t / (1 - t), t their sum.

        Raises:
            ValueError: the sum is 1 or more, and nothing follows.
        """
        t = stored * self.stored + added * self.added + factors * self.factor
        if t >= 1:
            raise ValueError(f"{stored}, {added} and {factors} roundings of {self} can make any error; take fewer")
        return t / (1 - t)


@dataclass(frozen=True)
class DeviceCase:
    """A layer, its input, and the exact output.

    Attributes:
        name: what is computed. weights: the layer, in float64. x: (token, model). target: (token, column), exact.
        attention: "linear", "hard", or "softmax" with the inverse temperature ``beta``: weights exp(beta q k^T).
        bound: of |output - target|, (token, column), in a given arithmetic; it is computed, not measured.
        is_rounded: whether the output, rounded to integers, has to be the target, too.
    """

    name: str
    weights: IHA
    x: np.ndarray
    target: np.ndarray
    attention: str
    bound: Callable[[Arithmetic], np.ndarray]
    beta: float | None = None
    is_rounded: bool = False

    @property
    def temperature(self) -> float | None:
        """What the layer divides by, besides sqrt(d_k)."""
        return None if self.beta is None else 1 / (self.beta * self.weights.sizes["key"] ** 0.5)
