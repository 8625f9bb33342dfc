"""The core: exact layers beside their baseline, how time grows, and whole commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.tables import SLOW, Case, Effort, Table, command, compared, median_seconds
from constructions.bank import bank
from constructions.blocks import powers
from constructions.oracle import filter_bank
from constructions.theorem_3_polynomial_filter import polynomial_filter
from iha_theory.count import ceil_sqrt
from iha_theory.graphs import load_graph
from iha_theory.residues import Residues, random_primes
from iha_theory.scalars import INTEGERS, POLYNOMIALS, RESIDUES, Domain


def verified(domain: Domain, k: int, d: int, **source: object) -> None:
    """Build the filter bank's layer, run it and compare with the oracle; raises if they differ."""
    instance = bank(lambda a: polynomial_filter(a, k, d), domain=domain, k=k, d=d, **source)  # type: ignore[arg-type]
    if not (np.asarray(instance.output) == np.asarray(instance.target)).all():
        raise ValueError(f"the layer's output is not the bank: k={k}, d={d}, {domain.name}")


def by_residues(n: int, k: int, d: int) -> Callable[[], None]:
    """The check modulo a random prime."""
    (prime,) = random_primes(1, seed=0)
    return lambda: verified(RESIDUES, k, d, n=n, prime=prime)


def needed(n: int, k: int, d: int) -> Callable[[], None]:
    """The baseline: the bank by repeated multiplication, and the powers that the weights hold, modulo a prime."""
    (prime,) = random_primes(1, seed=0)
    source = np.random.default_rng(0)
    a = Residues(source.integers(0, prime, (n, n)), prime)
    x = Residues(source.integers(0, prime, (n, d)), prime)
    heads = ceil_sqrt(k)

    def work() -> None:
        small = powers(a, heads + 1)
        powers(small[heads], heads)
        filter_bank(a, x, k)

    return work


def karate_club() -> None:
    """Every X on the karate club, k = 16, d = 4, over the integers."""
    verified(INTEGERS, 16, 4, graph=load_graph("karate"))


def growth(n: int, k: int, effort: Effort) -> tuple[float, float]:
    """(seconds, picoseconds for each unit of N^3 sqrt(k))."""
    taken = median_seconds(by_residues(n, k, 4), min(effort, SLOW))
    return taken, taken / (n**3 * k**0.5) * 1e12


def tables(effort: Effort) -> tuple[Table, ...]:
    """What is measured of the core."""
    residues = ("-c", "from benchmarks.core import by_residues; by_residues(512, 64, 4)()")
    return (
        Table("core", "Exact layers beside the bank",
              "Theorem 3's layer built, run and compared modulo a prime, beside the bank by repeated multiplication and "
              "the powers that the weights hold, in the same arithmetic.",
              ("seconds", "baseline, seconds", "ratio"),
              tuple(Case(f"residues, N=512, k={k}, d=4",
                         partial(lambda k: compared(by_residues(512, k, 4), needed(512, k, 4), min(effort, SLOW)), k),
                         {"ratio": 6} if k == 64 else {}) for k in (16, 64))),
        Table("core", "Exact layers in seconds", "Built, run and compared with the oracle.", ("seconds",),
              (Case("identity over Z[A, X], n=3, d=2, k=9",
                    lambda: (median_seconds(lambda: verified(POLYNOMIALS, 9, 2, n=3), effort),), {"seconds": 0.5}),
               Case("every X on the karate club, exact, k=16, d=4", lambda: (median_seconds(karate_club, effort),),
                    {"seconds": 2}))),
        Table("core", "Growth", "Residues, d=4. Time for each unit of N^3 sqrt(k) should not grow.",
              ("seconds", "ps per N^3 sqrt(k)"),
              tuple(Case(f"N={n}, k={k}", partial(growth, n, k, effort))
                    for n, k in ((128, 16), (256, 16), (256, 64), (512, 16), (512, 64)))),
        Table("core", "Commands of the core", "Each in a fresh process; the time includes Python's start.",
              ("seconds", "peak GiB"),
              (Case("residues, N=512, k=64, d=4", partial(command, *residues), {"peak GiB": 2}),
               Case("iha-theory --help", partial(command, "-m", "constructions", "--help")),
               Case("iha-theory verify", partial(command, "-m", "constructions", "verify"),
                    {"seconds": 30, "peak GiB": 1}))),
    )
