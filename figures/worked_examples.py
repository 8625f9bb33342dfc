"""The worked examples k = 4 and N = 4 as labelled matrices: attention patterns in interleaved order, and the output."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from einops import rearrange
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from constructions.examples import k4, n4
from figures.style import BLACK, GREY, SKY, YELLOW, canvas
from iha_theory.attention import pattern
from iha_theory.display import Example
from iha_theory.layer import forward, pseudo_heads
from iha_theory.scalars import as_fraction

CLAIMS = ("3/k4", "4/shifts")

#: The colour of what a pseudo-key contributes; the numbers in the cells say the same without colour.
KEYS = (SKY, YELLOW)
_NONE, _IGNORED = "white", "#EDEDED"


@dataclass(frozen=True)
class Worked:
    """An example's pattern (head, row, column), rows and columns token-major, which rows R reads, and its output.

    Row and column nP + j are pseudo-head j of token n. ``read`` is (head, row). ``output`` is (token, column).
    """

    name: str
    pattern: np.ndarray
    read: np.ndarray
    output: np.ndarray
    pseudo: int


@dataclass(frozen=True)
class Data:
    """Both examples."""

    k4: Worked
    n4: Worked


def worked(make: Callable[[], Example]) -> Worked:
    """The patterns of an example, by its own attention, and its output."""
    example = make()
    q, k, _ = pseudo_heads(example.weights, example.x)
    found = pattern(example.attention, q, k, example.one)
    pseudo = q.shape[1]
    interleaved = rearrange(found, "head j token (j2 token2) -> head (token j) (token2 j2)", j2=pseudo)
    used = (example.weights.fields()["collapse"] != 0).any(axis=0)
    read = np.repeat(used[:, None, :], q.shape[2], axis=1).reshape(len(used), -1)
    output = forward(example.weights, example.x, example.attention)
    return Worked(example.name, np.vectorize(as_fraction)(interleaved), read, np.vectorize(as_fraction)(output), pseudo)


def data() -> Data:
    """The examples that ``iha-theory show k4`` and ``n4`` print."""
    return Data(worked(k4), worked(n4))


def draw(data: Data) -> Figure:
    """A row for each example: the pattern of each head, and the output."""
    heads, pseudo = len(data.k4.pattern), data.k4.pseudo
    figure = canvas(
        f"Interleaved, {heads} heads hold {heads * pseudo} operators: in head h the columns of pseudo-key j hold the "
        f"power, or the shift, number {pseudo}h + j", width=11.2, height=9.4)
    panels = figure.subplots(2, 3, width_ratios=(1, 1, 0.62))
    columns = data.k4.output.shape[1]
    rows = ((f"k = {columns}, linear attention", data.k4, [f"$A^{i}X$" for i in range(columns)]),
            (f"N = {columns}, hard attention", data.n4, [f"$x_{{i+{i}}}$" for i in range(columns)]))
    for (title, example, names), axes in zip(rows, panels, strict=True):
        for head in range(len(example.pattern)):
            _pattern(axes[head], example, head)
            axes[head].set_title(f"{title}, head {head}")
        _output(axes[-1], example, names)
    return figure


def _pattern(axes: Axes, example: Worked, head: int) -> None:
    size = example.pattern.shape[1]
    names = [f"{place // example.pseudo},{place % example.pseudo}" for place in range(size)]
    for row, column in np.ndindex(size, size):
        value, live = example.pattern[head, row, column], bool(example.read[head, row])
        colour = _IGNORED if not live else KEYS[column % example.pseudo] if value else _NONE
        _cell(axes, row, column, _text(value), colour, BLACK if live else GREY)
    _frame(axes, names, names)
    axes.set_xlabel("key: token, pseudo-head")
    axes.set_ylabel("query: token, pseudo-head (grey: R ignores it)")


def _output(axes: Axes, example: Worked, names: list[str]) -> None:
    heads = len(example.pattern)
    for row, column in np.ndindex(*example.output.shape):
        _cell(axes, row, column, _text(example.output[row, column]) or "0", KEYS[column % (len(names) // heads)])
    _frame(axes, [str(row) for row in range(len(example.output))], names)
    axes.axvline(len(names) / heads, color=BLACK, linewidth=2)
    axes.set(title="Output: head 0, head 1", ylabel="token")


def _cell(axes: Axes, row: int, column: int, text: str, colour: str, ink: str = BLACK) -> None:
    axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="#888888", linewidth=0.7))
    if text:
        size = 9 if len(text) < 4 else 8
        axes.text(column + 0.5, row + 0.52, text, ha="center", va="center", color=ink, fontsize=size)


def _frame(axes: Axes, rows: list[str], columns: list[str]) -> None:
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0), aspect="equal")
    axes.set_xticks([place + 0.5 for place in range(len(columns))], columns)
    axes.set_yticks([place + 0.5 for place in range(len(rows))], rows)
    axes.tick_params(length=0, labelsize=8.5)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _text(value: Any) -> str:
    fraction = Fraction(value)
    return "" if not fraction else str(fraction)
