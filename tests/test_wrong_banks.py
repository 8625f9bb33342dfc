"""A wrong filter bank is refuted over every domain, even one made to fit the features that are tried."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from constructions import polynomial_filter
from constructions.bank import bank, deciding_features
from constructions.blocks import row_sum, unit_like
from constructions.filter_mutants import skipping, untransposed, without_last_head
from constructions.oracle import filter_bank
from constructions.theorem_3_polynomial_filter import IHA_BANK
from iha_theory import FLOATS, INTEGERS, RATIONALS, forward, linear
from iha_theory.claims import Relation, Verdict
from iha_theory.comparison import compare
from iha_theory.layer import multi_head
from tests.planted import ROUNDS, instance_of, verdict


def features_exchanged(instance):
    """The values hold the features in reverse order."""
    w_v = instance.weights.w_v.copy()
    w_v[:, : instance.d] = w_v[:, : instance.d][:, ::-1].copy()
    return dataclasses.replace(instance, weights=dataclasses.replace(instance.weights, w_v=w_v))


@pytest.mark.parametrize(("domain", "prime"), ROUNDS)
@pytest.mark.parametrize("wrong", [skipping, without_last_head, untransposed, features_exchanged])
def test_a_wrong_bank_fails_over_every_domain(domain, prime, wrong):
    found, instance = instance_of(domain, prime)
    assert verdict(found, instance) is (Verdict.AGREES if domain is FLOATS else Verdict.HOLDS)
    assert verdict(found, wrong(instance)) is Verdict.FAILS


@pytest.mark.parametrize(("domain", "prime"), ROUNDS)
def test_one_wrong_entry_of_any_weight_fails_over_every_domain(domain, prime):
    found, instance = instance_of(domain, prime)
    free = IHA_BANK.free(instance) if IHA_BANK.free else {}
    for name, array in instance.weights.fields().items():
        idle = np.broadcast_to(free.get(f"weights.{name}", False), array.shape)
        for index in np.ndindex(array.shape):
            moved = array.copy()
            moved[index] = moved[index] + 1
            wrong = dataclasses.replace(instance, weights=dataclasses.replace(instance.weights, **{name: moved}))
            assert (verdict(found, wrong) is Verdict.FAILS) == (not idle[index]), (name, index)


def at_these_features(weights, x):
    """The layer whose first value column also holds the first feature minus its numbers in x: wrong, but not at x."""
    w_v, d = weights.w_v.copy(), x.shape[1]
    w_v[0, 0, 0] = w_v[0, 0, 0] + 1
    for token, value in enumerate(x[:, 0]):
        w_v[0, d + token, 0] = w_v[0, d + token, 0] - value
    return dataclasses.replace(weights, w_v=w_v)


@pytest.mark.parametrize("domain", [INTEGERS, RATIONALS])
@pytest.mark.parametrize("k", [1, 4])
def test_the_generic_features_move_on_when_a_layer_is_made_to_fit_them(domain, k):
    found, right = instance_of(domain, None, k=k)
    fixed = domain.array(np.arange(1, 7).reshape(3, 2).astype(object))
    for x in (right.x[:, :2], fixed):
        def build_wrong(a, x=x):
            return at_these_features(polynomial_filter(a, k, 2), x)

        wrong = bank(build_wrong, domain=domain, k=k, d=2, n=3, seed=5)
        assert verdict(found, wrong) is Verdict.FAILS
        there = bank(build_wrong, domain=domain, k=k, d=2, n=3, seed=5, features=x)
        assert verdict(found, there) is Verdict.HOLDS


def test_the_generic_features_move_on_when_a_matrix_is_made_to_fit_them():
    """The layer outputs [X, 0]; A is chosen so that AX = 0 at the features that a zero matrix would get."""
    unit = INTEGERS.array([[[0, 0], [1, 0], [0, 1]]])
    weights = multi_head(unit, unit, INTEGERS.array([[[1, 0], [0, 0], [0, 0]]]))

    def judged(a, x):
        output = forward(weights, np.concatenate([x, unit_like(a, 2)], axis=1), linear)
        return compare(Relation.EQUAL, output, filter_bank(a, x, 2), INTEGERS).verdict

    first, second = deciding_features(weights, INTEGERS.array([[0, 0], [0, 0]]), 2, 1)[:, 0]
    assert second % first == 0
    a = INTEGERS.array([[second // first, -1], [0, 0]])
    assert judged(a, INTEGERS.array([[first], [second]])) is Verdict.HOLDS
    assert judged(a, INTEGERS.array(deciding_features(weights, a, 2, 1))) is Verdict.FAILS


def test_row_sums_bound_every_row():
    bound, denominator = row_sum(INTEGERS.array([[1, -2], [-3, 4]]))
    assert (7 <= bound <= 8, denominator) == (True, 1)
    assert row_sum(RATIONALS.array([[0, Fraction(3, 2)], [-5, Fraction(1, 3)]])) == (6, 6)
