"""The attention operators: masks against loops, ties, dead rows, and the scalars that each refuses."""

from fractions import Fraction

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sympy import QQ, ZZ
from sympy.polys.rings import ring

from iha_theory import (
    BALLS,
    FLOATS,
    INTEGERS,
    RATIONALS,
    FormalScore,
    Residues,
    flat_causal,
    hard,
    linear,
    normalized,
    padded,
    pattern,
    rotary,
    softmax,
    token_causal,
    windowed,
)

HEADS, PSEUDOS, TOKENS, KEYS, VALUES = 2, 3, 5, 2, 3

MASKS = {
    "none": (None, lambda n, j, m, i: True),
    "token": (token_causal, lambda n, j, m, i: m <= n),
    "flat": (flat_causal, lambda n, j, m, i: m * PSEUDOS + i <= n * PSEUDOS + j),
    "token, window 2": (windowed(token_causal, 2), lambda n, j, m, i: n - 1 <= m <= n),
    "flat, window 2": (windowed(flat_causal, 2),
                       lambda n, j, m, i: n - 1 <= m and m * PSEUDOS + i <= n * PSEUDOS + j),
    "padded to 3": (padded(3), lambda n, j, m, i: m < 3),
}


def inputs(seed, low=-2, high=3, domain=RATIONALS):
    source = np.random.default_rng(seed)
    draw = lambda width: domain.array(source.integers(low, high, (HEADS, PSEUDOS, TOKENS, width)).astype(object))  # noqa: E731
    return draw(KEYS), draw(KEYS), draw(VALUES)


def by_loops(q, k, v, seen, weigh):
    """The masked weighted average, index by index: ``weigh`` maps a row of visible scores to their weights."""
    result = np.empty(v.shape, dtype=object)
    for h, j, n in np.ndindex(*q.shape[:3]):
        visible = [(i, m) for i in range(PSEUDOS) for m in range(TOKENS) if seen(n, j, m, i)]
        scores = [sum(q[h, j, n, e] * k[h, i, m, e] for e in range(KEYS)) for i, m in visible]
        weights = weigh(scores)
        for e in range(VALUES):
            result[h, j, n, e] = sum((w * v[h, i, m, e] for w, (i, m) in zip(weights, visible, strict=True)),
                                     flint.fmpq(0))
    return result


def power_weights(scores):
    powers = [flint.fmpq(2) ** int(s.p) for s in scores]
    return [p / sum(powers, flint.fmpq(0)) for p in powers]


def best_weights(scores):
    hits = [s == max(scores) for s in scores]
    return [flint.fmpq(int(hit), sum(hits)) for hit in hits]


@pytest.mark.parametrize("name", MASKS)
@pytest.mark.parametrize(("operator", "weigh"), [
    (lambda mask: softmax(base=2, mask=mask), power_weights),
    (lambda mask: lambda q, k, v: hard(q, k, v, mask=mask), best_weights),
    (lambda mask: lambda q, k, v: linear(q, k, v, mask=mask), lambda scores: scores),
], ids=["softmax", "hard", "linear"])
def test_every_operator_under_every_mask_is_the_loop(name, operator, weigh):
    mask, seen = MASKS[name]
    q, k, v = inputs(3)
    assert (operator(mask)(q, k, v) == by_loops(q, k, v, seen, weigh)).all()


@given(st.integers(0, 10**6))
def test_softmax_in_floats_balls_and_rationals_agree(seed):
    q, k, v = inputs(seed)
    exact = softmax(base=2, mask=flat_causal)(q, k, v)
    beta = flint.arb(2).log()
    balls = softmax(beta, mask=flat_causal)(*(BALLS.array(a) for a in (q, k, v)))
    floats = softmax(float(beta), mask=flat_causal)(*(FLOATS.array(a) for a in (q, k, v)))
    for ball, number, wanted in zip(balls.flat, floats.flat, exact.flat, strict=True):
        assert ball.contains(wanted)
        assert abs(number - float(Fraction(int(wanted.p), int(wanted.q)))) < 1e-13


def test_the_default_temperature_is_one_over_the_root_of_the_key_width():
    q, k, v = (BALLS.array(a) for a in inputs(1))
    scaled = softmax()(q, k, v)
    same = softmax(1 / flint.arb(KEYS).sqrt())(q, k, v)
    other = softmax(1 / flint.arb(KEYS))(q, k, v)
    assert all(a.overlaps(b) for a, b in zip(scaled.flat, same.flat, strict=True))
    assert not all(a.overlaps(b) for a, b in zip(scaled.flat, other.flat, strict=True))
    floats = [FLOATS.array(a) for a in inputs(1)]
    assert np.abs(softmax()(*floats) - softmax(2**-0.5)(*floats)).max() < 64 * np.finfo(float).eps


def test_large_scores_do_not_overflow():
    q, k, v = (FLOATS.array(a) for a in inputs(2))
    assert np.isfinite(softmax(1e6)(q, k, v)).all()
    assert np.abs(softmax(1e6)(q, k, v) - hard(q, k, v)).max() < 1e-12


def nobody(n, j, n2, j2):
    return (n2 < n) & (j == j) & (j2 == j2)


def test_a_row_that_sees_nobody_gives_zeros():
    exact, floats = inputs(4), [FLOATS.array(a) for a in inputs(4)]
    balls = [BALLS.array(a) for a in inputs(4)]
    for operator, args in ((softmax(base=3, mask=nobody), exact), (softmax(mask=nobody), floats),
                           (softmax(mask=nobody), balls), (lambda *a: hard(*a, mask=nobody), exact),
                           (lambda *a: hard(*a, mask=nobody), floats)):
        output = operator(*args)
        assert all(value == 0 for value in output[:, :, 0].flat)
        assert any(value != 0 for value in output[:, :, 1:].flat)


def test_ties_are_averaged():
    one = RATIONALS.array(np.ones((1, 2, 2, 1), dtype=int))
    v = RATIONALS.array(np.arange(4).reshape(1, 2, 2, 1))
    assert (hard(one, one, v) == flint.fmpq(3, 2)).all()


def test_hard_attention_over_polynomials_averages_symbols():
    _, a, b = ring("a, b", QQ)
    values = np.empty((1, 1, 2, 1), dtype=object)
    values[0, 0, 0, 0], values[0, 0, 1, 0] = a, b
    same = values - values + a.ring.one
    assert hard(same, same, values)[0, 0, 0, 0] == (a + b) * QQ(1, 2)
    with pytest.raises(TypeError, match="scores are constants; got the score"):
        hard(values, values, values)


def test_hard_attention_over_integer_polynomials_divides_in_the_field():
    _, a, b = ring("a, b", ZZ)
    values = np.empty((1, 1, 2, 1), dtype=object)
    values[0, 0, 0, 0], values[0, 0, 1, 0] = a, b
    same = values - values + a.ring.one
    assert hard(same, same, values)[0, 0, 0, 0] * 2 == a + b


def test_formal_scores_are_one_symbol_for_each_score():
    _, x, e0, e1 = ring("x, e0, e1", ZZ)
    score = FormalScore([e0, e1])
    assert score(x) == e0
    assert score(x + 1) == e1
    assert score(1 + x) == e1
    with pytest.raises(ValueError, match="more than 2 distinct scores; give more symbols"):
        score(x + 2)


def test_formal_attention_becomes_softmax_when_the_symbols_become_numbers():
    names = [f"e{i}" for i in range(9)]
    parent, *symbols = ring(names, ZZ)
    q, k, v = (np.array([[[[parent(2)], [parent(1)], [parent(0)]]]], dtype=object) for _ in range(3))
    output = normalized(FormalScore(symbols), mask=token_causal)(q, k, v)
    # Scores in the order they are met: 4, 2, 0, 1.
    numbers = dict(zip(symbols, (2**4, 2**2, 2**0, 2**1), strict=False))
    rational = softmax(base=2, mask=token_causal)(*(RATIONALS.array([[[[2], [1], [0]]]]) for _ in range(3)))

    def value(p):
        return p.evaluate([(s, numbers.get(s, 0)) for s in symbols]) if not p.is_ground else p.coeff(1)

    for found, wanted in zip(output.flat, rational.flat, strict=True):
        assert flint.fmpq(int(value(found.numer)), int(value(found.denom))) == wanted


@pytest.mark.parametrize(("operator", "domain", "says"), [
    (softmax(), RATIONALS, "softmax at a real temperature is not exact"),
    (softmax(), INTEGERS, "softmax at a real temperature is not exact"),
    (softmax(base=2), FLOATS, "serves exact scalars"),
    (hard, INTEGERS, "lift the integers to the rationals"),
    (hard, BALLS, "balls are not ordered"),
], ids=["softmax, rationals", "softmax, integers", "base, floats", "hard, integers", "hard, balls"])
def test_an_operator_refuses_scalars_that_it_cannot_serve(operator, domain, says):
    with pytest.raises(TypeError, match=says):
        operator(*inputs(0, domain=domain))


def test_a_rational_base_takes_integers_to_rationals():
    exact = softmax(base=2)(*inputs(0))
    assert (softmax(base=2)(*inputs(0, domain=INTEGERS)) == exact).all()


def test_residues_serve_linear_attention_only():
    q, k, v = (Residues(np.ones((1, 1, 2, 1), dtype=int), 1048583) for _ in range(3))
    assert (np.asarray(linear(q, k, v)) == 2).all()
    with pytest.raises(TypeError, match="not ordered"):
        hard(q, k, v)
    with pytest.raises(TypeError, match="softmax does not serve residues"):
        softmax()(q, k, v)


def test_softmax_refuses_what_is_not_a_temperature_or_a_base():
    with pytest.raises(ValueError, match="not both"):
        softmax(2.0, base=2)
    for base in (0, -1):
        with pytest.raises(ValueError, match="the base must be positive"):
            softmax(base=base)
    q, k, v = inputs(0)
    with pytest.raises(TypeError, match="wants integer scores; got 1/2"):
        softmax(base=2)(q * 0 + flint.fmpq(1, 2), k * 0 + flint.fmpq(1, 2), v)
    with pytest.raises(ValueError, match="window: got 0 tokens, wanted at least 1"):
        windowed(token_causal, 0)


def test_the_pattern_is_the_operator_on_the_identity():
    q, k, v = inputs(7)
    weights = pattern(softmax(base=2), q, k, flint.fmpq(1))
    values = np.concatenate([v[:, j] for j in range(PSEUDOS)], axis=1)
    output = np.stack([[weights[h, j] @ values[h] for j in range(PSEUDOS)] for h in range(HEADS)])
    assert (output == softmax(base=2)(q, k, v)).all()
    assert (pattern(softmax(base=2), q, k) == weights).all()
    floats = pattern(softmax(), FLOATS.array(q), FLOATS.array(k))
    assert np.abs(floats.sum(axis=3) - 1).max() < 1e-14


def quarter(position, pair):
    return ((1, 0), (0, 1), (-1, 0), (0, -1))[position % 4]


def test_rotary_turns_pairs_of_features_by_the_position():
    q, k, v = inputs(5)
    seen = {}
    rotary(lambda q, k, v: seen.update(q=q, k=k) or v, lambda n, j: n + j, quarter)(q, k, v)
    for h, j, n in np.ndindex(HEADS, PSEUDOS, TOKENS):
        a, b = q[h, j, n]
        assert list(seen["q"][h, j, n]) == [[a, b], [-b, a], [-a, -b], [b, -a]][(n + j) % 4]
    # A shift of all positions changes no score.
    shifted = rotary(softmax(base=2), lambda n, j: n + j + 5, quarter)(q, k, v)
    assert (shifted == rotary(softmax(base=2), lambda n, j: n + j, quarter)(q, k, v)).all()
    with pytest.raises(ValueError, match="even number of key features; got 3"):
        rotary(linear, lambda n, j: n, quarter)(v, v, v)


def test_rotary_turns_each_pair_of_features_by_its_own_angle():
    """Three pairs: the first by no angle, the second by a right angle, the third by two."""
    q, seen = RATIONALS.array(np.arange(1, 7).reshape(1, 1, 1, 6)), {}
    turned = rotary(lambda q, k, v: seen.update(q=q, k=k) or v, lambda n, j: 1, lambda position, pair: quarter(pair, 0))
    turned(q, 10 * q, q)
    assert seen["q"].ravel().tolist() == [1, 2, -4, 3, -5, -6]
    assert seen["k"].ravel().tolist() == [10, 20, -40, 30, -50, -60]


def test_a_constant_total_over_polynomials_keeps_its_denominator():
    """One token: whatever its weight, the average is its value."""
    _, x = ring("x", QQ)
    q = np.full((1, 1, 1, 1), x.ring.one, dtype=object)
    output = normalized(lambda score: score / 2)(q, q, np.full((1, 1, 1, 1), x, dtype=object))
    assert output.ravel().tolist() == [x]


def test_normalized_attention_of_floats_is_refused_with_what_serves_them():
    q = np.ones((1, 1, 1, 1))
    with pytest.raises(TypeError, match=r"^normalized attention serves exact scalars; got float64. Use softmax\(beta\)$"):
        normalized(lambda score: score)(q, q, q)
