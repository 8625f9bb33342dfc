"""Shared brick: turns for rotary positions, (position, pair of features) to (cosine, sine)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flint

from iha_theory.scalars import BALLS, Domain


def quarter(position: int, pair: int) -> tuple[int, int]:
    """A quarter turn for each position: exact over every ring."""
    return ((1, 0), (0, 1), (-1, 0), (0, -1))[position % 4]


def radian(position: int, pair: int) -> tuple[flint.arb, flint.arb]:
    """10000^-pair radians for each position, as balls."""
    angle = flint.arb(position) / 10000**pair
    return angle.cos(), angle.sin()


def turn_of(domain: Domain) -> Callable[[int, int], tuple[Any, Any]]:
    """The turn that serves a domain: one radian over balls, else a quarter."""
    return radian if domain is BALLS else quarter
