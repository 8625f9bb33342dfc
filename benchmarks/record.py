"""The measurements so far, kept in a file after every row, so that a run that was stopped goes on where it was."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import Bystanders
from benchmarks.tables import Case, Table
from iha_theory.weights_file import write_whole


class Record:
    """Rows by table and name. They belong to one key (code, versions, machine); another key starts anew.

    Attributes:
        key: what the rows depend on. rows: title of the table, name of the row, its numbers.
        sittings: for each run that added rows, when it began, the load then, and the share of busy processors before.
        others: (seconds of processors that others took while rows were measured, seconds of processors there were);
            None if the system does not tell.
        is_new: whether nothing was taken over from the file.
    """

    def __init__(self, path: Path | None, key: dict[str, str]) -> None:
        self.path, self.key = path, key
        self.rows: dict[str, dict[str, list[float]]] = {}
        self.sittings: list[dict[str, Any]] = []
        self.others: list[float] | None = [0.0, 0.0]
        self.is_new = True
        if path is not None and path.exists():
            self._load(path)

    def _load(self, path: Path) -> None:
        try:
            kept = json.loads(path.read_text())
            if kept["key"] == self.key:
                self.rows, self.sittings, self.others = kept["rows"], kept["sittings"], kept["others"]
                self.is_new = False
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{path}: no record of measurements ({error!r}); delete it to measure anew") from error

    def save(self) -> None:
        """Write the file, whole or not at all."""
        if self.path is not None:
            kept = {"key": self.key, "rows": self.rows, "sittings": self.sittings, "others": self.others}
            write_whole(self.path, (json.dumps(kept, indent=1) + "\n").encode())

    def lacks(self, table: Table, case: Case) -> bool:
        """Whether a row is still to be measured."""
        return case.name not in self.rows.get(table.title, {})

    def missing(self, tables: Iterable[Table]) -> list[tuple[Table, Case]]:
        """The rows that are still to be measured."""
        return [(table, case) for table in tables for case in table.cases if self.lacks(table, case)]

    def measured(self, tables: Sequence[Table]) -> Iterator[tuple[Table, Case, list[float], bool]]:
        """Every row in order, with whether it was there already; others are measured and kept.

        Raises:
            ValueError: a row with more or fewer numbers than its table has columns.
        """
        for table in tables:
            for case in table.cases:
                if known := not self.lacks(table, case):
                    yield table, case, self.rows[table.title][case.name], known
                    continue
                bystanders = Bystanders()
                found = [float(value) for value in case.measure()]
                if len(found) != len(table.columns):
                    raise ValueError(f"{table.title}, {case.name}: got {len(found)} numbers, wanted one for each of "
                                     f"{table.columns}")
                self._add(bystanders.taken())
                self.rows.setdefault(table.title, {})[case.name] = found
                self.save()
                yield table, case, found, known

    def _add(self, taken: tuple[float, float] | None) -> None:
        if taken is None or self.others is None:
            self.others = None
        else:
            self.others = [a + b for a, b in zip(self.others, taken, strict=True)]

    def shares(self) -> list[float | None]:
        """The shares of the processors that others took: before each sitting, and while rows were measured."""
        during = None if self.others is None or not self.others[1] else self.others[0] / self.others[1]
        return [*(sitting["busy"] for sitting in self.sittings), during]
