"""Theorem 1: the k-head construction by hand, the operators that a layer applies, and the errata's instances."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions import polynomial_filter_mha
from constructions.oracle import filter_bank
from constructions.theorem_1_operator_count import one_head_for_scalar, operators
from iha_theory import INTEGERS, RATIONALS, forward, is_nonzero_minor, linear, nonzero_minor
from iha_theory.rank import Minor, exact_rank


def test_the_weights_of_two_heads_by_hand():
    weights = polynomial_filter_mha(INTEGERS.array([[1, 2], [3, 4]]), 2, 1)
    assert weights.w_q.tolist() == [[[0, 0], [1, 0], [0, 1]], [[0, 0], [1, 2], [3, 4]]]
    assert weights.w_k.tolist() == [[[0, 0], [1, 0], [0, 1]]] * 2
    assert weights.w_v.tolist() == [[[1], [0], [0]]] * 2
    assert not weights.is_mixed


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 6), st.integers(0, 10**6))
def test_k_heads_output_the_bank_and_apply_its_powers(n, d, k, seed):
    source = np.random.default_rng(seed)
    a = INTEGERS.array(source.integers(-3, 4, (n, n)).astype(object))
    x = INTEGERS.array(source.integers(-3, 4, (n, d)).astype(object))
    weights = polynomial_filter_mha(a, k, d)
    hat = np.concatenate([x, INTEGERS.array(np.eye(n, dtype=int))], axis=1)
    assert (forward(weights, hat, linear) == filter_bank(a, x, k)).all()
    applied = operators(weights, hat).reshape(k, n, n)
    power = INTEGERS.array(np.eye(n, dtype=int))
    for t in range(k):
        assert (applied[t] == power).all()
        power = power @ a


def test_one_head_for_a_multiple_of_the_identity():
    weights = one_head_for_scalar(INTEGERS.element(3), 2, 4, 1)
    hat = INTEGERS.array([[5, 1, 0], [7, 0, 1]])
    assert forward(weights, hat, linear).tolist() == [[5, 15, 45, 135], [7, 21, 63, 189]]
    assert weights.sizes["out"] == 1
    two = one_head_for_scalar(INTEGERS.element(3), 1, 3, 2)
    assert forward(two, INTEGERS.array([[5, 7, 1]]), linear).tolist() == [[5, 7, 15, 21, 45, 63]]


def test_the_builder_refuses_bad_input():
    with pytest.raises(ValueError, match=r"has shape \(2, 3\); wanted a square one"):
        polynomial_filter_mha(np.ones((2, 3)), 1, 1)
    with pytest.raises(ValueError, match="got k=0, d=1"):
        polynomial_filter_mha(INTEGERS.array([[1]]), 0, 1)
    with pytest.raises(ValueError, match="got k=1, d=0"):
        polynomial_filter_mha(INTEGERS.array([[1]]), 1, 0)


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 4), st.integers(0, 10**6))
def test_ranks_are_exact_and_their_certificates_check(rows, columns, wanted, seed):
    """A product of (rows, r) and (r, columns) has rank at most r; sympy is the independent judge."""
    from sympy import Matrix

    source = np.random.default_rng(seed)
    left, right = source.integers(-3, 4, (rows, wanted)), source.integers(-3, 4, (wanted, columns))
    matrix = RATIONALS.array((left @ right).astype(object)) / 7
    expected = Matrix((left @ right).tolist()).rank() if wanted else 0
    assert exact_rank(matrix) == expected
    if not expected:
        with pytest.raises(ValueError, match="no non-zero minor"):
            nonzero_minor(matrix)
        return
    minor = nonzero_minor(matrix)
    assert len(minor.rows) == len(minor.columns) == expected
    assert is_nonzero_minor(matrix, minor)
    for broken in (Minor(minor.rows, minor.columns, minor.value + 1), Minor(minor.rows, minor.columns, minor.value * 0),
                   Minor(minor.rows[:1] * 2, (minor.columns * 2)[:2], minor.value)):
        assert not is_nonzero_minor(matrix, broken)
