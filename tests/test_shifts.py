"""All cyclic shifts by hard attention: weights and workspace by hand, and against the transcription of the algorithm."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions import cyclic_shifts, cyclic_shifts_mha
from constructions.blocks import Cover, symbols
from constructions.shifts import cyclic, first_of_ties, generic_tokens, unread, with_positions, workspace
from iha_theory import RATIONALS, forward, hard
from iha_theory.layer import IHA
from tests import reference
from tests.shifted_tokens import column, fractions, shifts_of


def test_the_weights_of_n_4_by_hand():
    """S has ones at (0,1), (1,2), (2,3), (3,0); S^2 at (0,2), (1,3), (2,0), (3,1). H = P = 2."""
    weights = cyclic_shifts(4)
    assert weights.w_q.tolist() == [
        #   p0 p1 p2 p3     a zero row for the token, then S^0 and S^2
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        [[0, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0]],
    ]
    assert weights.w_k.tolist() == [
        #                   a zero row for the token, then the transposes of S^0 and S^1
        [[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]],
        [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0]],
    ]
    #                       the token times H into coordinate m
    assert weights.w_v.tolist() == [[[2, 0], *[[0, 0]] * 4], [[0, 2], *[[0, 0]] * 4]]
    mixing = weights.fields()
    # [source][head][pseudo]
    assert mixing["alpha_q"].tolist() == [[[1, 0], [0, 0]], [[0, 0], [1, 0]]]
    assert mixing["alpha_k"].tolist() == mixing["alpha_v"].tolist() == [[[1, 0], [1, 0]], [[0, 1], [0, 1]]]
    # [out][head][pseudo]
    assert mixing["collapse"].tolist() == [[[1, 0], [0, 0]], [[0, 0], [1, 0]]]


def test_the_workspace_of_n_4_by_hand():
    assert shifts_of(cyclic_shifts(4), 1, 2, 3, 4).tolist() == [
        [1, 2, 3, 4],
        [2, 3, 4, 1],
        [3, 4, 1, 2],
        [4, 1, 2, 3],
    ]
    for build in (cyclic_shifts, cyclic_shifts_mha):
        assert shifts_of(build(4, shift=cyclic(4).T), 1, 2, 3, 4)[0].tolist() == [1, 4, 3, 2]


def test_columns_beyond_the_tokens_start_over():
    """N = 3, H = 2: four columns, the last one as the first."""
    assert shifts_of(cyclic_shifts(3), 5, 7, 11).tolist() == [[5, 7, 11, 5], [7, 11, 5, 7], [11, 5, 7, 11]]
    assert shifts_of(cyclic_shifts(2), 5, 7).tolist() == [[5, 7, 5, 7], [7, 5, 7, 5]]
    assert shifts_of(cyclic_shifts(1), 5).tolist() == [[5]]


def test_multi_head_attention_by_hand():
    weights = cyclic_shifts_mha(2)
    assert weights.w_q.tolist() == [[[0, 0], [1, 0], [0, 1]], [[0, 0], [0, 1], [1, 0]]]
    assert weights.w_k.tolist() == [[[0, 0], [1, 0], [0, 1]]] * 2
    assert weights.w_v.tolist() == [[[1], [0], [0]]] * 2
    assert not weights.is_mixed
    assert shifts_of(weights, 5, 7).tolist() == [[5, 7], [7, 5]]


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=6), st.sampled_from([None, 1, 2, 3]))
def test_the_transcription_of_the_algorithm_outputs_the_shifts_from_these_weights(tokens, pseudo_heads):
    weights = cyclic_shifts(len(tokens), pseudo_heads=pseudo_heads)
    lists = {name: fractions(array) for name, array in weights.fields().items()}
    x = fractions(with_positions(column(*tokens)))
    rows = reference.iha(lists, x, lambda scores: reference.hard_rows(scores, Fraction(1)))
    n = len(tokens)
    assert [row[:n] for row in rows] == [[tokens[(i + c) % n] for c in range(n)] for i in range(n)]
    assert fractions(shifts_of(weights, *tokens)) == rows


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=5))
def test_the_transcription_of_multi_head_attention_outputs_the_shifts(tokens):
    lists = {name: fractions(array) for name, array in cyclic_shifts_mha(len(tokens)).fields().items()}
    rows = reference.mha(lists, fractions(with_positions(column(*tokens))),
                         lambda scores: reference.hard_rows(scores, Fraction(1)))
    n = len(tokens)
    assert rows == [[tokens[(i + c) % n] for c in range(n)] for i in range(n)]


@pytest.mark.parametrize(("n", "pseudo_heads", "heads"), [(12, 2, 4), (16, 2, 4), (25, 3, 5), (30, 3, 6), (3, 1, 3)])
def test_fewer_pseudo_heads_than_heads(n, pseudo_heads, heads):
    weights = cyclic_shifts(n, pseudo_heads=pseudo_heads)
    assert (weights.sizes["out"], weights.sizes["pseudo"]) == (heads, pseudo_heads)
    assert shifts_of(weights, *range(n))[0, :n].tolist() == list(range(n))


def test_a_signed_cover_routes_hard_attention_too():
    half = Fraction(1, 2)
    cover = Cover(np.array([[0, 1, half], [1, 0, half], [-1, 1, 0]], dtype=object),
                  np.array([[0, 2, 1], [2, 0, 1], [1, -1, 0]], dtype=object))
    weights = cyclic_shifts(9, cover=cover)
    assert (weights.sizes["out"], weights.sizes["pseudo"]) == (3, 2)
    tokens = [1, 4, 9, 16, 25, 36, 49, 64, 81]
    assert shifts_of(weights, *tokens).tolist() == [[tokens[(i + c) % 9] for c in range(9)] for i in range(9)]


def test_the_generic_tokens_by_hand():
    """N = 2, P = 1: H P sources = 4, lcm(1, 2) = 2, coefficients below 2 * 5, base 2 * 10 + 2."""
    assert generic_tokens(cyclic_shifts(2, pseudo_heads=1)).tolist() == [[22], [22**2]]
    # N = 4, H = P = 2, values up to 2: 8 * 2 = 16, lcm(1, ..., 8) = 840, base 2 * 840 * 17 + 2
    assert generic_tokens(cyclic_shifts(4))[:2].tolist() == [[28562], [28562**2]]
    # N = H = P = 1, every weight at most 1: coefficients below 2, base 2 * 2 + 2
    assert generic_tokens(cyclic_shifts(1)).tolist() == [[6]]


def test_one_wrong_entry_does_not_pass_at_the_generic_tokens():
    weights = cyclic_shifts(5, pseudo_heads=2)
    tokens = generic_tokens(weights)
    x, target = with_positions(tokens), workspace(tokens, weights.sizes["out"] * weights.sizes["value"])
    assert (forward(weights, x, hard) == target).all()
    for name in ("w_v", "alpha_v", "collapse"):
        array = getattr(weights, name)
        place = tuple(np.argwhere(array != 0)[0])
        for wrong in (array[place] + 1, -array[place]):
            changed = array.copy()
            changed[place] = wrong
            assert (forward(replace(weights, **{name: changed}), x, hard) != target).any()


def test_the_first_of_ties_is_read():
    q = k = RATIONALS.array(np.zeros((1, 1, 3, 1), dtype=object))
    v = RATIONALS.array(np.array([4, 5, 6], dtype=object).reshape(1, 1, 3, 1))
    assert first_of_ties(q, k, v).ravel().tolist() == [4, 4, 4]
    assert hard(q, k, v).ravel().tolist() == [5, 5, 5]


@pytest.mark.parametrize("query", [[0, 1], [Fraction(-1, 2), 1]])
def test_the_first_of_ties_is_a_maximum_whatever_the_query(query):
    """The keys score 0, 1, 1: the second is the first maximum."""
    q = RATIONALS.array(np.array(query * 3, dtype=object).reshape(1, 1, 3, 2))
    k = RATIONALS.array(np.array([[0, 0], [0, 1], [0, 1]], dtype=object).reshape(1, 1, 3, 2))
    v = RATIONALS.array(np.array([4, 5, 6], dtype=object).reshape(1, 1, 3, 1))
    assert first_of_ties(q, k, v).ravel().tolist() == [5, 5, 5]


def test_a_pseudo_query_is_unread_where_no_output_collects_it():
    """The second pseudo-query of the first head; the second output also ignores all of the second head."""
    ones = RATIONALS.array(np.ones((2, 2, 2), dtype=int))
    collapse = RATIONALS.array([[[1, 0], [1, 1]], [[1, 0], [0, 0]]])
    weights = IHA(ones, ones, ones, ones, ones, ones, collapse)
    assert unread(weights)["weights.alpha_q"].tolist() == [[[False, True], [False, False]]] * 2
    assert unread(cyclic_shifts_mha(2)) == {}


@pytest.mark.parametrize("build", [cyclic_shifts, cyclic_shifts_mha])
def test_the_weights_are_over_the_scalars_asked_for(build):
    like = symbols({"x": (3, 1)}, rational=True)[0]["x"]
    arrays = [cyclic(3, like), *build(3, like=like).fields().values()]
    assert {type(value) for array in arrays for value in array.flat} == {type(like[0, 0])}


@pytest.mark.parametrize(("build", "name"), [(cyclic_shifts, "cyclic_shifts"), (cyclic_shifts_mha, "cyclic_shifts_mha")])
def test_no_tokens_are_refused_by_name(build, name):
    with pytest.raises(ValueError, match=f"^{name}: got n_max=0, wanted at least 1 token"):
        build(0)
