"""Heads against the number of powers, with what is impossible, and heads against the number of tokens (CPM-3)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.least_heads import CONVENTIONS
from constructions.power_structure import Powers
from constructions.shifts import cyclic_shifts, cyclic_shifts_mha
from figures.style import LOOKS, SKY, VERMILLION, canvas, shade
from iha_theory.graphs import load_graph

CLAIMS = ("Lower bounds/one-width-heads", "Lower bounds/projected-heads", "Lower bounds/iha-heads",
          "Lower bounds/iha-projected-heads", "4/heads")

GRAPH, MOST_POWERS, MOST_TOKENS = "karate", 49, 49
#: What is drawn of :data:`constructions.least_heads.CONVENTIONS`: the paper's reading, and with a projection.
PAPER, PROJECTED = {"mha": "one-width", "iha": "iha"}, {"mha": "projected", "iha": "iha-projected"}


@dataclass(frozen=True)
class Data:
    """The exact least heads of the graph's bank by convention, for each k, and the heads of both CPM-3 layers.

    ``independent`` is how many powers of the graph are independent.
    """

    k: tuple[int, ...]
    least: dict[str, tuple[int, ...]]
    independent: int
    tokens: tuple[int, ...]
    shifts: dict[str, tuple[int, ...]]


def data() -> Data:
    """The least heads from the structure of the powers, the heads of CPM-3 from the axes of built weights."""
    adjacency = load_graph(GRAPH, weight="none").adjacency
    ks, tokens = range(1, MOST_POWERS + 1), range(1, MOST_TOKENS + 1)
    structures = [Powers(adjacency, k) for k in ks]
    least = {name: tuple(CONVENTIONS[name].least(structure) for structure in structures)
             for name in (*PAPER.values(), *PROJECTED.values())}
    floats = np.zeros((1, 1))
    shifts = {kind: tuple(build(n, like=floats).sizes["out"] for n in tokens)
              for kind, build in (("mha", cyclic_shifts_mha), ("iha", cyclic_shifts))}
    return Data(tuple(ks), least, structures[-1].s, tuple(tokens), shifts)


def draw(data: Data) -> Figure:
    """Two panels: the bank of the karate club, and CPM-3."""
    figure = canvas(
        f"The paper's head counts are the least possible while the powers are independent, up to k = "
        f"{data.independent} on the {GRAPH} graph; beyond, an output projection saves heads")
    left, right = figure.subplots(1, 2, sharex=True, sharey=True)
    least = {kind: np.array(data.least[PROJECTED[kind]]) for kind in PROJECTED}
    shade(left, data.k, 0.1, least["iha"], hatch="x", colour=SKY, step="mid")
    shade(left, data.k, least["iha"], least["mha"], hatch="/", colour=VERMILLION, step="mid")
    for kind, name in (("mha", "multi-head attention"), ("iha", "IHA")):
        look = LOOKS[kind]
        left.plot(data.k, data.least[PAPER[kind]], drawstyle="steps-mid",
                  **look.line_with(label=f"{name}, columns in order: the paper's"))
        left.plot(data.k[::3], data.least[PROJECTED[kind]][::3],
                  **look.points_with(label=f"{name}, with output projection"))
    left.set(title=f"Bank of k powers of the {GRAPH} graph: exact least", xlabel="k, powers in the bank",
             ylabel="heads H")
    _note(left, "impossible for both", data.k[-1], 1.25)
    _note(left, "impossible for\nmulti-head attention", data.k[-1], 9.7)
    _constructions(right, data)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlim=(0.9, data.k[-1] + 4), ylim=(0.8, 320))
        axes.set_xticks(*_ticks(data.k[-1]))
        axes.set_yticks(*_ticks(data.k[-1]))
        axes.minorticks_off()
        axes.legend(loc="upper left")
    return figure


def _note(axes: Axes, text: str, x: float, y: float) -> None:
    box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5}
    axes.text(x, y, text, ha="right", va="center", style="italic", fontsize=8.6, bbox=box)


def _constructions(axes: Axes, data: Data) -> None:
    for kind, label in (("mha", "multi-head attention, N heads"), ("iha", "IHA, ⌈√N⌉ heads")):
        axes.plot(data.tokens, data.shifts[kind], **LOOKS[kind].both_with(label=label, markevery=3))
    axes.set(title="CPM-3: the paper's constructions", xlabel="N, tokens")
    _note(axes, "no lower bound is known for either,\nso that nothing is shaded", data.k[-1], 1.5)


def _ticks(largest: int) -> tuple[list[int], list[str]]:
    places = [2**i for i in range(largest.bit_length() + 1)]
    return places, [str(place) for place in places]
