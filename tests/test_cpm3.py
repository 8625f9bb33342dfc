"""Counting pairs modulo M, from tokens to counts: the worked cases, brute force, shorter sequences, order."""

import json
from math import gcd
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions import count_matches, counting_mlp, counting_relu_mlp, cyclic_shifts, cyclic_shifts_mha
from constructions.blocks import Cover
from constructions.counting import filled_up
from constructions.cpm3 import (
    count_by_definition,
    count_by_histogram,
    detects_every_swap,
    is_order_sensitive,
    is_symmetric,
)
from tests.shifted_tokens import HALF, brute_force

CASES = json.loads((Path(__file__).parent / "cases" / "cpm3.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=lambda c: f"M={c['M']}-G={c['G']}-N_max={c['N_max']}-{len(c['x'])}")
def test_the_worked_cases(case):
    x, modulus, coefficient = case["x"], case["M"], case["G"]
    assert count_matches(x, case["N_max"], modulus, coefficient) == case["count"]
    assert count_by_definition(x, modulus, coefficient) == case["count"]
    assert count_by_histogram(x, modulus, coefficient) == case["count"]
    assert brute_force(x, modulus, coefficient) == case["count"]
    assert is_order_sensitive(x, modulus, coefficient) == case["order_sensitive"]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=7), st.integers(0, 3), st.integers(1, 12),
       st.integers(1, 40))
def test_the_construction_counts_as_brute_force_does(tokens, pads, modulus, coefficient):
    wanted = brute_force(tokens, modulus, coefficient)
    assert count_matches(tokens, len(tokens) + pads, modulus, coefficient) == wanted
    assert count_by_histogram(tokens, modulus, coefficient) == wanted


def test_a_shorter_sequence_filled_up_by_hand():
    """N_max = 4, G = 12, M = 5: tokens times 14, one pad, modulus 70."""
    assert filled_up([1, 2, 3], 4, 5, 12) == ([14, 28, 42, 1], 70)
    assert filled_up([1, 2], 2, 5, 12) == ([14, 28], 70)


def test_filling_up_needs_a_coefficient():
    assert count_matches([0, 0], 2, 3, 0) == [4, 4]
    with pytest.raises(ValueError, match=r"2 tokens are fewer than n_max=3.*coefficient G of at least 1"):
        count_matches([0, 0], 3, 3, 0)


@pytest.mark.parametrize("modulus", range(1, 13))
def test_when_order_matters(modulus):
    for g in range(modulus):
        assert is_symmetric(modulus, g) == (g % modulus == 1 % modulus)
        assert detects_every_swap(modulus, g) == (gcd(g - 1, modulus) == 1)


def test_order_in_the_paper_and_beside_it():
    assert is_symmetric(5, 11)
    assert not is_symmetric(5, 13)
    assert not is_order_sensitive([1, 2, 3], 3, 10)
    assert is_order_sensitive([1, 2, 3], 5, 12)
    # M = 6, G = 9: G - 1 = 8 shares a factor with 6, so exchanging 0 and 3 is not seen, exchanging 0 and 1 is
    assert not is_order_sensitive([0, 3], 6, 9)
    assert is_order_sensitive([0, 1], 6, 9)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: cyclic_shifts(0), "n_max=0, wanted at least 1 token"),
    (lambda: cyclic_shifts_mha(0), "n_max=0, wanted at least 1 token"),
    (lambda: cyclic_shifts(10, cover=Cover(np.eye(2, dtype=int), np.ones((2, 2), dtype=int))), "2 x 2 blocks, but 10"),
    (lambda: counting_mlp(0, 3, 7), "n=0, wanted an integer of at least 1"),
    (lambda: counting_mlp(2, 0, 7), "modulus M=0, wanted an integer of at least 1"),
    (lambda: counting_mlp(2, 3, -1), "coefficient G=-1, wanted an integer of at least 0"),
    (lambda: counting_mlp(2, HALF, 1), "modulus M=2.5, wanted an integer"),
    (lambda: counting_mlp(3, 3, 7, width=2), "2 columns of the workspace, wanted at least n_max=3"),
    (lambda: counting_relu_mlp(2, 3, 7, -1), "largest token: got -1"),
    (lambda: count_matches([], 3, 5, 11), "tokens: got 0, wanted 1 to n_max=3"),
    (lambda: count_matches([1, 2], 1, 5, 11), "tokens: got 2, wanted 1 to n_max=1"),
    (lambda: count_matches([1, -2], 2, 5, 11), r"tokens\[1\]: got -2, wanted a natural number"),
    (lambda: count_matches([HALF], 1, 5, 11), r"tokens\[0\]: got 2.5, wanted a natural number"),
    (lambda: count_matches([1], 1, 0, 11), "modulus M=0"),
])
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
