"""The dimension that a layer's attention operators span, against H and P: measured, and what bounds it."""

from __future__ import annotations

from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.operator_span import KINDS, drawn_operators, operator_span
from figures.style import BLACK, GREEN, LOOKS, VERMILLION, canvas

CLAIMS = ("Lower bounds/span-mixed", "Lower bounds/span-iha", "Lower bounds/span-multi-head",
          "Lower bounds/span-grouped-query", "Lower bounds/span-multi-query", "Lower bounds/span-talking-heads")

#: Left: these H, every P up to the last. Right: every H up to the last, IHA with these P and with P = H.
HEADS, MOST_PSEUDO_HEADS, MOST_HEADS, PSEUDO_HEADS = (4, 6, 9), 6, 8, 2


@dataclass(frozen=True)
class Data:
    """Exact ranks at drawn weights.

    ``span`` and ``patterns``: for each H, the rank and the number of IHA's operators at P = 1, 2, ... ``kinds``: for
    each kind of layer, the rank at each H; IHA twice, with P = 2 and with P = H.
    """

    pseudo_heads: tuple[int, ...]
    span: dict[int, tuple[int, ...]]
    patterns: dict[int, tuple[int, ...]]
    heads: tuple[int, ...]
    kinds: dict[str, tuple[int, ...]]


def data() -> Data:
    """Every rank is computed over the rationals."""
    counts, heads = tuple(range(1, MOST_PSEUDO_HEADS + 1)), tuple(range(1, MOST_HEADS + 1))
    kinds = {kind: tuple(operator_span(kind, h) for h in heads) for kind in KINDS if kind != "iha"}
    kinds["IHA, P = H"] = tuple(operator_span("iha", h, h) for h in heads)
    kinds[f"IHA, P = {PSEUDO_HEADS}"] = tuple(operator_span("iha", h, PSEUDO_HEADS) for h in heads)
    return Data(counts, {h: tuple(operator_span("iha", h, p) for p in counts) for h in HEADS},
                {h: tuple(_number(h, p) for p in counts) for h in HEADS}, heads, kinds)


def _number(heads: int, pseudo_heads: int) -> int:
    """How many operators the layer has, equal ones and all."""
    found = drawn_operators("iha", heads, pseudo_heads)
    return found.size // found.shape[-1] ** 2


def draw(data: Data) -> Figure:
    """Two panels: against P, and against H beside other layers."""
    figure = canvas("IHA's HP² attention patterns span min(H², HP²) dimensions, where other layers span H: beyond ⌈√H⌉ "
                    "pseudo-heads no dimension is added")
    left, right = figure.subplots(1, 2, sharey=True)
    for h, look in zip(HEADS, ("third", "second", "first"), strict=True):
        bound = [min(h * h, count) for count in data.patterns[h]]
        left.plot(data.pseudo_heads, bound, **LOOKS[look].line_with())
        left.plot(data.pseudo_heads, data.span[h], **LOOKS[look].points_with())
        left.plot([], [], **LOOKS[look].both_with(label=f"H = {h}: measured rank, and min(H², HP²)"))
        left.annotate(f"{max(data.span[h])}", (data.pseudo_heads[-1], data.span[h][-1]), xytext=(0, 6), ha="center",
                      textcoords="offset points", color=LOOKS[look].colour)
    for h in HEADS:
        left.plot(data.pseudo_heads, data.patterns[h],
                  **LOOKS["printed"].line_with(label="HP² patterns, the paper's count" if h == HEADS[-1] else None))
    left.set(title="IHA at drawn weights, against P", xlabel="P, pseudo-heads", ylabel="dimension of the span")
    _beside_others(right, data)
    for axes in (left, right):
        axes.set(yscale="log", ylim=(0.8, 2200))
        axes.set_yticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
        axes.minorticks_off()
        axes.legend(loc="upper left")
    return figure


def _beside_others(axes: Axes, data: Data) -> None:
    for kind, look in (("IHA, P = H", "first"), (f"IHA, P = {PSEUDO_HEADS}", "second")):
        axes.plot(data.heads, data.kinds[kind], **LOOKS[look].both_with(label=kind))
    for kind, marker, size, colour in (("multi-head", "s", 11, BLACK), ("grouped-query", "D", 8, GREEN),
                                       ("multi-query", "o", 4.5, VERMILLION), ("talking-heads", "+", 9, BLACK)):
        axes.plot(data.heads, data.kinds[kind], linestyle="none", marker=marker, markersize=size, color=colour,
                  markerfacecolor="none", markeredgewidth=1.2, label=kind)
    axes.set(title="Beside other layers, against H", xlabel="H, heads")
