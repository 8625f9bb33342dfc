"""What a table of measurements is, and the ways of measuring that all tables share."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent

Work = Callable[[], object]
Rows = Mapping[str, Sequence[float]]


@dataclass(frozen=True)
class Case:
    """One row.

    Attributes:
        name: what is measured; the names of a table are distinct.
        measure: () to one number for each column.
        bars: for some columns, the most that is wanted there.
    """

    name: str
    measure: Callable[[], Sequence[float]]
    bars: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Table:
    """Rows of one kind.

    Attributes:
        part: "core", "bounds" or "layer". title: distinct among all tables. note: how it was measured, in sentences.
        columns: headings, units included; a column whose heading has the word "ratio" is a ratio.
        cases: the rows. closing: from the rows by name to sentences that need several of them.
    """

    part: str
    title: str
    note: str
    columns: tuple[str, ...]
    cases: tuple[Case, ...]
    closing: Callable[[Rows], Sequence[str]] = lambda rows: ()


class Effort(NamedTuple):
    """How often a comparison is repeated: at least and at most so many rounds, and in between until so many seconds."""

    least: int
    most: int
    seconds: float


FULL, SLOW, QUICK = Effort(7, 31, 4.0), Effort(3, 31, 4.0), Effort(2, 2, 0.0)


def seconds(work: Work) -> float:
    """The wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def median_seconds(work: Work, effort: Effort) -> float:
    """The median wall time of a call, after one that is not counted."""
    work()
    return statistics.median(_rounds(lambda: seconds(work), effort))


def compared(work: Work, base: Work, effort: Effort, *, repeat: int = 1) -> tuple[float, float, float]:
    """(median seconds, median seconds of the base, median of the ratios): interleaved, the first round not counted.

    Args:
        repeat: calls that are timed together, where one is too short.
    """
    def pair() -> tuple[float, float]:
        return tuple(seconds(lambda part=part: [part() for _ in range(repeat)]) / repeat  # type: ignore[return-value]
                     for part in (work, base))

    pair()
    pairs = _rounds(pair, effort)
    return (statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs),
            statistics.median(a / b for a, b in pairs))


def _rounds(measure: Callable[[], Any], effort: Effort) -> list[Any]:
    found: list[Any] = []
    started = time.perf_counter()
    while len(found) < effort.least or (len(found) < effort.most and time.perf_counter() - started < effort.seconds):
        found.append(measure())
    return found


#: A process starts with the peak of the one that starts it: this one is small, and waits.
_STARTER = ("import resource, subprocess, sys, time; started = time.perf_counter(); "
            "done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL); taken = time.perf_counter() - started; "
            "print(taken, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss); sys.exit(done.returncode)")


def command(*arguments: str) -> tuple[float, float]:
    """(seconds, peak GiB) of one Python process with these arguments, or of its largest child if that is larger.

    Raises:
        RuntimeError: it failed; says what it wrote.
    """
    done = subprocess.run([sys.executable, "-S", "-c", _STARTER, sys.executable, *arguments], cwd=ROOT,
                          capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"python {' '.join(arguments)}: exit code {done.returncode}: {done.stderr[-2000:]}")
    taken, kib = map(float, done.stdout.split())
    return taken, kib / 2**20


def line_fit(x: Sequence[float], y: Sequence[float]) -> tuple[float, float, float]:
    """(intercept, slope, largest deviation relative to y) of the line of least squares, weighted by 1/y^2.

    The weights make the deviations that are small relative to y count alike at every x.
    """
    weight = [1 / value**2 for value in y]
    total = sum(weight)
    mean_x, mean_y = (sum(w * value for w, value in zip(weight, t, strict=True)) / total for t in (x, y))
    slope = (sum(w * (a - mean_x) * (b - mean_y) for w, a, b in zip(weight, x, y, strict=True))
             / sum(w * (a - mean_x) ** 2 for w, a in zip(weight, x, strict=True)))
    intercept = mean_y - slope * mean_x
    return intercept, slope, max(abs(intercept + slope * a - b) / b for a, b in zip(x, y, strict=True))
