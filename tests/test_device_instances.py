"""The instances for devices, without a device: exact outputs, the inputs that reach the extremes, and bounds by hand."""

from math import exp, log
from typing import Any

import numpy as np
import pytest

from constructions.device_instances import LARGEST, device_cases, filter_case, shift_case
from iha_theory import forward, hard, linear, softmax
from iha_theory.device_cases import Arithmetic
from tests.sameness import is_same

DOUBLES = Arithmetic(2**-53, 2**-53)


class Recorded:
    """An arithmetic that keeps the counts of roundings that it is asked about, and answers with a given number."""

    def __init__(self, answer):
        self.asked, self.answer = [], answer

    def gamma(self, stored, added, factors):
        self.asked.append((stored, added, factors))
        return self.answer


def recorded(answer=1.0) -> Any:
    return Recorded(answer)


@pytest.mark.parametrize("dtype", LARGEST)
def test_the_instances_of_a_dtype(dtype):
    power, other = LARGEST[dtype]
    cases = device_cases(dtype)
    assert [case.name.partition(", softmax")[0] for case in cases] == [
        "Theorem 3, sum, n=7, k=9, d=2, H=3, P=3", "Theorem 3, average, n=5, k=4, d=3, H=2, P=2",
        "Theorem 3, average, n=8, k=9, d=2, H=3, P=3", "Theorem 3, sum, n=6, k=16, d=1, H=4, P=2",
        f"Theorem 4, N=4, |x| <= {power}, hard attention", f"Theorem 4, N=4, |x| <= {power}",
        f"Theorem 4, N=9, |x| <= {other}, hard attention", f"Theorem 4, N=9, |x| <= {other}",
        f"Theorem 4, N=16, |x| <= {power}, hard attention", f"Theorem 4, N=16, |x| <= {power}"]
    assert [case.attention for case in cases] == ["linear"] * 4 + ["hard", "softmax"] * 3
    assert [case.is_rounded for case in cases] == [False] * 4 + [True] * 6
    graphs = [graph_of(case, n) for case, n in zip(cases[:4], (7, 5, 8, 6), strict=True)]
    assert [np.count_nonzero(a) / len(a) for a in graphs] == [2, 3, 3, 2]


def graph_of(case, n):
    """A, read from the key weights: base key 1 holds its transpose on the positional rows."""
    return case.weights.w_k[1, -n:, :].T


@pytest.mark.parametrize(("options", "edge"), [({}, 1), ({"n": 5, "k": 4, "d": 3, "edges": 3, "is_average": True}, 1 / 3),
                                               ({"n": 6, "k": 16, "d": 1, "pseudo_heads": 2}, 1)])
def test_a_bank_is_the_powers_of_its_graph(options, edge):
    case = filter_case(**options)
    n, k, d = options.get("n", 7), options.get("k", 9), options.get("d", 2)
    a, x = graph_of(case, n), case.x[:, :d]
    assert sorted(set(a.flat)) == [0, edge]
    assert set(np.count_nonzero(a, axis=1)) == {options.get("edges", 2)}
    assert (case.x[:, d:] == np.eye(n)).all()
    assert (x * 64 == np.round(x * 64)).all()
    # A normal sample to multiples of 1/64: neither tiny nor spread out by the rounding.
    assert 0.2 < np.abs(x).mean() < 2
    assert (case.target[:, :d] == x).all()
    assert case.target.shape == (n, k * d)
    for t in range(1, k):
        before, after = case.target[:, (t - 1) * d : t * d], case.target[:, t * d : (t + 1) * d]
        assert np.allclose(after, a @ before, rtol=1e-14, atol=1e-13)
    assert (np.abs(forward(case.weights, case.x, linear)[:, : k * d] - case.target) <= case.bound(DOUBLES)).all()
    assert (case.beta, case.temperature) == (None, None)


def test_the_bound_of_a_bank_by_hand():
    # 3 times (model 9 and source 3), 7 tokens of 3 pseudo-heads, key 7, 3 heads of 3 pseudo-heads: 36 + 21 + 7 + 9.
    case, asked = filter_case(), recorded()
    scale = case.bound(asked)
    assert asked.asked == [(20, 73, 18)]
    # Every weight is positive, so that the scale is the bank of |X|: for the first block |X| itself.
    assert np.allclose(scale[:, 2:4], graph_of(case, 7) @ np.abs(case.x[:, :2]))
    assert (scale[:, :2] == np.abs(case.x[:, :2])).all()
    assert (case.bound(recorded(3.0)) == 3 * scale).all()


def test_shifts_have_both_extremes_among_their_tokens_and_are_exact():
    case = shift_case(5, 100)
    tokens = case.x[:, 0]
    assert (tokens[0], *tokens[1:3]) == (100, -100, -100)
    assert np.abs(tokens).max() == 100
    assert len(set(tokens)) > 2
    assert (tokens == np.round(tokens)).all()
    assert (case.x[:, 1:] == np.eye(5)).all()
    assert case.target.tolist() == [[tokens[(i + s) % 5] for s in range(5)] for i in range(5)]
    assert (forward(case.weights, case.x, hard)[:, :5] == case.target).all()
    assert case.name == "Theorem 4, N=5, |x| <= 100, hard attention"
    assert {(shift_case(seed=seed).x.shape, abs(shift_case(seed=seed).x[0, 0])) for seed in range(3)} == {((9, 10), 64.0)}


@pytest.mark.parametrize("seed", range(20))
def test_no_token_is_beyond_the_largest(seed):
    tokens = shift_case(40, 3, seed).x[:, 0]
    assert set(tokens) <= set(range(-3, 4))
    assert tokens[3:].min() < -1
    assert tokens[3:].max() > 1


def test_the_inverse_temperature_is_a_tenth_above_the_threshold():
    # ln((N-1)(2D-1)) with differences up to D = 2 * 64.
    soft = shift_case(5, 64, is_soft=True)
    assert soft.beta == pytest.approx(1.1 * log(4 * (2 * 128 - 1)), rel=1e-12)
    assert soft.name == f"Theorem 4, N=5, |x| <= 64, softmax, beta={soft.beta:.2f}"
    given = shift_case(5, 64, beta=2.5)
    assert (given.beta, given.attention, shift_case(5, 64, beta=2.5, is_soft=True).beta) == (2.5, "softmax", 2.5)
    output = forward(soft.weights, soft.x, softmax(soft.beta))[:, :5]
    assert (np.round(output) == soft.target).all()
    assert (np.abs(output - soft.target) <= soft.bound(DOUBLES)).all()


def test_the_bound_of_hard_shifts_by_hand():
    # N=5, H=P=3: 3 times (model 6 and source 3), 5 tokens of 3 pseudo-heads, key 5, 3 heads of 3 pseudo-heads.
    case, asked = shift_case(5, 10), recorded(0.5)
    assert (case.bound(asked) == 0.5 * np.abs(case.target)).all()
    assert asked.asked == [(21, 27 + 15 + 5 + 9, 18)]


def test_the_bound_of_soft_shifts_by_hand():
    case, asked = shift_case(5, 10, beta=2.7), recorded(0.25)
    bound = case.bound(asked)
    # int(2 * 2.7) + 8 more additions; the logit has 12 stored numbers, sums of model 6 and source 3 twice, and key 5.
    assert asked.asked == [(21, 56 + 5 + 8, 18), (12, 2 * 6 + 2 * 3 + 5, 10)]
    tokens, weight = case.x[:, 0], exp(2.7 * 0.75) + 4
    leak = np.abs(tokens.sum() - 5 * case.target) / weight
    assert np.allclose(bound, 2 * leak + 0.25 * (np.abs(case.target) + 5 * np.abs(tokens).sum() / weight), rtol=1e-12)


def test_an_instance_is_the_same_each_time_and_another_with_another_seed():
    for make in (filter_case, shift_case):
        assert is_same(make(seed=1), make(seed=1))
        assert not is_same(make(seed=1).x, make(seed=2).x)
