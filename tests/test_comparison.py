"""The one comparison: every relation over every domain, shown true, shown false and shown open."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from sympy import QQ
from sympy.polys.rings import ring

from iha_theory.claims import Relation, Verdict, Witness
from iha_theory.comparison import compare
from iha_theory.scalars import BALLS, FLOATS, INTEGERS, POLYNOMIALS, RATIONALS, RESIDUES, Residues

EQUAL, DIFFERENT, AT_MOST, LESS = Relation
HOLDS, AGREES, FAILS, OPEN = Verdict
P = 1048583


@pytest.mark.parametrize(("relation", "left", "right", "verdict", "index"), [
    (EQUAL, [1, 2], [1, 2], HOLDS, None),
    (EQUAL, [1, 2], [1, 3], FAILS, (1,)),
    (DIFFERENT, [1, 2], [1, 3], HOLDS, (1,)),
    (DIFFERENT, [1, 2], [1, 2], FAILS, None),
    (AT_MOST, [1, 2], [1, 3], HOLDS, None),
    (AT_MOST, [4, 2], [1, 3], FAILS, (0,)),
    (LESS, [0, 2], [1, 3], HOLDS, None),
    (LESS, [0, 3], [1, 3], FAILS, (1,)),
])
def test_exact_relations(relation, left, right, verdict, index):
    for domain in (INTEGERS, RATIONALS):
        outcome = compare(relation, domain.array(left), domain.array(right), domain)
        assert outcome.verdict is verdict
        assert (outcome.witness and outcome.witness.index) == index
    scalars = compare(relation, left[-1], right[-1], INTEGERS)
    assert scalars.witness is None or scalars.witness.index == ()


def test_a_witness_shows_both_values():
    outcome = compare(EQUAL, RATIONALS.array([[1, Fraction(1, 3)]]), RATIONALS.array([[1, Fraction(1, 2)]]), RATIONALS)
    assert str(outcome.witness) == "[0, 1]: 1/3 against 1/2"
    assert str(compare(EQUAL, 2, 3, INTEGERS).witness) == "2 against 3"
    assert str(compare(EQUAL, 10**70, 3, INTEGERS).witness) == f"1{'0' * 56}... against 3"
    assert str(compare(EQUAL, 10**59, 3, INTEGERS).witness) == f"1{'0' * 59} against 3"
    assert str(compare(EQUAL, FLOATS.array([0.1]), FLOATS.array([2]), FLOATS, 0.5).witness) == "[0]: 0.1 against 2.0"


def test_flint_and_python_rationals_are_compared():
    assert compare(EQUAL, [flint.fmpq(1, 2)], [Fraction(1, 2)], RATIONALS).verdict is HOLDS
    assert compare(LESS, [Fraction(1, 3)], [flint.fmpq(1, 2)], RATIONALS).verdict is HOLDS


def test_polynomials_are_decided():
    _, a, b = ring("a, b", QQ)
    assert compare(EQUAL, [(a + b) ** 2], [a**2 + 2 * a * b + b**2], POLYNOMIALS).verdict is HOLDS
    assert compare(EQUAL, [a * b], [a], POLYNOMIALS).verdict is FAILS
    field = a.ring.to_field()
    assert compare(EQUAL, [field(a**2 - b**2) / field(a - b)], [a + b], POLYNOMIALS).verdict is HOLDS
    assert compare(DIFFERENT, [field(a) / field(b)], [a], POLYNOMIALS).verdict is HOLDS


def ball(value, radius="0.001"):
    return flint.arb(value, flint.arb(radius))


@pytest.mark.parametrize(("relation", "left", "right", "verdict"), [
    (EQUAL, "1", "1.001", AGREES),
    (EQUAL, "1", "1.1", FAILS),
    (DIFFERENT, "1", "1.1", HOLDS),
    (DIFFERENT, "1", "1.001", OPEN),
    (LESS, "1", "1.1", HOLDS),
    (LESS, "1.1", "1", FAILS),
    (LESS, "1", "1.001", OPEN),
    (AT_MOST, "1", "1.1", HOLDS),
    (AT_MOST, "1.1", "1", FAILS),
    (AT_MOST, "1", "1", OPEN),
])
def test_balls_refute_equality_and_establish_difference(relation, left, right, verdict):
    outcome = compare(relation, [ball("0") * 0 + ball(left)], [ball(right)], BALLS)
    assert outcome.verdict is verdict
    assert (outcome.witness is not None) == ((relation, verdict) in {
        (EQUAL, FAILS), (DIFFERENT, HOLDS), (LESS, FAILS), (AT_MOST, FAILS)})
    assert outcome.remark.startswith("radius 1.0e-03")


def test_touching_balls_are_at_most_and_not_surely_less():
    low, high = flint.arb("0.5", "0.5"), flint.arb("1.5", "0.5")
    assert compare(AT_MOST, [flint.arb(1)], [flint.arb(1)], BALLS).verdict is HOLDS
    assert compare(LESS, [low], [high], BALLS).verdict is not FAILS
    assert compare(LESS, [flint.arb(1)], [flint.arb("1.5", "0.5")], BALLS).verdict is OPEN
    edge = low.upper()
    assert compare(LESS, [low], [edge], BALLS).verdict is OPEN
    assert compare(AT_MOST, [low], [edge], BALLS).verdict is HOLDS


def test_a_gap_of_exactly_the_bound_refutes_nothing():
    assert compare(LESS, np.array([1.5]), np.array([1.0]), FLOATS, 0.5).verdict is OPEN
    assert compare(AT_MOST, np.array([1.5]), np.array([1.0]), FLOATS, 0.5).verdict is OPEN
    assert compare(EQUAL, np.array([1.5]), np.array([1.0]), FLOATS, 0.5).verdict is AGREES


def test_exact_balls_at_the_edge():
    assert compare(LESS, [flint.arb(1)], [flint.arb(1)], BALLS).verdict is FAILS
    assert compare(AT_MOST, [flint.arb(1)], [flint.arb(1)], BALLS).verdict is HOLDS
    with pytest.raises(ValueError, match="without a finite radius"):
        compare(EQUAL, [flint.arb(0, flint.arb("inf"))], [flint.arb(0)], BALLS)


@pytest.mark.parametrize(("relation", "left", "right", "verdict"), [
    (EQUAL, 1.0, 1.5, AGREES),
    (EQUAL, 1.0, 1.6, FAILS),
    (DIFFERENT, 1.0, 1.6, HOLDS),
    (DIFFERENT, 1.0, 1.5, OPEN),
    (LESS, 1.0, 1.6, HOLDS),
    (LESS, 1.0, 1.5, OPEN),
    (LESS, 1.6, 1.0, FAILS),
    (AT_MOST, 1.6, 1.0, FAILS),
])
def test_floats_are_judged_within_their_bound(relation, left, right, verdict):
    outcome = compare(relation, np.array([0.0, left]), np.array([0.0 if relation is EQUAL else -9.0, right])
                      if relation in (EQUAL,) else np.array([9.0 if left < right else -9.0, right]), FLOATS,
                      np.array([20.0, 0.5]) if relation is DIFFERENT else 0.5)
    assert outcome.verdict is verdict
    if verdict in (FAILS,) or (relation, verdict) == (DIFFERENT, HOLDS):
        assert outcome.witness is not None
    assert "largest difference" in outcome.remark


@pytest.mark.parametrize(("relation", "index"), [(EQUAL, (0, 1)), (DIFFERENT, (0, 1)), (LESS, (1, 0)), (AT_MOST, (1, 0))])
def test_the_witness_is_the_first_place_that_shows_it(relation, index):
    """Row by row: the left side is less at [0, 1], [0, 2] and [1, 1], greater at [1, 0] and [1, 2]."""
    left, right = [[3, 1, 3], [6, 2, 9]], [[3, 2, 4], [5, 7, 8]]
    if relation in (LESS, AT_MOST):
        right[0][0] = 4
    for domain, bound in ((INTEGERS, None), (RATIONALS, None), (BALLS, None), (FLOATS, 0.25)):
        witness = compare(relation, domain.array(left), domain.array(right), domain, bound).witness
        assert witness is not None
        assert witness.index == index, domain.name
    if relation in (EQUAL, DIFFERENT):
        mine, other = (Residues(np.array(side), P) for side in (left, right))
        assert compare(relation, mine, other, RESIDUES).witness == Witness(index, "1", "2")


def test_floats_without_a_bound_or_without_a_number_are_refused():
    with pytest.raises(ValueError, match="only within a computed bound"):
        compare(EQUAL, 1.0, 1.0, FLOATS)
    for bad in (np.nan, np.inf):
        with pytest.raises(ValueError, match="left side: not a finite number at index"):
            compare(EQUAL, np.array([0.0, bad]), np.array([0.0, 0.0]), FLOATS, 1.0)
        with pytest.raises(ValueError, match="right side: not a finite number"):
            compare(EQUAL, np.array([0.0]), np.array([bad]), FLOATS, 1.0)
        with pytest.raises(ValueError, match="bound: not a finite number"):
            compare(EQUAL, np.array([0.0]), np.array([0.0]), FLOATS, bad)


def test_residues_of_one_prime_are_compared():
    left, right = Residues(np.array([1, 2]), P), Residues(np.array([1, P + 2]), P)
    assert compare(EQUAL, left, right, RESIDUES).verdict is HOLDS
    outcome = compare(EQUAL, left, Residues(np.array([1, 3]), P), RESIDUES)
    assert outcome.verdict is FAILS
    assert str(outcome.witness) == "[1]: 2 against 3"
    assert compare(DIFFERENT, left, right, RESIDUES).verdict is FAILS
    with pytest.raises(TypeError, match="modulo 1048583 against residues modulo 1048589"):
        compare(EQUAL, left, Residues(np.array([1, 2]), 1048589), RESIDUES)
    with pytest.raises(TypeError, match="not ordered"):
        compare(LESS, left, right, RESIDUES)


def test_a_scalar_is_compared_with_every_element():
    assert compare(EQUAL, [0, 0], 0, INTEGERS).verdict is HOLDS
    assert compare(EQUAL, [0, 1], 0, INTEGERS).witness == Witness((1,), "1", "0")


@pytest.mark.parametrize(("value", "domain"), [
    (0.5, RATIONALS), (np.array([0.5]), RATIONALS), (True, INTEGERS), (flint.fmpq(1, 2), INTEGERS),
    (flint.arb(1), RATIONALS), (1, BALLS), (1, POLYNOMIALS), ([flint.fmpz(1)], FLOATS), (np.array([1.0]), RESIDUES),
    (Residues(np.array([1]), P), FLOATS), ([None], INTEGERS),
])
def test_an_element_outside_the_domain_is_a_type_error(value, domain):
    good = {BALLS: [flint.arb(1)], FLOATS: np.array([1.0]), RESIDUES: Residues(np.array([1]), P)}.get(domain, [1])
    if domain is POLYNOMIALS:
        good = [ring("a", QQ)[1]]
    for sides in ((value, good), (good, value)):
        with pytest.raises(TypeError, match=f"none of the {domain.name}"):
            compare(EQUAL, *sides, domain, 1.0)


def test_shapes_must_match_and_something_must_be_compared():
    with pytest.raises(ValueError, match=r"left side has shape \(2,\), right side \(3,\)"):
        compare(EQUAL, [1, 2], [1, 2, 3], INTEGERS)
    with pytest.raises(ValueError, match="nothing to compare"):
        compare(EQUAL, [], [], INTEGERS)
    with pytest.raises(ValueError, match="nothing to compare"):
        compare(EQUAL, [], 1, INTEGERS)
    with pytest.raises(ValueError, match="ragged array"):
        compare(EQUAL, [[1], [1, 2]], [[1], [1]], INTEGERS)


def test_an_element_outside_the_domain_is_named_with_its_side_and_its_place():
    for side, pair in (("left", ([1, 0.5], [1, 1])), ("right", ([1, 1], [1, 0.5]))):
        left, right = (np.array(values, dtype=object) for values in pair)
        with pytest.raises(TypeError, match=rf"^{side} side, index \(1,\): float is none of the integers"):
            compare(EQUAL, left, right, INTEGERS)


def test_single_floats_are_compared_within_a_bound():
    assert compare(EQUAL, 1.0, 1.5, FLOATS, 0.5).verdict is AGREES
    assert compare(EQUAL, 1.0, 1.5, FLOATS, 0.25).verdict is FAILS
    assert compare(LESS, 1.0, 2.0, FLOATS, 0.25).verdict is not FAILS
