"""The command ``bounds``: how few heads are possible for a user's matrix, why, and what the paper says."""

from __future__ import annotations

import argparse
import json
from argparse import Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from iha_theory.book import Book

NAMES = ("bounds",)
HEADER = ("linear attention on [X, I]", "least heads", "why not fewer", "met by a layer of", "the paper")


def bounds(load: Callable[[], Book], options: Namespace) -> int:
    """Print the bounds of a graph; 1 if a certificate is rejected or a layer does not output the bank."""
    from iha_theory.commands import Progress, graph_of
    from iha_theory.report import grid
    from iha_theory.weights_file import check_writable, write_whole

    if options.k < 1:
        raise ValueError(f"--k: got {options.k}, wanted at least 1")
    if options.json is not None:
        check_writable(options.json, options.graph)
    graph = graph_of(options)
    if graph is None:
        raise ValueError("bounds needs --graph, a name or a file")
    if not graph.is_exact:
        raise ValueError(f"{graph.name}: {graph.normalization} normalisation has square roots, and bounds are exact; "
                         "normalise by rows, or not at all")
    make = load().bounds
    if make is None:
        raise ValueError("this book has no bounds")
    with Progress() as progress:
        progress.now(f"powers, certificates and layers of {graph.name}, k={options.k}")
        found = make(graph.adjacency, options.k)
    print(graph.describe())
    print(f"\nThe bank [X, AX, ..., A^{options.k - 1} X], k = {options.k}")
    for name, says in found.numbers.items():
        print(f"  {name:<7} {says}")
    print()
    for line in grid(HEADER, found.rows):
        print(line)
    print("\ncertificates")
    kinds = dict.fromkeys(certificate["kind"] for certificate in found.certificates)
    for kind in kinds:
        mine = [c for c in found.certificates if c["kind"] == kind]
        accepted = sum(c["accepted"] for c in mine)
        print(f"  {kind:<13} {accepted} of {len(mine)} accepted; {mine[0]['says']}")
    print()
    for note in found.notes:
        print(note)
    if options.json is not None:
        content = {"graph": graph.name, "k": options.k, "numbers": found.numbers,
                   "rows": [dict(zip(HEADER, row, strict=True)) for row in found.rows],
                   "certificates": found.certificates, "notes": found.notes, "is_sound": found.is_sound}
        write_whole(options.json, (json.dumps(content, indent=1) + "\n").encode())
    return 0 if found.is_sound else 1


def add_options(commands: argparse._SubParsersAction[argparse.ArgumentParser],
                graph_options: Callable[[argparse.ArgumentParser], None]) -> None:
    """The options of the command."""
    command = commands.add_parser("bounds", help="how few heads are possible for a graph, and why")
    graph_options(command)
    command.add_argument("--k", type=int, required=True, help="powers of the filter bank")
    command.add_argument("--json", metavar="FILE", help="also write rows and certificates there, whole or not at all")
