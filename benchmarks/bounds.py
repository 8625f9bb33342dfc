"""The bounds beside computing the bank exactly with python-flint, and the commands of bounds and figures."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path

import flint
import numpy as np

from benchmarks.tables import SLOW, Case, Effort, Table, command, compared
from constructions.bound_report import bound_report
from iha_theory.graphs import load_graph
from iha_theory.rank import integer_matrix

RANDOM = "random.npy"


def exact_powers(a: np.ndarray, k: int) -> None:
    """The baseline: I, A, ..., A^(k-1) over the integers, by repeated multiplication."""
    matrix, _ = integer_matrix(a)
    power = flint.fmpz_mat([[int(i == j) for j in range(len(a))] for i in range(len(a))])
    for _ in range(k - 1):
        power = power * matrix


def random_graph(folder: str) -> Path:
    """A file with 300 x 300 random integers of at most 9."""
    path = Path(folder) / RANDOM
    np.save(path, np.random.default_rng(0).integers(-9, 9, (300, 300)))
    return path


def against_the_bank(name: str, k: int, effort: Effort) -> tuple[float, float, float]:
    """A named graph, or :func:`random_graph`."""
    with tempfile.TemporaryDirectory() as folder:
        a = load_graph(random_graph(folder) if name == RANDOM else name).adjacency
    return compared(lambda: bound_report(a, k), lambda: exact_powers(a, k), min(effort, SLOW))


def bounds_command(name: str, k: int) -> tuple[float, float]:
    """``iha-theory bounds`` of the same."""
    with tempfile.TemporaryDirectory() as folder:
        graph = str(random_graph(folder)) if name == RANDOM else name
        return command("-m", "constructions", "bounds", "--graph", graph, "--k", str(k))


def figures_command() -> tuple[float, float]:
    """All figures, drawn anew elsewhere."""
    with tempfile.TemporaryDirectory() as folder:
        return command("-m", "figures", "--out", folder, "--format", "svg")


def tables(effort: Effort) -> tuple[Table, ...]:
    """What is measured of bounds and figures."""
    graphs = (("karate", 34, 16), ("les-miserables", 77, 25), (RANDOM, 300, 36))
    return (
        Table("bounds", "Bounds beside the bank",
              "All bounds with their certificates and layers, beside the powers of the matrix over the integers with "
              "python-flint.", ("seconds", "baseline, seconds", "ratio"),
              tuple(Case(f"{name}, N={n}, k={k}", partial(against_the_bank, name, k, effort)) for name, n, k in graphs)),
        Table("bounds", "Commands of bounds and figures", "Each in a fresh process; the time includes Python's start.",
              ("seconds", "peak GiB"),
              (Case("iha-theory bounds, les-miserables, k=25", partial(bounds_command, "les-miserables", 25),
                    {"seconds": 10}),
               Case(f"iha-theory bounds, {RANDOM}, N=300, k=36", partial(bounds_command, RANDOM, 36),
                    {"seconds": 60, "peak GiB": 2}),
               Case("all figures", figures_command, {"seconds": 60}))),
    )
