"""Repeated tokens: multi-head attention is linear there, the separating layer is not."""

from dataclasses import replace
from fractions import Fraction

import flint
import pytest

from constructions.repeated_tokens import on_repeated_tokens, repeated, separating_layer
from constructions.score_functions import drawn, score_function
from iha_theory.attention import flat_causal, softmax, token_causal
from iha_theory.layer import forward, multi_head
from iha_theory.scalars import BALLS, RATIONALS
from tests.inclusion_layers import by_hand, by_token, everyone, flat, fractions, heads, one_head, tokens


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


def test_one_pseudo_head_does_not_separate():
    with pytest.raises(ValueError, match="got P=1 pseudo-heads; wanted at least 2, since one is linear"):
        separating_layer(heads(), 1)
