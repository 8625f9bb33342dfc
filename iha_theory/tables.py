"""Tables of exact numbers for people and programs: text, CSV, JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

Cell = int | float | str | bool | Fraction | None
FORMATS = ("table", "csv", "json")
_DIGITS = 6


@dataclass(frozen=True)
class Table:
    """Rows under columns, with notes for the reader; a number is an integer, a fraction or a rounded decimal.

    Raises:
        ValueError: a row has not as many cells as there are columns.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for index, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(f"{self.title}: row {index} has {len(row)} cells for {len(self.columns)} "
                                 "columns")


def decimal(value: Fraction | int) -> float:
    """An exact number rounded to six digits after the point, for the eye."""
    return float(round(Fraction(value), _DIGITS))


def written(table: Table, style: str) -> str:
    """The table in one of :data:`FORMATS`, ended by a line feed.

    Raises:
        ValueError: an unknown style.
    """
    if style == "json":
        rows = [dict(zip(table.columns, map(_json, row), strict=True)) for row in table.rows]
        document = {"title": table.title, "columns": list(table.columns), "rows": rows,
                    "notes": list(table.notes)}
        return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    if style == "csv":
        stream = io.StringIO()
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(table.columns)
        writer.writerows([_text(cell) for cell in row] for row in table.rows)
        return stream.getvalue()
    if style == "table":
        return "\n".join([table.title, "", *_grid(table), *(["",
                                                             *table.notes] if table.notes else [])]) + "\n"
    raise ValueError(f"format {style!r}: wanted one of {', '.join(FORMATS)}")


def _grid(table: Table) -> Sequence[str]:
    cells = [list(table.columns), *([_text(cell) or "-" for cell in row] for row in table.rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]
    numeric = [all(not isinstance(row[column],
                                  str) for row in table.rows) for column in range(len(table.columns))]

    def line(row: Sequence[str]) -> str:
        return "  ".join(text.rjust(width) if right else text.ljust(width)
                         for text, width, right in zip(row, widths, numeric, strict=True)).rstrip()

    return [line(cells[0]), "  ".join("-" * width for width in widths), *map(line, cells[1:])]


def _text(cell: Cell) -> str:
    """A cell as text: nothing for None, yes or no for a Boolean, a fraction as p/q."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "yes" if cell else "no"
    return f"{cell:.{_DIGITS}f}" if isinstance(cell, float) else str(cell)


def _json(cell: Cell) -> int | float | str | bool | None:
    """A cell for JSON; a fraction is text, so that it stays exact."""
    return str(cell) if isinstance(cell, Fraction) else cell
