"""IHA as projected multi-head attention: numbers by hand, and the transcription of Algorithm 1 as the other side."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from constructions.reduction_sections import REDUCTIONS, drawn_layer
from constructions.reductions import as_base_heads, as_pseudo_heads, as_value_heads
from iha_theory import IHA, INTEGERS, forward, linear, multi_head
from iha_theory.claims import Theorem
from iha_theory.layer import AXES
from iha_theory.verification import verify
from tests import reference

FORMS = (as_base_heads, as_pseudo_heads)


def sizes(heads, pseudo, model, key, value):
    return {"source": heads, "head": heads, "out": heads, "pseudo": pseudo, "model": model, "key": key, "value": value}


def nested(layer):
    return {name: array.tolist() for name, array in layer.fields().items()}


def by_loops(form, x):
    """The heads by the transcription of multi-head attention, then the projection, index by index."""
    heads = reference.mha(nested(form.heads), x.tolist(), reference.identity_rows)
    projection = form.projection.tolist()
    columns = range(len(projection[0]))
    return [[sum(row[r] * projection[r][c] for r in range(len(row))) for c in columns] for row in heads]


def one_number(r, q, k, v, w_q, w_k, w_v):
    """One head with two pseudo-heads on inputs of one number."""
    mixing = {"alpha_q": [[q]], "alpha_k": [[k]], "alpha_v": [[v]], "collapse": [[r]]}
    return IHA(*(INTEGERS.array([[[w]]]) for w in (w_q, w_k, w_v)),
               **{name: INTEGERS.array(array) for name, array in mixing.items()})


def test_the_three_forms_of_one_head_with_two_pseudo_heads_by_hand():
    layer = one_number(r=[1, 2], q=[3, 5], k=[7, 11], v=[13, 17], w_q=19, w_k=23, w_v=2)
    base, pseudo, value = as_base_heads(layer), as_pseudo_heads(layer), as_value_heads(layer, 0)
    assert [w.tolist() for w in (base.heads.w_q, base.heads.w_k, base.heads.w_v)] == [[[[19]]], [[[23]]], [[[1]]]]
    assert base.projection.tolist() == [[(1 * 3 + 2 * 5) * (7 * 13 + 11 * 17) * 2]]
    assert pseudo.heads.w_q.ravel().tolist() == [3 * 19, 3 * 19, 5 * 19, 5 * 19]
    assert pseudo.heads.w_k.ravel().tolist() == [7 * 23, 11 * 23, 7 * 23, 11 * 23]
    assert pseudo.heads.w_v.ravel().tolist() == [26, 34, 26, 34]
    assert pseudo.projection.tolist() == [[1], [1], [2], [2]]
    assert value.heads.w_q.tolist() == [[[(1 * 3 + 2 * 5) * (7 * 13 + 11 * 17) * 19 * 23]]]
    assert value.heads.w_k.tolist() == [[[1]]]
    assert value.heads.w_v.tolist() == [[[2]]]
    assert value.projection.tolist() == [[1]]


def test_the_layer_that_is_multi_head_attention_already_keeps_its_heads():
    layer, x = drawn_layer(INTEGERS, 3, sizes(2, 1, 4, 5, 1), seed=3)
    plain = multi_head(layer.w_q, layer.w_k, layer.w_v)
    base = as_base_heads(plain)
    blocks = base.projection.reshape(2, 2, 4, 2)
    assert not blocks[0, 1].any()
    assert not blocks[1, 0].any()
    assert (blocks[0, 0][:, 0] == plain.w_v[0][:, 0]).all()
    assert not blocks[0, 0][:, 1].any()
    for form in FORMS:
        assert (form(plain).output(x) == forward(plain, x, linear)).all()
    assert as_pseudo_heads(plain).heads.w_q.tolist() == plain.w_q.tolist()


@given(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3),
       st.integers(0, 10**6))
def test_every_form_is_the_layer_index_by_index(n, heads, pseudo, model, key, value, seed):
    layer, x = drawn_layer(INTEGERS, n, sizes(heads, pseudo, model, key, value), seed)
    wanted = reference.iha(nested(layer), x.tolist(), reference.identity_rows)
    for form, count in zip(FORMS, (heads**2, heads * pseudo**2), strict=True):
        reduced = form(layer)
        assert by_loops(reduced, x) == wanted
        assert reduced.heads.sizes["out"] == count
        assert not reduced.heads.is_mixed
    for out in range(heads):
        reduced = as_value_heads(layer, out)
        assert by_loops(reduced, x) == [row[out * value : (out + 1) * value] for row in wanted]
        assert reduced.heads.sizes["out"] == heads


def test_the_heads_do_not_depend_on_the_output_head_but_those_of_the_values_do():
    layer, _ = drawn_layer(INTEGERS, 2, sizes(2, 3, 3, 1, 2), seed=5)
    swapped = IHA(**{**layer.fields(), "collapse": layer.fields()["collapse"][::-1]})
    for form in FORMS:
        assert form(layer).heads.w_q.tolist() == form(swapped).heads.w_q.tolist()
        assert form(layer).projection.tolist() != form(swapped).projection.tolist()
    assert as_value_heads(layer, 0).heads.w_q.tolist() == as_value_heads(swapped, 1).heads.w_q.tolist()
    assert as_value_heads(layer, 0).heads.w_q.tolist() != as_value_heads(layer, 1).heads.w_q.tolist()


def test_a_projection_after_the_layer_only_changes_the_projection():
    layer, x = drawn_layer(INTEGERS, 3, sizes(2, 2, 3, 2, 1), seed=8)
    after = INTEGERS.array([[1, 2, 3], [5, 8, 13]])
    for form in FORMS:
        heads, projection = form(layer)
        assert (forward(heads, x, linear) @ (projection @ after) == forward(layer, x, linear) @ after).all()


def test_one_entry_of_a_projection_more_is_seen():
    layer, x = drawn_layer(INTEGERS, 3, sizes(2, 2, 3, 2, 2), seed=8)
    for form in (*FORMS, lambda iha: as_value_heads(iha, 1)):
        heads, projection = form(layer)
        wanted = forward(heads, x, linear) @ projection
        broken = projection.copy()
        broken[-1, -1] += 1
        assert (forward(heads, x, linear) @ broken != wanted).any()


def test_floats_are_served():
    layer, x = drawn_layer(INTEGERS, 3, sizes(2, 2, 3, 2, 2), seed=8)
    floats = IHA(**{name: array.astype(float) for name, array in layer.fields().items()})
    for form in FORMS:
        reduced = form(floats)
        assert reduced.projection.dtype == float
        assert reduced.output(x.astype(float)).tolist() == forward(layer, x, linear).astype(float).tolist()


@pytest.mark.parametrize("out", [-1, 2])
def test_an_output_head_that_is_not_there_is_refused(out):
    layer, _ = drawn_layer(INTEGERS, 1, sizes(2, 1, 1, 1, 1), seed=0)
    with pytest.raises(ValueError, match=f"got {out}, wanted one of 0, ..., 1"):
        as_value_heads(layer, out)


def test_the_drawn_layer_has_the_axes_of_a_layer():
    layer, x = drawn_layer(INTEGERS, 7, sizes(2, 3, 11, 5, 13), seed=0)
    assert x.shape == (7, 11)
    assert {name: array.ndim for name, array in layer.fields().items()} == {n: len(a.split()) for n, a in AXES.items()}
    assert layer.sizes == sizes(2, 3, 11, 5, 13)
    assert all((array != 0).all() for array in layer.fields().values())


def test_the_claims_hold():
    rows = list(verify([Theorem("reductions", "", "", "", (REDUCTIONS,))]))
    assert [row for row in rows if not row.is_expected] == []
    assert {row.claim.removeprefix("reduction-") for row in rows} == {
        "base", "pseudo", "value", "base-heads", "pseudo-heads", "value-heads", "positions"}
