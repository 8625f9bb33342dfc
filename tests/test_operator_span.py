"""What the operators of a layer span: sympy's rank of operators that plain loops make, and the numbers by hand."""

import numpy as np
import pytest
from sympy import Matrix

from constructions.operator_span import (
    KINDS,
    MIXED,
    SPAN,
    dimension,
    drawn_operators,
    operator_span,
    operators,
    shared_keys,
)
from constructions.reduction_sections import drawn_layer
from iha_theory import IHA, INTEGERS, multi_head
from iha_theory.claims import Theorem
from iha_theory.verification import verify
from tests import reference

TABLE = {(1, 1): 1, (1, 2): 1, (1, 3): 1, (2, 1): 2, (2, 2): 4, (2, 3): 4, (3, 1): 3, (3, 2): 9, (3, 3): 9, (4, 1): 4,
         (4, 2): 16, (4, 4): 16, (5, 1): 5, (5, 2): 20, (5, 3): 25, (6, 2): 24}


@pytest.mark.parametrize(("heads", "pseudo"), TABLE)
def test_the_span_of_iha_by_hand(heads, pseudo):
    assert operator_span("iha", heads, pseudo) == TABLE[heads, pseudo]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "iha"])
@pytest.mark.parametrize("heads", [1, 2, 3, 4, 5])
def test_the_other_kinds_span_one_dimension_a_head(kind, heads):
    assert operator_span(kind, heads) == heads
    assert drawn_operators(kind, heads).shape[-2:] == (heads + 1, heads + 1)


@pytest.mark.parametrize(("heads", "pseudo", "seed"), [(2, 2, 0), (2, 1, 1), (3, 2, 2)])
def test_the_operators_index_by_index_and_their_rank_by_sympy(heads, pseudo, seed):
    sizes = {"source": heads, "head": heads, "out": heads, "pseudo": pseudo, "model": 3, "key": 2, "value": 1}
    layer, x = drawn_layer(INTEGERS, 4, sizes, seed)
    w = {name: array.tolist() for name, array in layer.fields().items()}
    rows = []
    found = operators(layer, x)
    for h in range(heads):
        for j in range(pseudo):
            for j2 in range(pseudo):
                q = reference.mixed(x.tolist(), w["w_q"], w["alpha_q"], h, j)
                k = reference.mixed(x.tolist(), w["w_k"], w["alpha_k"], h, j2)
                product = [[sum(a * b for a, b in zip(row, key, strict=True)) for key in k] for row in q]
                assert found[h, j, j2].tolist() == product
                rows.append([int(entry) for row in product for entry in row])
    assert Matrix(rows).rank() == dimension(found) == min(heads**2, heads * pseudo**2)


@pytest.mark.parametrize("seed", range(4))
def test_other_draws_have_the_same_dimension(seed):
    assert operator_span("iha", 3, 2, seed) == 9
    assert operator_span("iha", 5, 2, seed) == 20
    assert operator_span("talking-heads", 3, 1, seed) == 3


def test_copied_pseudo_heads_add_nothing():
    sizes = {"source": 3, "head": 3, "out": 3, "pseudo": 2, "model": 4, "key": 2, "value": 1}
    layer, x = drawn_layer(INTEGERS, 4, sizes, 0)
    fields = layer.fields()
    for name in ("alpha_q", "alpha_k"):
        fields[name] = np.repeat(fields[name][:, :, :1], 2, axis=2)
    assert dimension(operators(IHA(**fields), x)) == 3


def test_which_heads_share_keys():
    w = INTEGERS.array(np.arange(1, 6).reshape(5, 1, 1))
    layer = multi_head(w, w, w)
    assert shared_keys(layer, 1).w_k.ravel().tolist() == [1] * 5
    assert shared_keys(layer, 3).w_k.ravel().tolist() == [1, 1, 3, 3, 5]
    assert shared_keys(layer, 5).w_k.ravel().tolist() == [1, 2, 3, 4, 5]
    assert shared_keys(layer, 1).w_q.ravel().tolist() == [1, 2, 3, 4, 5]


def test_grouped_and_multi_query_attention_have_as_few_keys_as_they_say():
    """Keys span the row space of an operator: one key shared by all leaves all operators in one row space of rank 2."""
    for kind, groups in (("multi-query", 1), ("grouped-query", 2), ("multi-head", 4)):
        stacked = drawn_operators(kind, 4).reshape(-1, 5)
        assert Matrix([[int(v) for v in row] for row in stacked]).rank() == min(5, 2 * groups)


def test_bad_input_is_refused():
    with pytest.raises(ValueError, match="no kind 'gqa'; there are multi-head, grouped-query"):
        operator_span("gqa", 2)
    with pytest.raises(ValueError, match="got H=0, P=1; wanted at least 1 of each"):
        operator_span("iha", 0)
    with pytest.raises(ValueError, match="got H=2, P=0"):
        operator_span("iha", 2, 0)
    with pytest.raises(ValueError, match="multi-head attention has no pseudo-heads; got P=2, wanted 1"):
        operator_span("multi-head", 2, 2)


def test_the_claims_hold():
    rows = list(verify([Theorem("span", "", "", "", (MIXED, SPAN))]))
    assert [row for row in rows if not row.is_expected] == []
    assert len({row.claim for row in rows}) == 11


def test_the_seed_is_that_of_the_draw(monkeypatch):
    seeds = []

    def drawn(kind, heads, pseudo_heads, seed=0):
        seeds.append(seed)
        return drawn_operators(kind, heads, pseudo_heads, seed)

    monkeypatch.setattr("constructions.operator_span.drawn_operators", drawn)
    operator_span("iha", 2, 1, seed=5)
    assert seeds == [5]
    one, again, other = (drawn_operators("iha", 2, 1, seed) for seed in (1, 1, 2))
    assert (one == again).all()
    assert (one != other).any()
