"""From softmax to hard attention: the error of the cyclic shifts against the inverse temperature, and the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import log

import numpy as np
from matplotlib.figure import Figure

from constructions.shifts import cyclic_shifts, with_positions, workspace
from constructions.temperature import least_base, warm_output
from figures.style import BLACK, GREY, LOOKS, canvas
from iha_theory.attention import softmax
from iha_theory.layer import forward
from iha_theory.scalars import RATIONALS, as_fraction

CLAIMS = ("4/warm-output", "4/rounding-above", "4/rounding-below", "4/rounding-at")

SIZES, SPREAD, LARGEST_POWER, STEPS = (4, 9, 16), 9, 12, 4
_POWER = r"$\mathbf{e}^{\mathbf{\beta}}$"


@dataclass(frozen=True)
class Data:
    """For each N the largest error of any input of spread D, against b = e^beta.

    ``measured``: at powers of 2, by running the layer exactly. ``curve``: by the closed form, for every b of the grid.
    ``threshold``: the b above which rounding recovers every token.
    """

    bases: tuple[int, ...]
    measured: dict[int, tuple[Fraction, ...]]
    grid: tuple[Fraction, ...]
    curve: dict[int, tuple[Fraction, ...]]
    threshold: dict[int, int]


def worst_tokens(n: int) -> np.ndarray:
    """Tokens (n, 1) with the largest error there is: one at an end, all others at the other."""
    return RATIONALS.array([[SPREAD]] + [[0]] * (n - 1))


def largest(output: np.ndarray, tokens: np.ndarray) -> Fraction:
    """The largest absolute difference between the output and the wanted tokens."""
    return max(abs(as_fraction(value)) for value in (output - workspace(tokens, output.shape[1])).flat)


def data() -> Data:
    """Everything in exact rationals: softmax at a rational base."""
    bases = tuple(2**i for i in range(LARGEST_POWER + 1))
    grid = tuple(Fraction(round(2 ** (10 + i / STEPS)), 2**10) for i in range(LARGEST_POWER * STEPS + 1))
    measured, curve = {}, {}
    for n in SIZES:
        layer, tokens = cyclic_shifts(n), worst_tokens(n)
        x = with_positions(tokens)
        measured[n] = tuple(largest(forward(layer, x, softmax(base=base)), tokens) for base in bases)
        curve[n] = tuple(largest(warm_output(tokens, n, RATIONALS.element(base)), tokens) for base in grid)
    return Data(bases, measured, grid, curve, {n: least_base(n, SPREAD) for n in SIZES})


def draw(data: Data) -> Figure:
    """One panel: error against beta, with a vertical line at each threshold."""
    figure = canvas(rf"Rounding recovers every token exactly when {_POWER} > (N−1)(2D−1): there the largest error of "
                    "softmax falls below one half", height=4.6)
    axes = figure.subplots()
    axes.axhline(0.5, color=BLACK, linewidth=1)
    axes.text(-0.1, 0.53, "rounding recovers the tokens below 1/2", va="bottom")
    betas = [log(base) for base in data.bases]
    for n, look in zip(SIZES, ("first", "second", "third"), strict=True):
        axes.plot([log(base) for base in data.grid], list(map(float, data.curve[n])), **LOOKS[look].line_with())
        axes.plot(betas, list(map(float, data.measured[n])), **LOOKS[look].points_with())
        axes.plot([], [], **LOOKS[look].both_with(label=rf"N = {n}: $e^\beta$ > {data.threshold[n]}"))
        threshold = log(data.threshold[n])
        axes.plot([threshold] * 2, [0.01, 0.5], color=LOOKS[look].colour, linestyle=LOOKS[look].line, linewidth=1.2)
        axes.text(threshold, 0.0085, f"β = {threshold:.2f}", ha="center", va="top", color=LOOKS[look].colour)
    axes.set(
        yscale="log", ylim=(0.004, 20), xlim=(-0.15, betas[-1] + 0.2), ylabel="largest error of a token",
        xlabel="β, inverse temperature (logits β·{0, 1})",
        title=f"Cyclic shifts of N tokens with max − min = D = {SPREAD}: the layer run exactly (markers), the closed "
        "form (lines)")
    axes.legend(loc="upper right")
    axes.tick_params(color=GREY)
    return figure

