"""The bounds' speed, as a ratio to computing the bank exactly with python-flint in the same run, and the figures' time.

Run by ``make bench``. Nothing here passes or fails: the numbers are printed for people.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import flint
import numpy as np

from benchmarks.core import ROOT, ROUNDS, peak_memory, seconds
from constructions.bound_report import bound_report
from iha_theory.graphs import load_graph
from iha_theory.rank import integer_matrix


def exact_powers(a: np.ndarray, k: int) -> None:
    """The baseline: I, A, ..., A^(k-1) over the integers, by repeated multiplication."""
    matrix, _ = integer_matrix(a)
    power = flint.fmpz_mat([[int(i == j) for j in range(len(a))] for i in range(len(a))])
    for _ in range(k - 1):
        power = power * matrix


def main() -> None:
    """Print the table."""
    print(f"{'what':<58} {'seconds':>9} {'baseline':>9} {'ratio':>6}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.npy"
        np.save(path, np.random.default_rng(0).integers(-9, 9, (300, 300)))
        cases = ((load_graph("karate"), 16), (load_graph("les-miserables"), 25), (load_graph(path), 36))
    for graph, k in cases:
        rounds = []
        for _ in range(ROUNDS):
            base = seconds(lambda graph=graph, k=k: exact_powers(graph.adjacency, k))
            rounds.append((seconds(lambda graph=graph, k=k: bound_report(graph.adjacency, k)), base))
        found, base = (statistics.median(r[i] for r in rounds) for i in (0, 1))
        ratio = statistics.median(r[0] / r[1] for r in rounds)
        name = f"bounds, {graph.name}, N={len(graph.nodes)}, k={k}, against the exact bank of powers"
        print(f"{name:<58} {found:9.3f} {base:9.3f} {ratio:6.2f}")
    print(f"{'peak memory of the above, GiB':<58} {peak_memory():9.2f}")
    with tempfile.TemporaryDirectory() as folder:
        drawn = seconds(lambda: subprocess.run([sys.executable, "-m", "figures", "--out", folder, "--format", "svg"],
                                               cwd=ROOT, check=True, capture_output=True))
    print(f"{'all figures':<58} {drawn:9.1f}")


if __name__ == "__main__":
    main()
