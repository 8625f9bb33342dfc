"""The confusion table of the conformance kit: ``python -m tests.confusion [--markdown]``.

A line for every fault of the gallery, a column for every row of the kit: X differs, . conforms, - not applicable; a
small x or a question mark where that is not what was written down. Then the faults that were found and those that were
not, and the false alarms over the right layers. Exit code 1 if anything is not as it was written down.
"""

from __future__ import annotations

import argparse
import sys

import torch

from iha_theory.conformance import audit
from tests.gallery import FAULTS, RIGHT
from tests.gallery.entry import Fault

#: (embed_dim, heads, pseudo) of the faults, and how often each right layer is drawn.
SHAPE = (12, 2, 3)
DRAWS = 3
SIGNS = {"differs": "X", "conforms": ".", "not applicable": "-"}


def judged(fault: Fault, seed: int = 0, shape: tuple[int, int, int] = SHAPE) -> dict[str, str]:
    """The status of every row on a fault."""
    layer, adapter = fault.make(*shape, seed)
    report = audit(layer, adapter, seed=seed, time_limit=fault.time_limit)
    return {finding.key: finding.status for finding in report.findings}


def signs(fault: Fault, statuses: dict[str, str], keys: list[str]) -> list[str]:
    """One sign for each key."""
    result = []
    for key in keys:
        status = statuses.get(key, "not applicable")
        if (status == "differs") == (key in fault.differs):
            result.append(SIGNS[status])
        else:
            result.append("x" if status == "differs" else "?")
    return result


def lines(table: list[tuple[str, list[str]]], keys: list[str], markdown: bool) -> list[str]:
    """The table as text: columns numbered, or with the keys as a head in Markdown."""
    if markdown:
        head = ["| fault | " + " | ".join(keys) + " |", "|---" * (len(keys) + 1) + "|"]
        return head + [f"| {name} | " + " | ".join(row) + " |" for name, row in table]
    width = max(len(name) for name, _ in table)
    legend = [f"{number:2} {key}" for number, key in enumerate(keys, 1)]
    head = " " * width + "".join(f"{number:3}" for number in range(1, len(keys) + 1))
    return [*legend, "", head, *(name.ljust(width) + "".join(f"{sign:>3}" for sign in row) for name, row in table)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.confusion", description=__doc__)
    parser.add_argument("--markdown", action="store_true", help="a Markdown table")
    markdown: bool = parser.parse_args(arguments).markdown
    torch.set_num_threads(1)
    results: list[tuple[Fault, dict[str, str]]] = []
    keys: list[str] = []
    for number, fault in enumerate(FAULTS, 1):
        print(f"{number}/{len(FAULTS)} {fault.name}", file=sys.stderr)
        statuses = judged(fault)
        results.append((fault, statuses))
        keys += [key for key in statuses if key not in keys]
    table = [(fault.name, signs(fault, statuses, keys)) for fault, statuses in results]
    print(*lines(table, keys, markdown), "", sep="\n")
    wrong = [name for name, row in table if {"x", "?"} & set(row)]
    missed = [fault.name for fault, statuses in results if "differs" not in statuses.values()]
    print(f"faults found: {len(FAULTS) - len(missed)} of {len(FAULTS)}; not found: {', '.join(missed) or 'none'}")
    print(f"not as written down: {', '.join(wrong) or 'none'}")
    alarms: list[str] = []
    silent: list[str] = []
    audits = 0
    for number, right in enumerate(RIGHT, 1):
        print(f"{number}/{len(RIGHT)} {right.name}", file=sys.stderr)
        for seed in range(DRAWS):
            layer, adapter = right.make(seed)
            got = set(audit(layer, adapter, seed=seed).differs)
            audits += 1
            alarms += [f"{right.name}, seed {seed}: {key}" for key in sorted(got - right.differs)]
            silent += [f"{right.name}, seed {seed}: {key}" for key in sorted(right.differs - got)]
    print(f"false alarms: {len(alarms)} in {audits} audits of {len(RIGHT)} right layers", *alarms, sep="\n")
    print(f"true findings on them that were not made: {len(silent)}", *silent, sep="\n")
    return 1 if wrong or alarms or silent else 0


if __name__ == "__main__":
    sys.exit(main())
