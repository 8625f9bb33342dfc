"""Parameters of CPM-3, divided by N^3: attention, MLP and total, beside the paper's printed bounds."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.account_tables import cpm3_table
from figures.style import LOOKS, canvas

CLAIMS = ("Accounts/cpm3-total-iha", "Accounts/cpm3-total-mha", "Crossovers/cpm3-37", "Crossovers/cpm3-200",
          "Crossovers/cpm3-best", "4/mha-below", "4/mha-lower-bound")

MOST_TOKENS, STEPS = 2**12, 6
KINDS = {"iha": "IHA", "mha": "MHA"}


@dataclass(frozen=True)
class Data:
    """For each N the parameters of both layers, ``{kind: {part: counts}}`` with the printed bound among the parts.

    ``missed_from`` is the least N from which on the total of multi-head attention is below its printed lower bound.
    ``constant`` is the largest of (IHA's total - N^3) / N^2.5, the best constant in place of the paper's, and
    ``attained`` the N that has it.
    """

    n: tuple[int, ...]
    parts: dict[str, dict[str, tuple[int, ...]]]
    missed_from: int
    constant: float
    attained: int

    def by_cube(self, counts: tuple[int, ...]) -> list[float]:
        """Counts divided by N^3."""
        return [float(Fraction(count, n**3)) for n, count in zip(self.n, counts, strict=True)]

    @property
    def best_bound(self) -> list[float]:
        """(constant N^2.5 + N^3) / N^3."""
        return [self.constant / sqrt(n) + 1 for n in self.n]


def data() -> Data:
    """The columns of the table that ``iha-theory counts cpm3`` prints."""
    grid = tuple(sorted({round(2 ** (i / STEPS)) for i in range(STEPS * MOST_TOKENS.bit_length() - STEPS + 1)}))
    table = cpm3_table(grid)
    columns = dict(zip(table.columns, zip(*table.rows, strict=True), strict=True))

    def whole(name: str) -> tuple[int, ...]:
        return tuple(int(value) for value in columns[name] if isinstance(value, int))

    parts: dict[str, dict[str, tuple[int, ...]]] = {}
    for kind, word in KINDS.items():
        attention, total = whole(f"attention {word}"), whole(f"total {word}")
        parts[kind] = {"attention": attention, "total": total, "printed": whole(f"printed bound {word}"),
                       "mlp": tuple(t - a for t, a in zip(total, attention, strict=True))}
    mha = parts["mha"]
    kept = [n for n, total, bound in zip(grid, mha["total"], mha["printed"], strict=True) if total >= bound]
    constant, attained = max(((total - n**3) / n**2.5, n) for n, total in zip(grid, parts["iha"]["total"], strict=True))
    return Data(grid, parts, next(n for n in grid if n > kept[-1]), constant, attained)


def draw(data: Data) -> Figure:
    """A panel for each layer."""
    figure = canvas(
        "CPM-3: only the attention separates IHA from multi-head attention, the MLP's N³ dominates both; the "
        f"printed lower bound for multi-head attention does not hold from N = {data.missed_from} on")
    left, right = figure.subplots(1, 2, sharey=True)
    _panel(left, data, "mha", "Multi-head attention, N heads", "lower")
    _panel(right, data, "iha", "IHA, ⌈√N⌉ heads", "upper")
    right.plot(data.n, data.best_bound, **LOOKS["fifth"].line_with(
        label=f"with {data.constant:.2f} for 37: met at N = {data.attained}"))
    left.set_ylabel("parameters / N³")
    for axes in (left, right):
        axes.set(xscale="log", yscale="log", xlabel="N, tokens", ylim=(0.02, 500))
        axes.legend(loc="upper right")
    return figure


def _panel(axes: Axes, data: Data, kind: str, title: str, bound: str) -> None:
    parts, name = data.parts[kind], {"lower": "$4N^3$", "upper": "$37N^{2.5} + N^3$"}[bound]
    for part, look, label in (("total", "whole", "total"), ("mlp", "third", "MLP, N² units"),
                              ("attention", "fourth", "attention")):
        axes.plot(data.n, data.by_cube(parts[part]), **LOOKS[look].both_with(label=label, markevery=STEPS))
    axes.plot(data.n, data.by_cube(parts["printed"]), **LOOKS["printed"].line_with(
        linewidth=2.4, label=f"printed {bound} bound, {name}"))
    axes.set_title(title)
