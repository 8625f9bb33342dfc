"""What is drawn for a case is the graph that was given, or random numbers that are independent."""

from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest

from constructions import CATALOGUE
from constructions.bank_cases import requested_banks
from iha_theory import INTEGERS, RESIDUES, Request
from iha_theory.residues import random_primes
from iha_theory.scalars import as_fraction
from tests.planted import PRIMES, ROUNDS, graph, instance_of


@pytest.mark.parametrize(("domain", "prime"), ROUNDS)
def test_the_weights_of_a_graph_are_those_of_its_matrix(domain, prime, tmp_path):
    rows = [[0, 3], [-2, 5]] if domain is INTEGERS else [[0, 3], [-2.5, 0.25]]
    _, instance = instance_of(domain, prime, graph=graph(tmp_path, rows))
    for i, j in np.ndindex(2, 2):
        wanted, got = Fraction(rows[i][j]), as_fraction(instance.a[i, j])
        assert (got * wanted.denominator - wanted.numerator) % (prime or 10**9) == 0
    # AX, the second block of the target, by hand.
    for i, c in np.ndindex(2, 2):
        wanted = sum(Fraction(rows[i][j]) * as_fraction(instance.x[j, c]) for j in range(2))
        gap = 4 * wanted - 4 * as_fraction(instance.target[i, 2 + c])
        assert gap % prime == 0 if prime else gap == 0


def test_the_draws_modulo_different_primes_are_independent():
    for seed, (p, q) in product((0, 7), combinations(random_primes(4, seed=1), 2)):
        one, other = (instance_of(RESIDUES, prime, n=12, seed=seed)[1] for prime in (p, q))
        for first, second in ((one.a, other.a), (one.x[:, :2], other.x[:, :2])):
            near = np.abs(np.asarray(first) / p - np.asarray(second) / q) < 1e-3
            assert near.mean() < 0.1
            assert np.asarray(first == second).mean() < 0.1
    again = [instance_of(RESIDUES, PRIMES[0], seed=seed)[1].x for seed in (3, 3, 4)]
    assert (again[0] == again[1]).all()
    assert not (again[0] == again[2]).all()


def test_primes_are_distinct_where_a_draw_repeats_one():
    drawn = random_primes(600, seed=0)
    assert len(set(drawn)) == 600
    given = [c.parameters["primes"] for t in CATALOGUE for s in t.sections for c in s.cases if "primes" in c.parameters]
    (asked,) = requested_banks(Request(n=7, k=2), lambda k, d, n: {
        "source": k, "head": k, "out": k, "pseudo": 1, "model": d + n, "key": n, "value": d})
    assert len(given) > 5
    for primes in (*given, asked.parameters["primes"]):
        assert len(set(primes)) == len(primes) > 1
