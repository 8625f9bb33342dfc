"""The core's speed: each measurement beside its baseline, interleaved, medians of the ratios, peak memory.

Run by ``make bench``. Nothing here passes or fails: the numbers are printed for people.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from constructions.bank import bank
from constructions.blocks import powers
from constructions.oracle import filter_bank
from constructions.theorem_3_polynomial_filter import polynomial_filter
from iha_theory.count import ceil_sqrt
from iha_theory.graphs import load_graph
from iha_theory.residues import Residues, random_primes
from iha_theory.scalars import INTEGERS, POLYNOMIALS, RESIDUES, Domain

ROOT = Path(__file__).parent.parent
ROUNDS = 5


def seconds(work: Callable[[], object]) -> float:
    """The wall time of one call."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def verified(domain: Domain, k: int, d: int, **source: object) -> None:
    """Build the filter bank's layer, run it and compare with the oracle; raises if they differ."""
    instance = bank(lambda a: polynomial_filter(a, k, d), domain=domain, k=k, d=d, **source)  # type: ignore[arg-type]
    if not (np.asarray(instance.output) == np.asarray(instance.target)).all():
        raise ValueError(f"the layer's output is not the bank: k={k}, d={d}, {domain.name}")


def needed(a: np.ndarray, x: np.ndarray, k: int) -> None:
    """The baseline: the bank by repeated multiplication, and the powers that the weights hold."""
    heads = ceil_sqrt(k)
    small = powers(a, heads + 1)
    powers(small[heads], heads)
    filter_bank(a, x, k)


def against_the_bank(n: int, k: int, d: int) -> tuple[float, float, float]:
    """Residues: (seconds of the check, seconds of the baseline, ratio), medians of interleaved rounds."""
    (prime,) = random_primes(1, seed=0)
    source = np.random.default_rng(0)
    rounds = []
    for _ in range(ROUNDS):
        a = Residues(source.integers(0, prime, (n, n)), prime)
        x = Residues(source.integers(0, prime, (n, d)), prime)
        base = seconds(lambda a=a, x=x: needed(a, x, k))
        rounds.append((seconds(lambda: verified(RESIDUES, k, d, n=n, prime=prime)), base))
    return (statistics.median(check for check, _ in rounds), statistics.median(base for _, base in rounds),
            statistics.median(check / base for check, base in rounds))


def peak_memory() -> float:
    """GiB, of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def command(*arguments: str) -> tuple[float, float]:
    """(seconds, peak GiB of the children so far) of one command."""
    taken = seconds(lambda: subprocess.run([sys.executable, "-m", "constructions", *arguments], cwd=ROOT, check=True,
                                           capture_output=True))
    return taken, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20


def main() -> None:
    """Print the table."""
    print(f"{'what':<58} {'seconds':>9} {'baseline':>9} {'ratio':>6}")
    for k in (16, 64):
        check, base, ratio = against_the_bank(512, k, 4)
        print(f"{f'residues, N=512, k={k}, d=4, against bank and powers':<58} {check:9.3f} {base:9.3f} {ratio:6.2f}")
    print(f"{'peak memory of the above, GiB':<58} {peak_memory():9.2f}")
    verified(POLYNOMIALS, 9, 2, n=3)
    symbolic = statistics.median(seconds(lambda: verified(POLYNOMIALS, 9, 2, n=3)) for _ in range(ROUNDS))
    print(f"{'identity over Z[A, X], n=3, d=2, k=9':<58} {symbolic:9.3f}")
    karate = load_graph("karate")
    exact = statistics.median(seconds(lambda: verified(INTEGERS, 16, 4, graph=karate)) for _ in range(ROUNDS))
    print(f"{'every X on the karate club, exact, k=16, d=4':<58} {exact:9.3f}")
    print("picoseconds for each unit of N^3 sqrt(k), residues, d=4: it should not grow")
    for n, k in ((128, 16), (256, 16), (256, 64), (512, 16), (512, 64)):
        check = against_the_bank(n, k, 4)[0]
        print(f"{f'    N={n}, k={k}':<58} {check / (n**3 * k**0.5) * 1e12:9.0f}")
    taken = statistics.median(command("--help")[0] for _ in range(ROUNDS))
    print(f"{'iha-theory --help':<58} {taken:9.3f}")
    taken, memory = command("verify")
    print(f"{'iha-theory verify (the whole book)':<58} {taken:9.1f}")
    print(f"{'    its peak memory, GiB':<58} {memory:9.2f}")


if __name__ == "__main__":
    main()
