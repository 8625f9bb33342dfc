"""One style for all figures: colours that colour-blind readers tell apart, and lines and markers that grey keeps apart.

The palette is that of Okabe and Ito. Whoever is drawn (multi-head attention, IHA, what is printed, ...) has one
colour, one kind of line and one marker in every figure: see :data:`LOOKS`.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

BLACK, GREY = "#000000", "#666666"
ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILLION, PURPLE = "#0072B2", "#D55E00", "#CC79A7"

SETTINGS: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titlelocation": "left",
    "axes.labelsize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "lines.linewidth": 1.8,
    "lines.markersize": 5.5,
    "legend.frameon": True,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "none",
    "legend.fontsize": 8.8,
    "legend.handlelength": 3.2,
    "figure.constrained_layout.use": True,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.dpi": 160,
    "mathtext.fontset": "dejavusans",
    "svg.fonttype": "path",
    "svg.hashsalt": "iha-theory",
    "pdf.fonttype": 42,
}
#: What would make a file differ from one drawing to the next, or from one release of matplotlib to the next.
UNDATED: dict[str, dict[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
_MARKUP = re.compile(r"\\[a-z]+|[${}^]")
#: How far, in widths of the axes, a line of a hatch leans from bottom to top, and how far apart two of them are.
_LEAN, _APART = 0.6, 0.03
#: A hatch's kinds of lines: where they are at the bottom and at the top.
HATCHES: dict[str, tuple[tuple[float, float], ...]] = {
    "": (), "/": ((0, _LEAN),), "x": ((0, _LEAN), (_LEAN, 0)),
}
_TITLE_COLUMNS, _SOURCE_COLUMNS = 9.6, 17.5


class Look(NamedTuple):
    """How one of the things compared is drawn."""

    colour: str
    line: Any
    marker: str

    def line_with(self, **more: Any) -> dict[str, Any]:
        """Options of ``plot`` for a line without markers."""
        return {"color": self.colour, "linestyle": self.line, **more}

    def points_with(self, **more: Any) -> dict[str, Any]:
        """Options of ``plot`` for markers alone: hollow, so that what lies below stays visible."""
        return {"color": self.colour, "linestyle": "none", "marker": self.marker, "markerfacecolor": "white",
                "markeredgewidth": 1.4, **more}

    def both_with(self, **more: Any) -> dict[str, Any]:
        """Options of ``plot`` for a line with markers."""
        return {**self.points_with(), "linestyle": self.line, **more}


LOOKS: dict[str, Look] = {
    "mha": Look(VERMILLION, (0, (6, 2)), "s"),
    "iha": Look(BLUE, "-", "o"),
    "tiled": Look(GREEN, "-.", "^"),
    "printed": Look(BLACK, (0, (1, 1.6)), "x"),
    "corrected": Look(BLUE, "-", "o"),
    "whole": Look(BLACK, "-", "o"),
    "first": Look(BLUE, "-", "o"),
    "second": Look(VERMILLION, (0, (6, 2)), "s"),
    "third": Look(GREEN, "-.", "^"),
    "fourth": Look(PURPLE, (0, (3, 1.5)), "D"),
    "fifth": Look(ORANGE, (0, (5, 1.5, 1, 1.5, 1, 1.5)), "v"),
}


@contextmanager
def applied() -> Iterator[None]:
    """Draw and save within: the settings above on matplotlib's defaults, whatever the user's own are."""
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        yield


def power(base: str, exponent: float) -> str:
    """``base`` to a measured power, for a bold title."""
    return rf"$\mathbf{{{base}^{{{exponent:.2f}}}}}$"


def canvas(title: str, width: float = 9.6, height: float = 4.9) -> Figure:
    """An empty figure, in inches, whose title states what is found."""
    figure = Figure(figsize=(width, height))
    figure.suptitle(wrapped(title, int(width * _TITLE_COLUMNS)), x=0.012, ha="left", fontsize=12, fontweight="bold")
    return figure


def wrapped(text: str, columns: int) -> str:
    """The text in lines of at most so many characters; those of mathematical markup are not seen and not counted.

    An equation such as ``k = 3`` stays on one line.
    """
    lines: list[str] = []
    for word in re.sub(r" ([=≥>]) ", "\u00a0\\1\u00a0", text).split(" "):
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and len(_MARKUP.sub("", longer)) <= columns:
            lines[-1] = longer
        else:
            lines.append(word)
    return "\n".join(lines)


def with_source(figure: Figure, text: str) -> None:
    """Write at the foot of a figure what it rests on."""
    width = int(figure.get_size_inches()[0] * _SOURCE_COLUMNS)
    figure.supxlabel(wrapped(f"Rests on the claims {text}.", width), x=0.012, ha="left", fontsize=7, color=GREY)


def shade(axes: Axes, x: Any, low: Any, high: Any, *, hatch: str, colour: str, **more: Any) -> None:
    """Fill a region, hatched so that it is seen in grey.

    The hatches are lines, clipped to the region: a fill pattern is not drawn by every reader of SVG.

    Args:
        hatch: a key of :data:`HATCHES`. more: options of ``fill_between``.
    """
    region = axes.fill_between(x, low, high, facecolor=colour, alpha=0.28, linewidth=0, zorder=0.5, **more)
    starts = np.arange(-_LEAN, 1, _APART)
    for bottom, top in HATCHES[hatch]:
        lines = LineCollection([((start + bottom, 0), (start + top, 1)) for start in starts], colors=GREY, linewidths=0.6,
                               alpha=0.45, transform=axes.transAxes, zorder=0.6)
        axes.add_collection(lines, autolim=False)
        lines.set_clip_path(region.get_paths()[0], axes.transData)


def file_content(figure: Figure, form: str) -> bytes:
    """The figure in a format, without dates."""
    stream = io.BytesIO()
    figure.savefig(stream, format=form, metadata=UNDATED[form])
    return stream.getvalue()
