"""One wrong layer makes the answer to the bounds unsound, exactly and by residues."""

import dataclasses
from itertools import combinations

import numpy as np
import pytest

import constructions.bound_report as bounds_module
from constructions.blocks import unit_like
from constructions.bound_report import bound_report
from constructions.least_heads import CONVENTIONS
from constructions.oracle import filter_bank
from constructions.power_structure import Powers
from constructions.sample_matrices import sample
from iha_theory import INTEGERS
from iha_theory.residues import Residues


def doubled_value(placed):
    w_v = placed.weights.w_v.copy()
    w_v[0, 0, 0] = w_v[0, 0, 0] + 1
    return dataclasses.replace(placed, weights=dataclasses.replace(placed.weights, w_v=w_v))


WRONG = {
    "one value changed": lambda meets: lambda p, a, d: doubled_value(meets(p, a, d)),
    "another matrix": lambda meets: lambda p, a, d: meets(p, a + unit_like(a, p.n), d),
}


@pytest.mark.parametrize("name", CONVENTIONS)
@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("exactly", [True, False], ids=["exactly", "by residues"])
def test_one_wrong_layer_makes_the_bounds_unsound(monkeypatch, name, wrong, exactly):
    if not exactly:
        monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    for matrix, k in (("swap", 5), ("halves", 4), ("cyclic", 4)):
        good = bound_report(sample(matrix), k)
        assert good.is_sound
        assert all(("exactly" if exactly else "by 3 residues") in row[3] for row in good.rows)
        with monkeypatch.context() as patch:
            convention = CONVENTIONS[name]
            patch.setitem(CONVENTIONS, name, dataclasses.replace(convention, meets=WRONG[wrong](convention.meets)))
            bad = bound_report(sample(matrix), k)
        assert not bad.is_sound
        assert all(certificate["accepted"] for certificate in bad.certificates)


def test_the_residues_of_the_bounds_are_three_primes_and_three_draws(monkeypatch):
    drawn = []

    def remembering(a, x, k):
        drawn.append((a, x))
        return filter_bank(a, x, k)

    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    monkeypatch.setattr(bounds_module, "filter_bank", remembering)
    n = 8
    bound_report(INTEGERS.array(np.roll(np.eye(n, dtype=int), 1, axis=1)), 2)
    assert len({x.prime for _, x in drawn}) == len(drawn) == 3
    for (_, first), (_, second) in combinations(drawn, 2):
        assert isinstance(first, Residues)
        near = np.abs(np.asarray(first) / first.prime - np.asarray(second) / second.prime) < 1e-3
        assert near.sum() < 2


@pytest.mark.parametrize("place", range(3))
def test_one_prime_refutes_a_layer_of_the_bounds(monkeypatch, place):
    primes = []
    convention = CONVENTIONS["free"]

    def wrong_at_one_prime(p, a, d):
        primes.append(a.prime)
        placed = convention.meets(p, a, d)
        return doubled_value(placed) if len(primes) == place + 1 else placed

    monkeypatch.setattr(bounds_module, "_EXACT_WORK", 0)
    monkeypatch.setitem(CONVENTIONS, "free", dataclasses.replace(convention, meets=wrong_at_one_prime))
    assert not bound_report(sample("swap"), 3).is_sound
    assert len(set(primes)) == 3


@pytest.mark.parametrize("name", CONVENTIONS)
def test_answers_by_residues_and_exact_ones_stay_with_their_conventions(monkeypatch, name):
    """One report, some of its layers above the limit of the exact check and some below."""
    a, k = sample("cyclic"), 4
    structure, most = Powers(a, k), 3 * 4**3
    monkeypatch.setattr(bounds_module, "_EXACT_WORK", most)
    large = {c.title for c in CONVENTIONS.values() if c.least(structure) > 3}
    report = bound_report(a, k)
    assert report.is_sound
    assert {row[0] for row in report.rows if "by 3 residues" in row[3]} == large
    assert 0 < len(large) < len(CONVENTIONS)
    assert all(row[3].startswith(f"{row[1]} heads") for row in report.rows)
    convention = CONVENTIONS[name]
    monkeypatch.setitem(CONVENTIONS, name, dataclasses.replace(
        convention, meets=WRONG["one value changed"](convention.meets)))
    assert not bound_report(a, k).is_sound
