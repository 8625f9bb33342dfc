"""The two networks that count, weight by weight, and their activations."""

from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions import counting_mlp, counting_relu_mlp
from constructions.counting import divides, relu
from constructions.shifts import workspace
from iha_theory import RATIONALS
from tests.shifted_tokens import brute_force


def test_the_mlp_by_hand():
    """Two tokens, G = 7: the units are the pairs of columns (0,0), (0,1), (1,0), (1,1)."""
    mlp = counting_mlp(2, 3, 7, width=2)
    assert mlp.w_1.tolist() == [[9, 8, 2, 1], [0, 1, 7, 8]]
    assert mlp.w_2.tolist() == [[1]] * 4
    assert counting_mlp(2, 3, 7).w_1.tolist() == [[9, 8, 2, 1], [0, 1, 7, 8], [0] * 4, [0] * 4]
    # tokens 1, 2: 9 and 17, 16, 24 at position 0, of which 3 divides 9 and 24
    assert mlp.hidden(np.array([1, 2], dtype=object)).tolist() == [9, 10, 16, 17]
    assert mlp(np.array([1, 2], dtype=object)).tolist() == [1]
    assert (mlp.units, mlp.parameters) == (4, 12)


def test_the_relu_network_by_hand():
    """One token up to 2, M = 2, G = 1: s = 3x <= 6, bumps at 0, 2, 4, 6."""
    mlp: Any = counting_relu_mlp(1, 2, 1, 2)
    assert mlp.w_1.tolist() == [[3] * 12]
    assert mlp.b_1.tolist() == [1, 0, -1, -1, -2, -3, -3, -4, -5, -5, -6, -7]
    assert mlp.w_2.ravel().tolist() == [1, -2, 1] * 4
    assert mlp(np.array([[0], [1], [2]], dtype=object)).ravel().tolist() == [1, 0, 1]
    assert (mlp.units, mlp.parameters) == (12, 36)


def test_the_activations():
    assert [divides(3)(s) for s in range(-4, 5)] == [0, 1, 0, 0, 1, 0, 0, 1, 0]
    assert [divides(1)(s) for s in (0, 1, 2)] == [1, 1, 1]
    assert divides(3)(RATIONALS.element(Fraction(13, 4))) == Fraction(3, 4)
    assert divides(3)(RATIONALS.element(Fraction(7, 2))) == Fraction(1, 2)
    assert divides(3)(RATIONALS.element(6)) == 1
    assert [relu(s) for s in (-2, 0, 5)] == [0, 0, 5]


@pytest.mark.parametrize(("mlp", "tokens"), [
    (counting_mlp(2, 3, 7, width=2), range(3)),
    (counting_relu_mlp(2, 3, 4, 2, width=2), range(3)),
    (counting_relu_mlp(1, 3, 2, 3, width=1), range(4)),
], ids=["modulo", "relu", "relu, one token"])
def test_every_weight_of_the_mlp_is_load_bearing(mlp, tokens):
    """All but the output weights of ReLU units beyond the largest sum, which receive nothing positive."""
    rows = np.array(list(product(tokens, repeat=mlp.w_1.shape[0])), dtype=object)
    counts, idle = mlp(rows).tolist(), set()
    for name in ("w_1", "b_1", "w_2"):
        array: Any = getattr(mlp, name)
        for place in np.ndindex(array.shape) if array is not None else ():
            changed = False
            assert array is not None
            for new in (array[place] + 1, array[place] - 1, 0, -array[place]):
                other = array.copy()
                other[place] = new
                changed |= replace(mlp, **{name: other})(rows).tolist() != counts
            if not changed:
                idle.add((name, place))
    silent = np.flatnonzero((mlp.hidden(rows) <= 0).all(axis=0)) if mlp.b_1 is not None else []
    assert idle == {("w_2", (int(unit), 0)) for unit in silent}


@given(st.lists(st.integers(0, 6), min_size=1, max_size=4), st.integers(1, 5), st.integers(0, 9))
def test_the_relu_network_counts_as_brute_force_does(tokens, modulus, coefficient):
    n = len(tokens)
    mlp = counting_relu_mlp(n, modulus, coefficient, 6, width=n)
    assert mlp(workspace(np.array(tokens, dtype=object).reshape(n, 1), n))[:, 0].tolist() == brute_force(
        tokens, modulus, coefficient)


def test_the_relu_network_is_right_up_to_the_largest_token_and_not_beyond():
    mlp = counting_relu_mlp(1, 3, 1, 3)
    assert [int(mlp(np.array([x], dtype=object))[0]) for x in range(6)] == [1, 1, 1, 1, 0, 0]
