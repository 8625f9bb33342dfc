"""Theorem 2: literals worked by hand, the index-by-index transcription, the builders' errors, and the claim table."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions.inclusions import free_inclusion, inclusion
from constructions.repeated_tokens import on_repeated_tokens, repeated, separating_layer
from constructions.rotations import quarter, turn_of
from constructions.score_functions import average, drawn, quotient, score_function
from constructions.theorem_2_superset import THEOREM
from iha_theory.attention import flat_causal, rotary, softmax, token_causal
from iha_theory.claims import Means, Scope, Verdict
from iha_theory.count import counted
from iha_theory.layer import forward, multi_head
from iha_theory.scalars import BALLS, INTEGERS, POLYNOMIALS, RATIONALS, to_float
from iha_theory.verification import verify
from tests import reference


@pytest.fixture(scope="module")
def rows():
    return list(verify([THEOREM]))


def one_head(query=1, key=1, value=1):
    """One head with one feature: W_Q, W_K and W_V are numbers."""
    return multi_head(*(RATIONALS.array([[[number]]]) for number in (query, key, value)))


def heads(h=2, d=3, key=2, value=4, seed=0):
    arrays, _ = drawn(RATIONALS, {"q": (h, d, key), "k": (h, d, key), "v": (h, d, value)}, seed=seed)
    return multi_head(arrays["q"], arrays["k"], arrays["v"])


def tokens(*values):
    return RATIONALS.array([[value] for value in values])


def nested(array) -> Any:
    if isinstance(array, np.ndarray):
        return [nested(part) for part in array]
    return Fraction(int(array.p), int(array.q))


def fractions(array):
    return [[nested(value) for value in row] for row in array]


def by_hand(layer, x, sees):
    """The layer by the transcription; ``sees(n, j, n2, j2)`` is the mask, on Fractions with base 2."""
    size = layer.sizes
    lists = {name: nested(array) for name, array in layer.fields().items()}
    count = len(x)

    def act(scores):
        rows = []
        for r, row in enumerate(scores):
            j, n = divmod(r, count)
            weights = [Fraction(2) ** int(s) if sees(n, j, c % count, c // count) else Fraction(0)
                       for c, s in enumerate(row)]
            rows.append([w / sum(weights) for w in weights])
        return rows

    assert size["pseudo"] == len(lists["alpha_q"][0][0])
    return reference.iha(lists, fractions(x), act)


def everyone(n, j, n2, j2):
    return True


def by_token(n, j, n2, j2):
    return n2 <= n


def flat(count):
    """The causal kernel on virtual positions n P + j, said by position."""
    return lambda n, j, n2, j2: n2 * count + j2 <= n * count + j


# The claim table.


def test_every_verdict_is_the_expected_one(rows):
    assert [row.claim for row in rows if not row.is_expected] == []


def test_every_failure_and_every_difference_shows_a_witness(rows):
    assert all(row.witness for row in rows if row.verdict is Verdict.FAILS or row.relation == "≠")


def test_the_errata_are_two_gaps_and_two_false_statements():
    kinds = {erratum.id: erratum.kind for erratum in THEOREM.errata}
    assert kinds == {"thm2-flat-causal": "gap", "thm2-rope": "gap", "thm2-example-linear": "false",
                     "thm2-zero-mixing": "false"}


def test_counts_hold_for_all_sizes_equalities_for_every_input_of_a_size_and_differences_at_some_input(rows):
    mine = [row for row in rows if row.means is not Means.PROOF]
    scopes = {row.claim: max((r.scope, r.means) for r in mine if r.claim == row.claim) for row in mine}
    everywhere = {claim for claim, strength in scopes.items() if strength == (Scope.ALL, Means.EXACT)}
    assert everywhere == {"count", "count-projections", "flat-largest"}
    apart = {row.claim for row in mine if row.witness}
    assert {scopes[claim] for claim in apart} == {(Scope.INPUT, Means.EXACT)}
    assert {scopes[claim] for claim in set(scopes) - everywhere - apart} == {(Scope.SIZE, Means.EXACT)}


def test_only_a_formal_score_function_speaks_of_every_input(rows):
    rest = [row for row in rows if row.scope is not Scope.ALL and row.claim != "parameters"]
    formal = [row for row in rest if row.case.startswith("any score function, n=")]
    assert {row.scope for row in formal if not row.witness} == {Scope.SIZE}
    assert {row.scope for row in formal if row.witness} == {Scope.INPUT}
    assert {row.scope for row in rest if row.case.startswith(("base 2, n=", "softmax, n="))} == {Scope.INPUT}
    assert {row.case.split(", n=")[0] for row in rest} == {"any score function", "base 2", "softmax"}


def test_every_section_is_judged_at_the_real_temperature_too(rows):
    at_real = {row.claim for row in rows if row.means is Means.BALL}
    claims = {row.claim for row in rows if row.means is not Means.PROOF}
    assert claims - at_real == {"count", "count-projections", "flat-largest", "parameters"}


# Inclusion.


def test_the_weights_of_the_inclusion_are_copies_and_a_pick():
    layer = inclusion(heads(), 3)
    copies = [[[1, 1, 1], [0, 0, 0]], [[0, 0, 0], [1, 1, 1]]]
    for name in ("alpha_q", "alpha_k", "alpha_v"):
        np.testing.assert_array_equal(layer.fields()[name], copies)
    np.testing.assert_array_equal(layer.fields()["collapse"], [[[0, 0, 1], [0, 0, 0]], [[0, 0, 0], [0, 0, 1]]])
    np.testing.assert_array_equal(inclusion(heads(), 3, pick="first").fields()["collapse"][1], [[0, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(inclusion(heads(), 3, pick=1).fields()["collapse"][0], [[0, 1, 0], [0, 0, 0]])
    third = flint.fmpq(1, 3)
    np.testing.assert_array_equal(inclusion(heads(), 3, pick="mean").fields()["collapse"][0], [[third] * 3, [0, 0, 0]])


def test_the_flat_causal_error_by_hand():
    # Keys of value 0 and 6 with equal scores. The second token averages (0 + 6) / 2 = 3. With P = 2 its first
    # pseudo-head sees the past key twice and its own once: (2 * 0 + 6) / 3 = 2. Closed form: p = 1/2, v - u = 6,
    # -(2-1) (1/2)(1/2) / (2 - 1/2) * 6 = -1.
    head, x, attention = one_head(query=0), tokens(0, 6), softmax(base=2, mask=flat_causal)
    assert forward(head, x, attention).tolist() == [[0], [3]]
    assert forward(inclusion(head, 2, pick="first"), x, attention).tolist() == [[0], [2]]
    assert forward(inclusion(head, 2), x, attention).tolist() == [[0], [3]]
    mean = forward(inclusion(head, 2, pick="mean"), x, attention)
    assert mean.tolist() == [[0], [flint.fmpq(5, 2)]]


def test_the_largest_flat_causal_error_is_attained():
    # P = 4, J = 1: s = 1/2 and p = 1/(1+s) = 2/3, which two tokens reach when the own key weighs twice the past one.
    head, x = one_head(), tokens(0, 1)
    layer, attention = inclusion(head, 4, pick="first"), softmax(base=2, mask=flat_causal)
    assert forward(head, x, attention)[1, 0] == flint.fmpq(2, 3)
    assert forward(layer, x, attention)[1, 0] - flint.fmpq(2, 3) == flint.fmpq(-1, 3)


@pytest.mark.parametrize(("mask", "sees", "pick"), [
    (None, everyone, "first"), (None, everyone, "mean"), (token_causal, by_token, 1), (flat_causal, flat(3), "last"),
])
def test_the_inclusion_against_the_transcription(mask, sees, pick):
    mha, (arrays, _) = heads(), drawn(RATIONALS, {"x": (4, 3)}, seed=5)
    x, layer = arrays["x"], inclusion(mha, 3, pick=pick)
    got = fractions(forward(layer, x, softmax(base=2, mask=mask)))
    assert got == by_hand(layer, x, sees)
    assert got == by_hand(inclusion(mha, 1), x, everyone if mask is None else by_token)


def test_an_earlier_pseudo_head_fails_in_the_transcription_too():
    mha, (arrays, _) = heads(), drawn(RATIONALS, {"x": (4, 3)}, seed=5)
    first = by_hand(inclusion(mha, 3, pick="first"), arrays["x"], flat(3))
    assert first[0] == by_hand(inclusion(mha, 1), arrays["x"], by_token)[0]
    assert first[1:] != by_hand(inclusion(mha, 1), arrays["x"], by_token)[1:]


def test_rotary_positions_by_hand():
    # One token, query and key (1, 0), quarter turns. At the virtual positions 0 and 1 the scores of pseudo-head 0 are
    # 1 and 0; with values 3 and 3 nothing shows. With a second token of value 0 the four scores part the average.
    head = multi_head(RATIONALS.array([[[1, 0]]]), RATIONALS.array([[[1, 0]]]), RATIONALS.array([[[1]]]))
    x = tokens(1, 2)

    def quarter(position, pair):
        return ((1, 0), (0, 1), (-1, 0), (0, -1))[position % 4]

    def at(layer, position):
        return forward(layer, x, rotary(softmax(base=2), position, quarter))

    layer = inclusion(head, 2, pick="first")
    together = at(layer, lambda n, j: n)
    assert together.tolist() == at(head, lambda n, j: n).tolist()
    # Token 0: score 1 with itself, 0 with the turned token 1: weights 2 and 1, values 1 and 2.
    assert together[0, 0] == flint.fmpq(4, 3)
    # At n P + j token 0 sees itself at 0, 1 (scores 1, 0) and token 1 at 2, 3 (scores -2, 0): (2 + 1) + 2 (1/4 + 1).
    assert at(layer, lambda n, j: 2 * n + j)[0, 0] == flint.fmpq(11, 2) / flint.fmpq(17, 4)


def test_a_free_point_equals_multi_head_attention_and_is_no_copy():
    mha, seen = heads(), []
    arrays, _ = drawn(RATIONALS, {"x": (4, 3), "queries": (2, 2, 2), "deviations": (2, 2, 2)}, seed=3)
    layer = free_inclusion(mha, 3, queries=arrays["queries"], deviations=arrays["deviations"])
    for sees, alone in ((everyone, everyone), (by_token, by_token), (flat(3), by_token)):
        seen.append(by_hand(layer, arrays["x"], sees) == by_hand(inclusion(mha, 1), arrays["x"], alone))
    assert seen == [True, True, True]
    values = layer.fields()["alpha_v"]
    np.testing.assert_array_equal(values.sum(axis=2), [[3, 0], [0, 3]])
    assert (values[..., 0] != values[..., 1]).any()
    assert (values[..., 1] != values[..., 2]).any()


def test_the_free_point_without_deviations_is_the_inclusion():
    mha, copies = heads(), inclusion(heads(), 3).fields()
    free = free_inclusion(mha, 3, queries=copies["alpha_q"][..., 1:], deviations=copies["alpha_q"][..., 1:] * 0)
    for name, array in free.fields().items():
        np.testing.assert_array_equal(array, copies[name])


@given(st.integers(1, 4), st.integers(1, 3), st.integers(1, 3), st.integers(0, 10**6))
def test_any_multi_head_attention_is_contained(p, h, n, seed):
    mha, (arrays, _) = heads(h=h, seed=seed), drawn(RATIONALS, {"x": (n, 3)}, seed=seed + 1)
    for mask in (None, token_causal, flat_causal):
        attention = softmax(base=2, mask=mask)
        assert (forward(inclusion(mha, p), arrays["x"], attention) == forward(mha, arrays["x"], attention)).all()


@pytest.mark.parametrize(("h", "p"), [(1, 1), (2, 3), (3, 2)])
def test_the_mixing_adds_four_h_squared_p(h, p):
    mha = heads(h=h, d=5, key=2, value=7)
    assert counted(mha) == h * 5 * (2 + 2 + 7)
    assert counted(inclusion(mha, p)) - counted(mha) == {(1, 1): 4, (2, 3): 48, (3, 2): 72}[h, p]


@pytest.mark.parametrize("kind", ["floats", "integers", "polynomials"])
def test_the_inclusion_keeps_the_scalars(kind):
    arrays = {"floats": np.ones((2, 1, 1)), "integers": INTEGERS.array([[[1]], [[1]]]),
              "polynomials": drawn(POLYNOMIALS, {"w": (2, 1, 1)})[0]["w"]}[kind]
    layer = inclusion(multi_head(arrays, arrays, arrays), 2)
    assert {type(array.flat[0]) for array in layer.fields().values()} == {type(arrays.flat[0])}


# Repeated tokens.


def test_the_separating_weights_are_the_printed_ones_but_for_a_sign():
    corrected, printed = separating_layer(heads(h=1)), separating_layer(heads(h=1), as_printed=True)
    assert corrected.fields()["alpha_q"].tolist() == corrected.fields()["alpha_k"].tolist() == [[[1, -1]]]
    assert corrected.fields()["alpha_v"].tolist() == [[[1, -1]]]
    assert printed.fields()["alpha_v"].tolist() == [[[1, 1]]]
    assert corrected.fields()["collapse"].tolist() == printed.fields()["collapse"].tolist() == [[[1, 0]]]
    assert separating_layer(heads(h=2), 3).fields()["alpha_v"].tolist() == [
        [[1, -1, 0], [0, 0, 0]], [[0, 0, 0], [1, -1, 0]]]


def at(layer, x, n=2, mask=None):
    return fractions(forward(layer, tokens(*[x] * n), softmax(base=2, mask=mask)))


def test_the_separation_by_hand():
    # x = 1: s = 1, (2 - 1/2) / (2 + 1/2) = 3/5. x = 2: s = 4, (16 - 1/16) / (16 + 1/16) * 2 = 510/257.
    layer = separating_layer(one_head())
    assert at(layer, 1) == [[Fraction(3, 5)]] * 2
    assert at(layer, 2) == [[Fraction(510, 257)]] * 2
    assert at(separating_layer(one_head(), as_printed=True), 2) == [[2]] * 2
    assert at(one_head(), 2) == [[2]] * 2


def test_the_flat_mask_by_hand():
    # Token 0 sees the key x alone: 1. Token 1 sees it twice and -x once: (2*2 - 1/2) / (2*2 + 1/2) = 7/9.
    assert at(separating_layer(one_head()), 1, 3, flat_causal) == [
        [1], [Fraction(7, 9)], [Fraction(3 * 2 - 1, 3 * 2 + 1)]]


@pytest.mark.parametrize(("p", "value"), [(2, Fraction(3, 5)), (3, Fraction(3, 7)), (5, Fraction(3, 11))])
def test_zero_mixing_stays_in_the_denominator(p, value):
    # (2 - 1/2) / (2 + 1/2 + p - 2)
    assert at(separating_layer(one_head(), p), 1) == [[value]] * 2


def test_the_real_separation_is_the_hyperbolic_tangent():
    # x = 1/2 and weights 3/2: s = 9/16, v = 3/4; token 2 of the flat mask adds ln(3/2) / 2.
    head = multi_head(*(BALLS.array([[[Fraction(3, 2)]]]) for _ in range(3)))
    x, s, v = repeated(BALLS.array([Fraction(1, 2)]), 3), flint.arb(9) / 16, flint.arb(3) / 4
    plain = forward(separating_layer(head), x, softmax(mask=token_causal))[2, 0]
    flat_one = forward(separating_layer(head), x, softmax(mask=flat_causal))[2, 0]
    assert plain.overlaps(s.tanh() * v)
    assert flat_one.overlaps((s + flint.arb(1.5).log() / 2).tanh() * v)
    assert not flat_one.overlaps(plain)


def test_the_closed_form_of_any_layer_against_the_transcription():
    mixing = dict.fromkeys(("alpha_q", "alpha_k", "alpha_v", "collapse"), (2, 2, 3))
    arrays, _ = drawn(RATIONALS, {**mixing, "x": (1,)}, seed=8)
    x, score = arrays.pop("x"), score_function(RATIONALS, 2, [])
    layer = replace(heads(d=1), **arrays)
    for sees, is_flat in ((everyone, False), (by_token, False), (flat(3), True)):
        assert by_hand(layer, repeated(x, 3), sees) == fractions(on_repeated_tokens(layer, x, 3, score, flat=is_flat))


# The score functions.


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


# Bad input.


@pytest.mark.parametrize("build", [inclusion, separating_layer,
                                   lambda mha, p: free_inclusion(mha, p, queries=np.empty(0), deviations=np.empty(0))])
def test_builders_refuse_a_layer_that_mixes_and_too_few_pseudo_heads(build):
    with pytest.raises(ValueError, match="has mixing weights; give multi-head attention"):
        build(inclusion(heads(), 2), 2)
    with pytest.raises(ValueError, match=r"got P=0 pseudo-heads; wanted at least"):
        build(heads(), 0)


def test_one_pseudo_head_does_not_separate():
    with pytest.raises(ValueError, match="got P=1 pseudo-heads; wanted at least 2, since one is linear"):
        separating_layer(heads(), 1)


@pytest.mark.parametrize("pick", [3, -1, "middle"])
def test_the_inclusion_refuses_a_pseudo_head_that_is_not_there(pick):
    with pytest.raises(ValueError, match=rf"no pseudo-head {pick!r}; wanted .* or a number from 0 to 2"):
        inclusion(heads(), 3, pick=pick)


def test_the_mean_of_integers_is_refused():
    ones = INTEGERS.array([[[1]]])
    with pytest.raises(ValueError, match="the mean divides by P; lift the integers to the rationals"):
        inclusion(multi_head(ones, ones, ones), 2, pick="mean")
    assert inclusion(multi_head(ones, ones, ones), 1, pick="mean").fields()["collapse"].tolist() == [[[1]]]


@pytest.mark.parametrize("name", ["queries", "deviations"])
def test_the_free_point_names_the_array_of_the_wrong_shape(name):
    right = RATIONALS.array(np.ones((2, 2, 2), dtype=int))
    arrays = {"queries": right, "deviations": right} | {name: right[:, :, :1]}
    with pytest.raises(ValueError, match=rf"{name} has shape \(2, 2, 1\), but wants \(source=2, head=2, pseudo=2\)"):
        free_inclusion(heads(), 3, **arrays)
