"""What schedules of local and global layers cost against the sequence length, beside global multi-head attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from constructions.appendix_c_flops import AVERAGE, COSTS
from constructions.language_model import LanguageModel
from figures.style import LOOKS, canvas
from iha_theory.flops import Layer
from iha_theory.schedules import MEASURES, Schedule, cost, match
from iha_theory.verification import build

CLAIMS = ("Appendix C/average", "Appendix C/average-printed", "Appendix C/schedule-token",
          "Appendix C/schedule-global-iha", "Appendix C/match")

PSEUDO_HEADS, SMALLEST, LARGEST, LOCAL = (2, 4), 7, 17, 4


@dataclass(frozen=True)
class Data:
    """Ratios of a schedule's cost to that of as many layers of global multi-head attention.

    ``ratios[measure][schedule, P]`` has one for each N; schedules are ``mha`` and ``iha`` (the kind of the global
    layer) and ``matched`` (global multi-head attention, the window that matches). ``printed`` is the paper's average.
    """

    n: tuple[int, ...]
    ratios: dict[str, dict[tuple[str, int], tuple[Fraction, ...]]]
    printed: Fraction


def layers(kind: str, pseudo: int) -> Callable[[int | None], Layer]:
    """A layer of the paper's language model with the token mask, by its window."""
    model = LanguageModel()
    return lambda window: Layer(kind, model.heads, model.key, model.key, model.width, pseudo=pseudo, window=window)


def schedule(kind: str, pseudo: int, window: int) -> Schedule:
    """Four local IHA layers and one global layer of the given kind."""
    last = layers(kind, pseudo if kind == "iha" else 1)(None)
    return ((LOCAL, layers("iha", pseudo)(window)), (1, last))


def ratio(kind: str, pseudo: int, tokens: int, measure: str) -> Fraction:
    """A schedule's cost at the window N / (2 P^2) of Appendix C, or at the one that matches, to the baseline's."""
    baseline = cost(((LOCAL + 1, layers("mha", 1)(None)),), tokens, measure)
    appendix_c = tokens // (2 * pseudo**2)
    if kind == "matched":
        return Fraction(match(schedule("mha", pseudo, appendix_c), tokens, baseline, measure).cost, baseline)
    return Fraction(cost(schedule(kind, pseudo, appendix_c), tokens, measure), baseline)


def data() -> Data:
    """The ratios by the exact counts; the printed average from its erratum."""
    sizes = tuple(2**i for i in range(SMALLEST, LARGEST + 1))
    ratios = {measure: {(kind, p): tuple(ratio(kind, p, n, measure) for n in sizes)
                        for kind in ("mha", "iha", "matched") for p in PSEUDO_HEADS} for measure in MEASURES}
    return Data(sizes, ratios, printed_average())


def printed_average() -> Fraction:
    """The right-hand side of the claim that is printed, at any sizes."""
    return Fraction(str(AVERAGE.printed.right(build(COSTS, COSTS.cases[0]))))


def draw(data: Data) -> Figure:
    """Two panels: score pairs, and all FLOPs of the layers."""
    low, high = (float(data.ratios["pairs"]["mha", p][-1]) for p in PSEUDO_HEADS)
    figure = canvas(
        f"Four local IHA layers and a global multi-head one cost {low:.2f} (P = 2) to {high:.2f} (P = 4) of the causal "
        f"baseline's score pairs, not the printed {data.printed}", height=5.4)
    left, right = figure.subplots(1, 2, sharey=True)
    for axes, measure, title in ((left, "pairs", "Score pairs of the masks"),
                                 (right, "flops", "All FLOPs: projections, mixing, scores")):
        _panel(axes, data, measure)
        axes.set(title=title, xlabel="N, tokens", xscale="log", yscale="log", ylim=(0.5, 5))
        axes.set_yticks([0.5, 1, 2, 4], ["0.5", "1", "2", "4"])
        axes.minorticks_off()
    left.set_ylabel(f"cost / {LOCAL + 1} layers of global multi-head attention")
    handles, labels = left.get_legend_handles_labels()
    for axes, chosen in ((left, (0, 1, 4)), (right, (2, 3, 5))):
        axes.legend([handles[i] for i in chosen], [labels[i] for i in chosen], loc="upper left",
                    bbox_to_anchor=(0, -0.13))
    return figure


def _panel(axes: Axes, data: Data, measure: str) -> None:
    names = {"iha": f"{LOCAL} local IHA + 1 global IHA", "mha": f"{LOCAL} local IHA + 1 global multi-head",
             "matched": "that at the matching window, P = 2 and 4"}
    looks = {("iha", 2): "second", ("iha", 4): "fifth", ("mha", 2): "first", ("mha", 4): "third"}
    for (kind, p), values in data.ratios[measure].items():
        shown = [float(value) for value in values]
        if kind != "matched":
            axes.plot(data.n, shown, **LOOKS[looks[kind, p]].both_with(label=f"{names[kind]}, P = {p}"))
            continue
        label = names[kind] if p == PSEUDO_HEADS[0] else None
        axes.plot(data.n, shown, **LOOKS["fourth"].points_with(label=label, markersize=4, zorder=3))
    axes.axhline(float(data.printed), **LOOKS["printed"].line_with(label=f"the printed average, {data.printed}"))
