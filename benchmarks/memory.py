"""Peak memory of a forward and backward pass beside its floor's, and its slope in the number of virtual tokens.

Each pass runs in a fresh process, which loads everything, runs small passes first, and then lets the kernel count the
peak of resident memory anew: what loading torch took for a moment is not in the numbers.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from benchmarks.layer import SIZES, Size, call, floor, kinds
from benchmarks.tables import QUICK, ROOT, Case, Effort, Rows, Table, line_fit

#: The bar of a layer's peak over its floor's, and of the slopes likewise.
BAR = 1.5
_LENGTHS = (4096, 8192, 16384, 32768)
_PROGRAM = "import sys; from benchmarks.memory import added; print(added(sys.argv[1]))"


def resident() -> tuple[float, float]:
    """(MiB resident now, most that was resident since the last :func:`forget_peak`)."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    now, most = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return now, most


def forget_peak() -> None:
    """Let the kernel count the peak from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5")


def added(pass_name: str) -> float:
    """MiB that a pass adds at its peak: ``pass_name`` is an expression in ``Size``, ``call`` and ``floor``."""
    names: dict[str, Any] = {"Size": Size, "call": call, "floor": floor}
    tiny = Size(1, 8, 16, 2, 2)
    for mask, padded in (("none", False), ("flat", True), ("token", True)):
        call(tiny, mask, padded=padded)()
        call(tiny, mask)()
    floor(tiny, is_causal=True)()
    forget_peak()
    before, _ = resident()
    eval(pass_name, names)()  # noqa: S307  (the expressions of this module)
    return resident()[1] - before


@cache
def peak(pass_name: str) -> float:
    """:func:`added`, in a fresh process.

    Raises:
        RuntimeError: it failed; says what it wrote.
    """
    done = subprocess.run([sys.executable, "-c", _PROGRAM, pass_name], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{pass_name}: exit code {done.returncode}: {done.stderr[-2000:]}")
    return float(done.stdout)


def _beside_floor(size: Size, options: dict[str, Any], causal: bool) -> tuple[float, float, float]:
    mine = peak(f"call({size}, **{options})")
    base = peak(f"floor({size}, is_causal={causal})")
    return mine, base, mine / base


def _along(options: dict[str, Any], causal: bool, lengths: Sequence[int]) -> tuple[float, ...]:
    """The peaks at these numbers of virtual tokens, the slopes of layer and floor, their ratio and the deviation."""
    sizes = [Size(1, virtual // 4, 64, 2, 4) for virtual in lengths]
    both = [_beside_floor(size, options, causal) for size in sizes]
    mine, base = ([row[i] for row in both] for i in (0, 1))
    x = [float(virtual) for virtual in lengths]
    _, slope, off = line_fit(x, mine)
    _, base_slope, _ = line_fit(x, base)
    return *mine, slope * 1024, base_slope * 1024, slope / base_slope, 100 * off


def linearity(rows: Rows) -> Sequence[str]:
    """How near to a line."""
    worst = max(rows, key=lambda name: rows[name][-1])
    doubled = [row[i + 1] / row[i] for row in rows.values() for i in range(len(row) - 5)]
    return (f"Largest deviation from a line: {rows[worst][-1]:.0f}% ({worst}). Twice as many virtual tokens take "
            f"{min(doubled):.2f} to {max(doubled):.2f} times the memory; a mask over all pairs would take 4 times, and "
            f"{4 * _LENGTHS[-1] ** 2 / 2**20:.0f} MiB at N P = {_LENGTHS[-1]}.",)


def tables(effort: Effort) -> tuple[Table, ...]:
    """What is measured of memory; the quick run takes shorter sequences."""
    lengths = _LENGTHS if effort != QUICK else _LENGTHS[:2]
    return (
        Table("layer", "Peak memory beside the floor's",
              "(batch, N, D, H, P), float32, forward and backward, resident memory that the pass adds in a fresh process, "
              "weights and inputs included.", ("MiB", "floor, MiB", "ratio"),
              tuple(Case(f"{tuple(size)}, {name}", partial(_beside_floor, size, options, causal), {"ratio": BAR})
                    for size in SIZES for name, options, causal in kinds(size.n))),
        Table("layer", "Peak memory along N P",
              "Forward and backward, batch 1, D=64, H=2, P=4, float32. Slopes are those of the lines of least squares; "
              "the last column is the largest distance of a peak from its line.",
              (*(f"MiB at N P = {virtual}" for virtual in lengths), "KiB per virtual token", "floor, KiB per virtual token",
               "slopes' ratio", "off the line, %"),
              tuple(Case(name, partial(_along, options, causal, lengths), {"slopes' ratio": BAR})
                    for name, options, causal in kinds(512) if causal), linearity),
    )
