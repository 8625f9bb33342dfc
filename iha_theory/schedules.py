"""Schedules of local and global attention layers, and the window that matches the FLOPs of a baseline."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from iha_theory.flops import Layer, flops, largest_window

#: ``(count, layer)``: so many layers of that form. A layer with a window is local, one without is global.
Schedule = Sequence[tuple[int, Layer]]
Measure = Callable[[Layer, int], int]

#: What may be matched: score pairs of all heads, or all FLOPs with projections and mixing.
MEASURES: dict[str, Measure] = {
    "pairs": lambda layer, tokens: layer.pairs(tokens),
    "flops": lambda layer, tokens: flops(layer, tokens).total,
}


@dataclass(frozen=True)
class Match:
    """The window of the local layers whose cost is nearest to the baseline's.

    Attributes: window: in the unit of the mask. cost, baseline: what is matched, of the whole schedule and of
        the baseline.
        is_bracketed: the baseline lies between the costs of the smallest and of the largest window.
    """

    window: int
    cost: int
    baseline: int
    is_bracketed: bool

    @property
    def mismatch(self) -> Fraction:
        """(cost - baseline) / baseline, exactly."""
        return Fraction(self.cost - self.baseline, self.baseline)


def with_window(schedule: Schedule, window: int) -> tuple[tuple[int, Layer], ...]:
    """The schedule with that window in every local layer."""
    return tuple((count, layer if layer.window is None else replace(layer, window=window)) for count,
                 layer in schedule)


def cost(schedule: Schedule, tokens: int, measure: str = "pairs") -> int:
    """What a schedule costs on ``tokens`` tokens.

    Raises:
        ValueError: an unknown measure.
    """
    if measure not in MEASURES:
        raise ValueError(f"measure {measure!r}: wanted one of {', '.join(MEASURES)}")
    return sum(count * MEASURES[measure](layer, tokens) for count, layer in schedule)


def match(schedule: Schedule, tokens: int, baseline: int, measure: str = "pairs") -> Match:
    """The window for the local layers of a schedule whose cost is nearest to ``baseline``; of two, the
    smaller.

    The cost grows with the window, so that bisection finds the last window within the baseline.

    Raises: ValueError: no local layer, local layers of different units, a baseline below 1, or an unknown
        measure.
    """
    limits = {(layer.mask, largest_window(tokens, layer.pseudo, layer.mask))
              for _, layer in schedule if layer.window is not None}
    if len(limits) != 1:
        raise ValueError(f"match: the schedule has {len(limits)} kinds of windows, wanted local layers of "
                         "one kind")
    if baseline < 1:
        raise ValueError(f"match: got a baseline of {baseline}, wanted at least 1")

    def at(window: int) -> int:
        return cost(with_window(schedule, window), tokens, measure)

    low, high = 1, limits.pop()[1]
    bracketed = at(low) <= baseline <= at(high)
    while low < high:
        middle = (low + high + 1) // 2
        if at(middle) <= baseline:
            low = middle
        else:
            high = middle - 1
    candidates = [low, low + 1] if bracketed and at(low) < baseline else [low]
    window = min(candidates, key=lambda candidate: abs(at(candidate) - baseline))
    return Match(window, at(window), baseline, bracketed)


def parse_schedule(text: str, make: Callable[[str, bool], Layer]) -> tuple[tuple[int, Layer], ...]:
    """A schedule from ``COUNT:REACH-KIND,...``, for example ``4:local-iha,1:global-mha``.

    Args:
        make: kind and whether it is local, to a layer.

    Raises:
        ValueError: the text is not of that form.
    """
    layers: list[tuple[int, Layer]] = []
    for part in text.split(","):
        count, _, name = part.strip().partition(":")
        reach, _, kind = name.partition("-")
        counts = count.isascii() and count.isdigit() and len(count) <= 6 and int(count) > 0
        if not counts or reach not in ("local", "global"):
            raise ValueError(f"schedule: {part.strip()[:40]!r} is not of the form COUNT:local-KIND or "
                             "COUNT:global-KIND, for example 4:local-iha,1:global-mha")
        layers.append((int(count), make(kind, reach == "local")))
    return tuple(layers)
