"""The numbers behind the bounds against brute force, certificates and their tampered twins, and the command."""

import dataclasses
import json
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions.bound_report import bound_report, least_pseudo_heads
from constructions.least_heads import CONVENTIONS
from constructions.power_certificates import (
    Apart,
    Dependence,
    Independence,
    Proportional,
    is_apart,
    is_dependence,
    is_independence,
    is_proportional,
)
from constructions.power_structure import Powers
from constructions.sample_matrices import EXPECTED, sample
from iha_theory import IHA, INTEGERS, RATIONALS, forward, linear
from iha_theory.rank import Minor
from tests.command_line import CASES, refused


def powers_by_loops(rows, k):
    """The powers as nested lists of fractions, multiplied entry by entry."""
    n = len(rows)
    found = [[[Fraction(int(i == j)) for j in range(n)] for i in range(n)]]
    while len(found) < k:
        last = found[-1]
        found.append([[sum((last[i][t] * Fraction(rows[t][j]) for t in range(n)), Fraction(0)) for j in range(n)]
                      for i in range(n)])
    return found


def proportional(p, q):
    flat_p, flat_q = ([v for row in m for v in row] for m in (p, q))
    return all(a * d == b * c for a, b in zip(flat_p, flat_q, strict=True) for c, d in zip(flat_p, flat_q, strict=True))


matrices = st.integers(1, 4).flatmap(lambda n: st.lists(st.lists(st.integers(-1, 1), min_size=n, max_size=n),
                                                        min_size=n, max_size=n))


@given(matrices, st.integers(1, 6), st.sampled_from([1, Fraction(1, 2), Fraction(-3)]))
def test_s_rho_and_tau_against_brute_force(rows, k, factor):
    from sympy import Matrix, Rational

    scaled = [[factor * v for v in row] for row in rows]
    found = Powers(RATIONALS.array(scaled), k)
    powers = powers_by_loops(scaled, k)
    flat = Matrix([[Rational(v.numerator, v.denominator) for row in p for v in row] for p in powers])
    assert found.s == flat.rank()
    classes = []
    for p in powers:
        if any(v for row in p for v in row) and not any(proportional(p, q) for q in classes):
            classes.append(p)
    assert found.rho == len(classes)
    tau = next((t for t in range(1, k) if proportional(powers[t], powers[t - 1]) and (
        any(v for row in powers[t - 1] for v in row) or not any(v for row in powers[t] for v in row))), None)
    assert found.tau == tau
    identity = powers[0]
    assert found.is_scalar == proportional(powers_by_loops(scaled, 2)[1], identity)
    # Each power from the first s ones, by the coefficients that the dependence gives.
    for i, row in enumerate(found.in_basis.tolist()):
        combined = [[sum(Fraction(int(c.p), int(c.q)) * powers[j][a][b] for j, c in enumerate(map(flint.fmpq, row)))
                     for b in range(len(rows))] for a in range(len(rows))]
        assert combined == powers[i]


@given(matrices, st.integers(1, 6))
def test_every_certificate_is_accepted_and_every_layer_meets_its_bound(rows, k):
    report = bound_report(RATIONALS.array(rows), k)
    assert report.is_sound
    for _, least, _, how, _ in report.rows:
        assert how.startswith(f"{least} heads")


@pytest.mark.parametrize("key", EXPECTED, ids=str)
def test_the_gallery(key):
    name, k = key
    s, rho, chain, one_width = EXPECTED[key]
    found = Powers(sample(name), k)
    assert [c.least(found) for c in CONVENTIONS.values()][:4] == [rho, chain, one_width, s]


def tampered(certificate):
    """The certificate with one number changed, in each place where there is one."""
    if isinstance(certificate, Independence):
        minor = certificate.minor
        yield dataclasses.replace(certificate, minor=Minor(minor.rows, minor.columns, minor.value + 1))
        yield dataclasses.replace(certificate, minor=Minor(minor.rows, minor.columns, minor.value * 0))
        yield dataclasses.replace(certificate, minor=Minor((minor.rows[0],) * len(minor.rows), minor.columns, minor.value))
        yield dataclasses.replace(certificate, minor=Minor(minor.rows, tuple(reversed(minor.columns)), minor.value))
        yield dataclasses.replace(certificate, x=tuple(v + int(i == 0) for i, v in enumerate(certificate.x)))
    elif isinstance(certificate, Dependence):
        for i in range(len(certificate.coefficients)):
            changed = list(certificate.coefficients)
            changed[i] += 1
            yield Dependence(tuple(changed))
    elif isinstance(certificate, Proportional):
        yield dataclasses.replace(certificate, factor=certificate.factor + 1)
    else:
        yield dataclasses.replace(certificate, places=(certificate.places[0],) * 2)
        yield Apart(certificate.first, certificate.first, certificate.places)


def test_a_certificate_with_one_number_changed_is_rejected():
    seen = set()
    for name, k in EXPECTED:
        p = Powers(sample(name), k)
        groups: list[tuple[Any, Any]] = [
            ([p.independence], is_independence),
            ([p.dependence] if p.dependence else [], is_dependence),
            (p.classes, is_proportional),
            ((*p.classes_apart(), *p.neighbours_apart()), is_apart),
        ]
        for certificates, checker in groups:
            # Each checker takes certificates of its own kind, which the type of the list does not say.
            accepts: Any = checker
            for certificate in certificates:
                assert accepts(p.matrix, certificate)
                for wrong in tampered(certificate):
                    zero = isinstance(wrong, Proportional) and all(v == 0 for v in (p.matrix**wrong.power).entries())
                    last = isinstance(wrong, Independence) and wrong.minor == certificate.minor
                    if not zero and not (last and accepts(p.matrix, wrong)):
                        assert not accepts(p.matrix, wrong), (name, wrong)
                        seen.add(accepts.__name__)
    assert len(seen) == 4


def test_proportional_powers_have_no_certificate_that_they_are_not():
    p = Powers(sample("swap"), 3)
    with pytest.raises(ValueError, match="powers 0 and 2 are proportional"):
        p.apart(iter([(0, 2)]))


def test_pseudo_heads_that_are_known_to_do():
    assert [least_pseudo_heads(h, h)[0] for h in range(1, 10)] == [1, 2, 2, 2, 3, 3, 4, 4, 3]
    assert least_pseudo_heads(3, 3) == (2, "signed")
    assert least_pseudo_heads(2, 2) == (2, "the paper's routing")
    notes = bound_report(RATIONALS.array(np.roll(np.eye(49, dtype=int), 1, axis=1)), 49).notes
    assert "at least 3" in notes[0]
    assert "4 are known to do (tiled): whether fewer suffice is open" in notes[0]


def test_input_that_has_no_bounds():
    for a, k, says in ((np.ones((2, 3), dtype=object), 2, "wanted a square matrix"), (np.eye(2), 2, "floating-point"),
                       (RATIONALS.array([[1]]), 0, "k: got 0")):
        with pytest.raises(ValueError, match=says):
            bound_report(a, k)


def test_the_command_prints_what_is_possible_and_why(run):
    code, out, _ = run("bounds", "--graph", "florentine", "--k", "9")
    assert code == 0
    assert "florentine: 15 nodes" in out
    assert "multi-head, in order, one width     9" in out
    assert "IHA, in order, one width            3" in out
    assert "independence  1 of 1 accepted" in out
    assert "Pseudo-heads at H = 3: at least 2" in out


def test_the_command_writes_its_certificates(run, tmp_path):
    graph, target = tmp_path / "swap.csv", tmp_path / "bounds.json"
    graph.write_text("0,1\n1,0\n")
    code, _, _ = run("bounds", "--graph", graph, "--k", "4", "--json", target)
    assert code == 0
    found = json.loads(target.read_text())
    assert [row["least heads"] for row in found["rows"]] == ["2", "4", "4", "2", "2", "2"]
    assert {c["kind"] for c in found["certificates"]} == {"independence", "dependence", "class", "apart"}
    assert all(c["accepted"] for c in found["certificates"])
    assert found["is_sound"]


def test_a_rejected_certificate_is_exit_code_1(run, monkeypatch):
    import constructions.bound_report as module

    monkeypatch.setattr(module, "is_independence", lambda *_: False)
    code, out, _ = run("bounds", "--graph", "florentine", "--k", "2")
    assert code == 1
    assert "independence  0 of 1 accepted" in out


def test_bad_input_to_the_command(run, tmp_path):
    refused(run("bounds", "--graph", "karate", "--k", "0"), "--k: got 0")
    refused(run("bounds", "--k", "2"), "needs --graph")
    refused(run("bounds", "--graph", "karate"), "--k")
    refused(run("bounds", "--graph", "karate", "--k", "4", "--normalize", "sym"), "square roots")
    refused(run("bounds", "--graph", CASES / "refused" / "not_square.csv", "--k", "2"), "not_square.csv")
    big = tmp_path / "big.npy"
    np.save(big, np.random.default_rng(0).integers(0, 3, (700, 700)))
    refused(run("bounds", "--graph", big, "--k", "100"), "GiB")


def test_one_pseudo_head_does_when_the_heads_are_as_many_as_the_independent_powers():
    """The swap, k = 4, H = 2: R adds what head 0 reads through I and head 1 through A, each into its columns."""
    one = INTEGERS.array(np.ones((2, 2, 1), dtype=int))
    mixing = INTEGERS.array(np.eye(2, dtype=int)[:, :, None])
    weights = IHA(
        INTEGERS.array([[[0, 0], [1, 0], [0, 1]], [[0, 0], [0, 1], [1, 0]]]),
        INTEGERS.array([[[0, 0], [1, 0], [0, 1]]] * 2),
        INTEGERS.array([[[1, 0, 1, 0], [0] * 4, [0] * 4], [[0, 1, 0, 1], [0] * 4, [0] * 4]]),
        mixing, mixing, mixing, one)
    output = forward(weights, INTEGERS.array([[5, 1, 0], [7, 0, 1]]), linear)
    assert output[:, :4].tolist() == [[5, 7, 5, 7], [7, 5, 7, 5]]
    notes = bound_report(sample("swap"), 4).notes
    assert "at least 1, since H P^2 >= s = 2; 1 are known to do (R sums the heads): this is the least" in notes[0]
