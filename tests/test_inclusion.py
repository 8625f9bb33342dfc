"""Multi-head attention inside IHA: the copies, the pick and the masks by hand and against the transcription."""

import dataclasses

import flint
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions.inclusion_gaps import ROTARY
from constructions.inclusion_sections import drawn_inclusion
from constructions.inclusions import free_inclusion, inclusion
from constructions.repeated_tokens import separating_layer
from constructions.score_functions import drawn
from iha_theory.attention import flat_causal, rotary, softmax, token_causal
from iha_theory.count import counted
from iha_theory.layer import forward, multi_head
from iha_theory.scalars import BALLS, INTEGERS, POLYNOMIALS, RATIONALS
from tests.inclusion_layers import by_hand, by_token, everyone, flat, fractions, heads, one_head, tokens


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


@pytest.mark.parametrize(("name", "build"), [
    ("inclusion", inclusion), ("separating_layer", separating_layer),
    ("free_inclusion", lambda mha, p: free_inclusion(mha, p, queries=np.empty(0), deviations=np.empty(0)))])
def test_builders_refuse_a_layer_that_mixes_and_too_few_pseudo_heads(name, build):
    with pytest.raises(ValueError, match=f"^{name}: .*has mixing weights; give multi-head attention"):
        build(inclusion(heads(), 2), 2)
    with pytest.raises(ValueError, match=f"^{name}: got P=0 pseudo-heads; wanted at least"):
        build(heads(), 0)


@pytest.mark.parametrize("pick", [3, -1, "middle"])
def test_the_inclusion_refuses_a_pseudo_head_that_is_not_there(pick):
    with pytest.raises(ValueError, match=rf"no pseudo-head {pick!r}; wanted .* or a number from 0 to 2"):
        inclusion(heads(), 3, pick=pick)


def test_the_mean_of_integers_is_refused():
    ones = INTEGERS.array([[[1]]])
    with pytest.raises(ValueError, match="the mean divides by P; lift the integers to the rationals"):
        inclusion(multi_head(ones, ones, ones), 2, pick="mean")
    assert inclusion(multi_head(ones, ones, ones), 1, pick="mean").fields()["collapse"].tolist() == [[[1]]]


def test_the_layer_with_rotary_positions_is_masked_as_asked():
    """A later token counts without a mask and does not with one; virtual tokens are counted token by token."""
    sizes = {"n": 2, "d": 1, "key": 2, "heads": 1, "pseudo_heads": 2, "seed": 7}
    instance = ROTARY.instance(domain=RATIONALS, **sizes)
    other = dataclasses.replace(instance, x=np.concatenate([instance.x[:1], instance.x[1:] * 3]))
    for mask, sees_all in ((None, True), (token_causal, False), (flat_causal, False)):
        first, changed = (each.turned(each.layer, mask, lambda token, j: token)[0] for each in (instance, other))
        assert (first != changed).any() == sees_all
    assert [instance.virtual(token, j) for token in range(2) for j in range(2)] == [0, 1, 2, 3]


@pytest.mark.parametrize(("domain", "comes_round"), [(RATIONALS, True), (BALLS, False)])
def test_four_quarter_turns_are_none_and_four_radians_are_some(domain, comes_round):
    instance = ROTARY.instance(domain=domain, n=2, d=1, key=2, heads=1, pseudo_heads=2, seed=7)
    still, turned = (instance.turned(instance.layer, None, lambda token, j, step=step: step * token) for step in (0, 4))
    assert all(bool(a == b) if comes_round else not a.overlaps(b) for a, b in zip(still.flat, turned.flat, strict=True))


@pytest.mark.parametrize(("pick", "picked"), [("last", 2), ("first", 0), ("mean", None), (1, 1)])
def test_the_pseudo_head_that_is_picked(pick, picked):
    instance = drawn_inclusion(domain=RATIONALS, n=1, d=1, heads=1, pseudo_heads=3, pick=pick)
    assert instance.picked == picked
    weights = instance.layer.fields()["collapse"].ravel()
    assert all(bool(weight != 0) == (picked in (None, j)) for j, weight in enumerate(weights))
