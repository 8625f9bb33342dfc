"""Parameters of a filter bank against its number of powers: multi-head attention, IHA with P = H, IHA with tiled P."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.closed_forms import Routing, filter_iha, filter_mha, paper_routing, tiled_routing
from figures.style import LOOKS, canvas, power
from iha_theory.count import parameters

CLAIMS = ("Accounts/filter-mha", "Accounts/filter-iha", "Accounts/filter-tiled", "Crossovers/order-above",
          "Crossovers/order-below")

#: The bank's sizes: k d < N for every k shown, the paper's regime.
TOKENS, FEATURES, STEPS = 2**20, 2, 6
LEAST_K, LARGEST_K = 16, 2**18


@dataclass(frozen=True)
class Curve:
    """A count for each k, and the slope of its logarithm against that of k by least squares."""

    k: tuple[int, ...]
    count: tuple[int, ...]

    @property
    def slope(self) -> float:
        x, y = ([log(value) for value in values] for values in (self.k, self.count))
        mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
        products = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
        return products / sum((a - mean_x) ** 2 for a in x)


@dataclass(frozen=True)
class Data:
    """All parameters, and those of the mixing alone, against k."""

    n: int
    d: int
    mha: Curve
    iha: Curve
    tiled: Curve
    iha_mixing: Curve
    tiled_mixing: Curve


def mixing(n: int, d: int, routing: Routing) -> int:
    """The parameters of alpha and R in a bank's layer: all of them less those of the projections."""
    heads, blocks, _ = routing
    projections = {"source": heads, "model": n + d, "key": n, "value": d * blocks}
    return filter_iha(n, d, *routing) - parameters(projections, mixed=False)


def data() -> Data:
    """The counts by the closed forms, at k spread evenly on a logarithmic axis."""
    n, d = TOKENS, FEATURES
    grid = (round(2 ** (i / STEPS)) for i in range(STEPS * LARGEST_K.bit_length()))
    ks = tuple(sorted({k for k in grid if LEAST_K <= k <= LARGEST_K}))
    paper, tiled = ([route(k) for k in ks] for route in (paper_routing, tiled_routing))
    return Data(
        n, d,
        Curve(ks, tuple(filter_mha(n, d, k) for k in ks)),
        Curve(ks, tuple(filter_iha(n, d, *routing) for routing in paper)),
        Curve(ks, tuple(filter_iha(n, d, *routing) for routing in tiled)),
        Curve(ks, tuple(mixing(n, d, routing) for routing in paper)),
        Curve(ks, tuple(mixing(n, d, routing) for routing in tiled)),
    )


def draw(data: Data) -> Figure:
    """Two panels with logarithmic axes: all parameters, and those of the mixing."""
    figure = canvas(
        f"IHA's parameters grow as {power('k', data.iha.slope)} where multi-head attention's grow as "
        f"{power('k', data.mha.slope)}; with tiled P the mixing grows as {power('k', data.tiled_mixing.slope)}, "
        f"not {power('k', data.iha_mixing.slope)}")
    left, right = figure.subplots(1, 2)
    _curve(left, data.mha, "mha", "multi-head attention, k heads (the paper's)", (-6, 6))
    _curve(left, data.iha, "iha", "IHA with P = H (the paper's)", (-4, -16))
    left.plot(data.tiled.k[::STEPS], data.tiled.count[::STEPS],
              **LOOKS["tiled"].points_with(label="IHA with tiled P: the mixing is too little to see here"))
    left.set(title=f"All parameters, N = {data.n:,} tokens, d = {data.d}", ylabel="parameters")
    _curve(right, data.iha_mixing, "iha", "P = H (the paper's)", (-6, 6))
    _curve(right, data.tiled_mixing, "tiled", "tiled P: fewer pseudo-heads", (-4, -16))
    right.set(title="Mixing and collapse alone, 4H²P", ylabel="parameters of the mixing")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="k, powers in the bank")
        axes.legend(loc="upper left")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.22)
    return figure


def _curve(axes: Axes, curve: Curve, look: str, label: str, offset: tuple[int, int]) -> None:
    axes.plot(curve.k, curve.count, **LOOKS[look].both_with(label=label, markevery=STEPS))
    place = len(curve.k) * 3 // 4
    axes.annotate(f"slope {curve.slope:.2f}", (curve.k[place], curve.count[place]), xytext=offset,
                  textcoords="offset points", ha="right" if offset[1] > 0 else "left", fontweight="bold",
                  color=LOOKS[look].colour)
