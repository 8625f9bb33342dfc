"""Measure everything and write RESULTS.md: ``python -m benchmarks [--quick] [--only core|bounds|layer]``."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from benchmarks import bounds, core
from benchmarks.machine import machine, now, share_before, state, versions
from benchmarks.record import Record
from benchmarks.results import misses, page, rendered
from benchmarks.tables import FULL, QUICK, Effort, Table
from iha_theory.weights_file import check_writable, write_whole

FOLDER = Path(__file__).parent
PARTS = ("core", "bounds", "layer")


def key() -> dict[str, str]:
    """What measurements depend on."""
    return {"code": state(), **{name: ", ".join(f"{part} {value}" for part, value in facts.items())
                                for name, facts in (("versions", versions()), ("machine", machine()))}}


def all_tables(effort: Effort) -> tuple[Table, ...]:
    """Every table, in the order of :data:`PARTS`."""
    from benchmarks import decoding, layer, memory

    return (*core.tables(effort), *bounds.tables(effort), *layer.tables(effort), *decoding.tables(effort),
            *memory.tables(effort))


def measure(tables: Sequence[Table], record: Record, say: Callable[[str], None]) -> None:
    """Measure what is missing, and say each row."""
    left = len(record.missing(tables))
    if left:
        record.sittings.append({"date": now(), "load": os.getloadavg()[0], "busy": share_before()})
    total, title = sum(len(table.cases) for table in tables), ""
    for done, (table, case, row, known) in enumerate(record.measured(tables), start=1):
        if table.title != title:
            title = table.title
            say(f"\n{title}: {', '.join(table.columns)}")
        numbers = "  ".join(f"{value:.4g}" for value in row)
        say(f"[{done:>3}/{total}] {case.name}: {numbers}{'  (kept from before)' if known else ''}")


def run(tables: Sequence[Table], record: Record, only: Sequence[str], results: Path | None,
        say: Callable[[str], None]) -> None:
    """Measure the chosen parts; write the results if nothing is missing of any part, else say what is.

    Args:
        tables: of all parts. only: the parts to measure. results: None prints the tables and writes nothing.
    """
    chosen = [table for table in tables if table.part in only]
    measure(chosen, record, say)
    if results is None:
        for table in chosen:
            say(f"\n## {table.title}\n\n{rendered(table, record.rows[table.title])}")
        return
    missing = record.missing(tables)
    if missing:
        parts = [part for part in PARTS if any(table.part == part for table, _ in missing)]
        say(f"\n{results.name} was not written: {len(missing)} rows of {', '.join(parts)} are not measured; run without "
            "--only, and what is measured is kept")
        return
    write_whole(results, page(tables, record, machine()).encode())
    say(f"\nwrote {results.name}")
    for line in misses(tables, record):
        say(f"over its bar: {line}")
    if record.path is not None:
        # The next run measures anew.
        record.path.unlink(missing_ok=True)


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """The command; 130 if it was interrupted."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Measure, and write RESULTS.md.")
    parser.add_argument("--quick", action="store_true", help="few rounds, printed; nothing is kept or written")
    parser.add_argument("--only", choices=PARTS, help="measure one part; RESULTS.md is written once all are measured")
    options = parser.parse_args(arguments)
    results = None if options.quick else folder / "RESULTS.md"
    started = time.monotonic()
    try:
        if results is not None:
            check_writable(results)
        record = Record(None if options.quick else folder / "measured.json", key())
        run(all_tables(QUICK if options.quick else FULL), record, [options.only] if options.only else PARTS, results,
            lambda line: print(line, flush=True))
    except ValueError as error:
        print(f"benchmarks: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped; " + ("a quick run keeps nothing" if options.quick else
              "what is measured is kept, and the same command goes on"), file=sys.stderr)
        return 130
    print(f"{(time.monotonic() - started) / 60:.1f} minutes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
