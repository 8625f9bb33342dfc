"""The score functions of Theorem 2: balls, exact averages, turns, drawn numbers."""

import flint
import pytest

from constructions.rotations import quarter, turn_of
from constructions.score_functions import average, drawn, quotient, score_function
from iha_theory.scalars import BALLS, INTEGERS, POLYNOMIALS, RATIONALS, to_float


def test_the_balls_enclose_what_the_logarithms_say():
    score = score_function(BALLS, 4, [])
    third = flint.arb(1) / 3
    assert (score.scaled(third, 2, 5) - (third / 2).exp() * 2 / 5).contains(0)
    plus, minus = 3 * (third / 2).exp(), 2 * (-third / 2).exp()
    assert (score.balance(third, 3, 2) - (plus - minus) / (plus + minus)).contains(0)
    assert not (score.balance(third, 3, 2) - score.balance(third, 3, 1)).contains(0)
    assert score.balance(third, 1, 0) == 1


def test_averages_and_quotients_are_exact():
    weights, values = RATIONALS.array([[[1, 2]]]), RATIONALS.array([[[3], [6]]])
    assert average(weights, values).tolist() == [[[5]]]
    x = drawn(POLYNOMIALS, {"x": (2,)})[0]["x"]
    assert quotient(x[0] * x[1], x[1]) == x[0]
    with pytest.raises(TypeError, match="integer scores; got 1/2"):
        score_function(RATIONALS, 1, []).weight(flint.fmpq(1, 2))
    with pytest.raises(TypeError, match="got integers; wanted polynomials, rationals or balls"):
        score_function(INTEGERS, 1, [])


def test_turns_are_a_quarter_and_powers_of_a_ten_thousandth_of_a_radian():
    assert [quarter(position, 0) for position in range(5)] == [(1, 0), (0, 1), (-1, 0), (0, -1), (1, 0)]
    assert turn_of(RATIONALS) is turn_of(POLYNOMIALS) is quarter
    cosine, sine = turn_of(BALLS)(3, 1)
    assert (flint.arb(3) / 10000).sin().overlaps(sine)
    assert (flint.arb(3) / 10000).cos().overlaps(cosine)
    assert (cosine**2 + sine**2).contains(1)


def test_drawn_numbers_are_small_and_never_zero():
    arrays, formal = drawn(BALLS, {"w": (2, 3, 4)}, seed=1)
    rationals = drawn(RATIONALS, {"w": (2, 3, 4)}, seed=1)[0]["w"]
    assert formal == []
    assert set(to_float(rationals).ravel()) == {-2.0, -1.0, 1.0, 2.0}
    assert all((four * 4 - one).contains(0) for four, one in zip(arrays["w"].flat, rationals.flat, strict=True))
