"""Which layer has fewer parameters, over the number of powers k and of tokens N, for several numbers of features d."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.closed_forms import least_tokens, paper_routing, tiled_routing
from figures.style import LOOKS, SKY, YELLOW, canvas, shade

CLAIMS = ("Crossovers/condition", "Crossovers/smaller", "Crossovers/larger", "Crossovers/stays", "Crossovers/tiled")

FEATURES, MOST_POWERS, MOST_TOKENS = (1, 4, 16, 64), 64, 10**4


@dataclass(frozen=True)
class Data:
    """For each d and k the least N from which on IHA is smaller, None for never: with P = H and with tiled P."""

    k: tuple[int, ...]
    paper: dict[int, tuple[int | None, ...]]
    tiled: dict[int, tuple[int | None, ...]]

    @property
    def first(self) -> int:
        """The least k at which IHA is smaller for every N > kd, whatever d is shown, and so for all larger k."""
        good = [all((least := self.paper[d][i]) is not None and least <= k * d + 1 for d in self.paper)
                for i, k in enumerate(self.k)]
        return self.k[len(good) - next((i for i, each in enumerate(reversed(good)) if not each), len(good))]

    @property
    def never(self) -> tuple[int, ...]:
        """The k at which IHA is smaller for no N."""
        return tuple(k for i, k in enumerate(self.k) if all(self.paper[d][i] is None for d in self.paper))


def data() -> Data:
    """The exact least N by the closed forms."""
    ks = tuple(range(1, MOST_POWERS + 1))
    paper, tiled = ({d: tuple(least_tokens(k, d, route(k)) for k in ks) for d in FEATURES}
                    for route in (paper_routing, tiled_routing))
    return Data(ks, paper, tiled)


def draw(data: Data) -> Figure:
    """A panel for each d."""
    figure = canvas(
        f"In the paper's regime, N > kd, IHA has fewer parameters for every k ≥ {data.first}; "
        f"for k = {' and '.join(map(str, data.never))} it has more at every N", height=7.0)
    panels = figure.subplots(2, 2, sharex=True, sharey=True)
    for axes, d in zip(panels.flat, FEATURES, strict=True):
        _panel(axes, data, d)
    for axes in panels[1]:
        axes.set_xlabel("k, powers in the bank")
    for axes in panels[:, 0]:
        axes.set_ylabel("N, tokens")
    panels[0, 0].legend(loc="upper right")
    return figure


def _panel(axes: Axes, data: Data, d: int) -> None:
    k, top = np.array(data.k), MOST_TOKENS
    paper, tiled = (np.array([2 * top if n is None else n for n in found[d]]) for found in (data.paper, data.tiled))
    shade(axes, k, paper, 2 * top, hatch="", colour=SKY, step="mid")
    shade(axes, k, 0.1, paper, hatch="/", colour=YELLOW, step="mid")
    axes.plot(k, paper, drawstyle="steps-mid", **LOOKS["iha"].line_with(label="least N, P = H (the paper's)"))
    axes.plot(k, tiled, **LOOKS["tiled"].points_with(label="least N, tiled P", markersize=3.2, markeredgewidth=0.9))
    axes.plot(k, k * d, **LOOKS["printed"].line_with(label="N = kd: the paper's regime is above"))
    axes.set(title=f"d = {d}", xscale="log", yscale="log", xlim=(0.95, k[-1]), ylim=(0.8, top))
    doubling = [2**i for i in range(MOST_POWERS.bit_length())]
    axes.set_xticks(doubling, [str(place) for place in doubling])
    axes.minorticks_off()
    note = {"style": "italic", "ha": "center", "va": "center", "transform": axes.transAxes}
    axes.text(0.11, 0.75, "more with IHA", rotation=90, **note)
    if d != FEATURES[0]:
        axes.text(0.5, 0.92, "fewer parameters with IHA", **note)
