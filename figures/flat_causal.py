"""What a standard causal kernel does to the inclusion of multi-head attention, for each pseudo-head that R picks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import flint
import numpy as np
from matplotlib.figure import Figure

from constructions.inclusions import inclusion
from figures.style import LOOKS, canvas
from iha_theory.attention import flat_causal, softmax, token_causal
from iha_theory.layer import IHA, forward, multi_head
from iha_theory.scalars import BALLS

CLAIMS = ("2/flat-error", "2/flat-largest", "2/flat-last", "2/inclusion-token", "2/flat-printed")

MOST_PSEUDO_HEADS, SHOWN, STEPS = 16, 4, 24


@dataclass(frozen=True)
class Data:
    """The error |IHA - multi-head attention| at the second of two tokens, their values 1 apart.

    ``against_p``: for P = ``SHOWN`` and each J, against the weight p of the token on itself. ``worst``: for each P and
    J the error at the p where it is largest.
    """

    p: tuple[float, ...]
    against_p: dict[int, tuple[float, ...]]
    worst: dict[int, dict[int, float]]


def two_tokens(weight: flint.arb) -> tuple[IHA, np.ndarray]:
    """One head and two tokens, the second of which weighs itself by ``weight`` and the first by 1 less that."""
    one = BALLS.array([[[1], [0]]])
    score = (weight / (1 - weight)).log()
    return multi_head(one * score, one, one), BALLS.array([[0, 1], [1, 0]])


def error(pseudo_heads: int, picked: int, weight: flint.arb) -> float:
    """The error when R picks pseudo-head number ``picked``, from 1, by running both layers."""
    heads, x = two_tokens(weight)
    layer = inclusion(heads, pseudo_heads, pick=picked - 1)
    mixed = forward(layer, x, softmax(mask=flat_causal))
    return float(abs((mixed - forward(heads, x, softmax(mask=token_causal)))[1, 0]).mid())


def worst_weight(pseudo_heads: int, picked: int) -> flint.arb:
    """The p at which the error is largest: 1 / (1 + sqrt(J / P))."""
    return 1 / (1 + (flint.arb(picked) / pseudo_heads).sqrt())


def data() -> Data:
    """Every error is measured on built layers, over balls; the formula says only where to measure the largest."""
    grid = [Fraction(i, STEPS) for i in range(1, STEPS)]
    against_p = {j: tuple(error(SHOWN, j, BALLS.element(p)) for p in grid) for j in range(1, SHOWN + 1)}
    worst = {count: {j: error(count, j, worst_weight(count, j)) for j in range(1, count + 1)}
             for count in range(1, MOST_PSEUDO_HEADS + 1)}
    return Data(tuple(map(float, grid)), against_p, worst)


def draw(data: Data) -> Figure:
    """Two panels: the error against the token's weight on itself, and the worst one against P."""
    first = data.worst[SHOWN][1]
    figure = canvas(
        f"Under a flat causal mask only the last pseudo-head equals multi-head attention; the first, as printed, "
        f"errs by up to {data.worst[2][1]:.2f} of the values' distance for P = 2, {first:.2f} for P = {SHOWN}")
    left, right = figure.subplots(1, 2)
    looks = ("second", "third", "fourth", "first")
    for (picked, errors), look in zip(data.against_p.items(), looks, strict=True):
        left.plot(data.p, errors, **LOOKS[look].both_with(label=_named(picked, SHOWN), markevery=3))
    left.set(title=f"P = {SHOWN}", xlabel="p, weight of the token on itself", ylabel="error / distance of the values")
    for picked, look in zip((1, 2, 4, 8), ("second", "third", "fourth", "fifth"), strict=True):
        counts = [count for count in data.worst if count >= picked]
        right.plot(counts, [data.worst[count][picked] for count in counts],
                   **LOOKS[look].both_with(label=f"J = {picked}" + (", as printed" if picked == 1 else "")))
    right.plot(list(data.worst), [data.worst[count][count] for count in data.worst],
               **LOOKS["first"].both_with(label="J = P, the correction"))
    right.set(title="The worst weight p", xlabel="P, pseudo-heads", ylabel="largest error / distance of the values")
    for axes in (left, right):
        axes.set_ylim(-0.03, 0.9)
        axes.legend(loc="upper left", title="R picks pseudo-head J", alignment="left")
    left.set_ylim(-0.015, 0.6)
    return figure


def _named(picked: int, count: int) -> str:
    note = {1: ", the first, as printed", count: ", the last: the correction"}.get(picked, "")
    return f"J = {picked}{note}"
