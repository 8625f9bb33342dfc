"""Brick of Theorem 4: the MLP that counts the matches of a workspace, and the pipeline from tokens to counts.

Row i of the workspace holds all tokens in a known order, its own token first. One hidden unit for each ordered pair
(c1, c2) of columns receives s = x_i + G x_(i+c1) + x_(i+c2); its activation is 1 where M divides s and 0 at every other
integer; the output adds the units. As (c1, c2) runs through all N^2 pairs of columns, so do the tokens they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import flint
import numpy as np

from constructions.shifts import cyclic_shifts, with_positions
from iha_theory.attention import hard
from iha_theory.count import ceil_sqrt
from iha_theory.layer import forward
from iha_theory.scalars import RATIONALS, as_fraction, elementwise

MLP_AXES = {"w_1": "model hidden", "b_1": "hidden", "w_2": "hidden out"}


@dataclass(frozen=True, eq=False)
class MLP:
    """Two layers: ``activation(rows w_1 + b_1) w_2``, with the axes of :data:`MLP_AXES`; no ``b_1``, no bias."""

    w_1: np.ndarray
    w_2: np.ndarray
    activation: Callable[[Any], Any]
    b_1: np.ndarray | None = None

    def hidden(self, rows: np.ndarray) -> np.ndarray:
        """What the hidden units receive: (..., model) to (..., hidden)."""
        received = rows @ self.w_1
        return received if self.b_1 is None else received + self.b_1

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """(..., model) to (..., out)."""
        return elementwise(self.activation, self.hidden(rows)) @ self.w_2

    @property
    def units(self) -> int:
        return self.w_1.shape[1]

    @property
    def parameters(self) -> int:
        return sum(array.size for array in (self.w_1, self.b_1, self.w_2) if array is not None)


def divides(modulus: int) -> Callable[[Any], Any]:
    """The modulo activation, ReLU(1 - (s mod M)): 1 where M divides s, 0 at every other integer."""
    return lambda s: max(0, 1 - _remainder(s, modulus))


def relu(s: Any) -> Any:
    """max(0, s)."""
    return s if s > 0 else s - s


def _remainder(s: Any, modulus: int) -> Any:
    """s mod M in [0, M), for any rational s."""
    if isinstance(s, flint.fmpq):
        s = int(s.p) if s.q == 1 else as_fraction(s)
    return s % modulus


def every_pair(n: int) -> list[tuple[int, int]]:
    """The N^2 ordered pairs of columns."""
    return [(first, second) for first in range(n) for second in range(n)]


def pair_mlp(pairs: Iterable[tuple[int, int]], width: int, modulus: int, coefficient: Any, one: Any = 1) -> MLP:
    """One hidden unit with the modulo activation for each given ordered pair of columns.

    Args:
        pairs: (c1, c2). width: columns of the workspace. coefficient: G, a number or a symbol. one: of its ring.
    """
    pairs = list(pairs)
    w_1 = np.full((width, len(pairs)), one - one, dtype=object)
    for unit, (first, second) in enumerate(pairs):
        w_1[0, unit] += one
        w_1[first, unit] += coefficient
        w_1[second, unit] += one
    return MLP(w_1, np.full((len(pairs), 1), one, dtype=object), divides(modulus))


def counting_mlp(n_max: int, modulus: int, coefficient: int, *, width: int | None = None) -> MLP:
    """The MLP with the modulo activation that counts the matches of ``n_max`` tokens from a workspace (Theorem 4).

    Args:
        n_max: tokens, at least 1. modulus: M, at least 1. coefficient: G, at least 0; that G > 2M is not needed.
        width: columns of the workspace; None takes those of the IHA layer, ceil(sqrt n_max)^2, of which the columns
            from n_max on get weight 0. Multi-head attention has n_max.

    Returns:
        w_1 (width, n_max^2): column (c1, c2) is e_0 + G e_c1 + e_c2. w_2 (n_max^2, 1): ones.

    Raises:
        ValueError: a size or number out of range.
    """
    check_task(n_max, modulus, coefficient)
    return pair_mlp(every_pair(n_max), _width(n_max, width), modulus, coefficient)


def counting_relu_mlp(n_max: int, modulus: int, coefficient: int, largest: int, *, width: int | None = None) -> MLP:
    """The same counts by plain ReLU, for tokens from 0 to ``largest``: a bump at every multiple of M within range.

    The sum s of a pair is an integer from 0 to (G + 2) ``largest``. At each multiple c of M up to there, of which there
    are B = floor((G + 2) largest / M) + 1, the bump ReLU(s - c + 1) - 2 ReLU(s - c) + ReLU(s - c - 1) is 1 at c and
    0 at every other integer. That makes 3 N^2 B units.

    Args and errors as for :func:`counting_mlp`; ``largest`` is at least 0.
    """
    check_task(n_max, modulus, coefficient)
    if largest < 0:
        raise ValueError(f"largest token: got {largest}, wanted at least 0")
    base = counting_mlp(n_max, modulus, coefficient, width=width)
    kinks = [(multiple + side, weight) for multiple in range(0, (coefficient + 2) * largest + 1, modulus)
             for side, weight in ((-1, 1), (0, -2), (1, 1))]
    b_1 = np.array([-place for place, _ in kinks] * base.units, dtype=object)
    w_2 = np.array([[weight] for _, weight in kinks] * base.units, dtype=object)
    return MLP(np.repeat(base.w_1, len(kinks), axis=1), w_2, relu, b_1)


def _width(n_max: int, width: int | None) -> int:
    width = ceil_sqrt(n_max) ** 2 if width is None else width
    if width < n_max:
        raise ValueError(f"width: got {width} columns of the workspace, wanted at least n_max={n_max}")
    return width


def check_task(n: int, modulus: int, coefficient: int) -> None:
    """Refuse sizes for which CPM-3 is not defined, with a ValueError."""
    wanted = (("number of tokens n", n, 1), ("modulus M", modulus, 1), ("coefficient G", coefficient, 0))
    for name, value, least in wanted:
        if not isinstance(value, int | np.integer) or value < least:
            raise ValueError(f"CPM-3: got the {name}={value}, wanted an integer of at least {least}")


def filled_up(tokens: Sequence[int], n_max: int, modulus: int, coefficient: int) -> tuple[list[int], int]:
    """A shorter sequence made into ``n_max`` tokens with the same counts: (tokens, modulus), scaled and padded with 1.

    Each token is multiplied by G + 2, each pad is 1, the modulus becomes (G + 2) M. Modulo G + 2 the sum of a pair is 0
    if both are tokens, G if the first is a pad, 1 if the second is, G + 1 if both are. With G >= 1 only the first of
    these is 0 modulo G + 2, so no pair with a pad matches; and pairs of tokens match as before.
    """
    pads = [1] * (n_max - len(tokens))
    return [(coefficient + 2) * token for token in tokens] + pads, (coefficient + 2) * modulus


def count_matches(tokens: Sequence[int], n_max: int, modulus: int, coefficient: int) -> list[int]:
    """The counts of CPM-3 by the construction: one IHA layer with hard attention, then the MLP (Theorems 4 and 7).

    Args:
        tokens: N naturals, 1 <= N <= n_max. A sequence shorter than n_max is scaled and padded (:func:`filled_up`).
        n_max: what the layer is built for. modulus: M >= 1. coefficient: G >= 0, and G >= 1 for N < n_max.

    Returns:
        N counts.

    Raises:
        ValueError: a token that is no natural number, too many or no tokens, or a size out of range.
    """
    check_task(n_max, modulus, coefficient)
    given = [_natural(token, place) for place, token in enumerate(tokens)]
    if not 1 <= len(given) <= n_max:
        raise ValueError(f"tokens: got {len(given)}, wanted 1 to n_max={n_max}")
    row = given
    if len(given) < n_max:
        if coefficient < 1:
            raise ValueError(f"{len(given)} tokens are fewer than n_max={n_max}, which needs a coefficient G of at "
                             "least 1; got G=0. Give n_max tokens or another G")
        row, modulus = filled_up(given, n_max, modulus, coefficient)
    x = with_positions(RATIONALS.array(np.array(row, dtype=object).reshape(n_max, 1)))
    matches = counting_mlp(n_max, modulus, coefficient)(forward(cyclic_shifts(n_max), x, hard))
    return [int(count) for count in matches[: len(given), 0]]


def _natural(token: Any, place: int) -> int:
    if not isinstance(token, int | np.integer) or token < 0:
        raise ValueError(f"tokens[{place}]: got {token!r}, wanted a natural number")
    return int(token)
