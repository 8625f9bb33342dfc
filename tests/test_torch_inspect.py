"""The inspector: distances against a search, operators and patterns against the layer's own output."""

from typing import Any

import pytest
import torch
from torch import nn

from iha_theory.torch_inspect import attention_patterns, effective_operators, inspect_layer
from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import DOUBLE, close

KINDS: list[dict[str, Any]] = [
    {}, {"mask": "token"}, {"mask": "flat", "window": 2}, {"attention": "linear"}, {"attention": "hard"},
    {"attention": "linear", "mask": "token"}, {"num_kv_heads": 1, "out_proj": False}, {"bias": False}]


def layer_of(**options):
    torch.manual_seed(0)
    options = {"init": "uniform", "dtype": DOUBLE, "batch_first": True} | options
    layer = InterleavedHeadAttention(8, 2, 3, head_dim=4, value_dim=2, **options)
    for name, parameter in layer.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(parameter)
    return layer


@pytest.mark.parametrize("mask", ["none", "token", "flat"])
def test_at_the_mha_initialisation_the_distance_is_zero(mask):
    layer = InterleavedHeadAttention(8, 2, 3, mask=mask)
    found = inspect_layer(layer)
    assert found.distance == found.relative == found.keys == found.collapse == 0
    assert found.why_not_mha is None
    assert found.alive.tolist() == [[False, False, True]] * 2
    assert "is multi-head attention" in str(found)
    assert "2 of 6" in str(found)


@pytest.mark.parametrize("mask", ["none", "flat"])
def test_the_distance_is_the_least_over_all_points_of_the_set(mask):
    layer = layer_of(mask=mask)
    alpha_k, r = layer.mixing.alpha_k.detach().clone(), layer.mixing.collapse.detach().clone()
    found = inspect_layer(layer)
    # Each output head may read any one column; given it, the nearest point is least squares: mean and entry.
    best = 0.0
    for row in r:
        columns = [(h, j) for h in range(2) for j in range(3) if mask == "none" or j == 2]
        best += min(float((row**2).sum() - row[h, j] ** 2) for h, j in columns)
    keys = sum(float(((a - a.mean()) ** 2).sum()) for a in alpha_k.flatten(0, 1))
    assert found.distance == pytest.approx((best + keys) ** 0.5, rel=1e-12)
    assert found.keys == pytest.approx(keys**0.5, rel=1e-12)
    assert found.collapse == pytest.approx(best**0.5, rel=1e-12)
    assert found.relative == pytest.approx(found.distance / float(alpha_k.norm() ** 2 + r.norm() ** 2) ** 0.5)
    assert found.why_not_mha is not None
    assert found.why_not_mha in str(found)


def test_a_known_step_away_is_measured():
    layer = InterleavedHeadAttention(8, 2, 3, dtype=DOUBLE)
    with torch.no_grad():
        layer.mixing.collapse[0, 1, 0] = 0.3
        layer.mixing.collapse[1, 0, 1] = 0.4
    found = inspect_layer(layer)
    assert found.distance == pytest.approx(0.5, rel=1e-12)
    assert found.keys == 0
    assert found.alive.tolist() == [[False, True, True], [True, False, True]]
    assert inspect_layer(layer, threshold=0.35).alive.tolist() == [[False, True, True], [False, False, True]]
    with pytest.raises(ValueError, match="threshold: got 1"):
        inspect_layer(layer, threshold=1)


@pytest.mark.parametrize("options", KINDS, ids=str)
def test_operators_and_patterns_make_the_output(options):
    layer, x = layer_of(**options), torch.randn(2, 4, 8, dtype=DOUBLE)
    padding = torch.tensor([[False] * 4, [False] * 3 + [True]])
    found = effective_operators(layer)
    patterns = attention_patterns(layer, x, key_padding_mask=padding)
    assert patterns.shape == (2, 2, 4, 3, 4, 3)
    group = 2 // layer.num_kv_heads
    value, value_bias = (t.repeat_interleave(group, 0) for t in (found.value, found.value_bias))
    values = torch.einsum("hjde,bne->bnhjd", value, x) + value_bias
    gathered = torch.einsum("bhnisj,bshjd->bnhid", patterns, values)
    output = torch.einsum("hied,bnhid->bne", found.output, gathered) + found.output_bias
    assert close(output, layer(x, key_padding_mask=padding, need_weights=False)[0])
    assert len(str(found).splitlines()) == 3


def test_query_and_key_operators_make_the_patterns():
    layer, x = layer_of(num_kv_heads=1), torch.randn(1, 4, 8, dtype=DOUBLE)
    found = effective_operators(layer)
    queries = torch.einsum("hide,bne->bhnid", found.query, x) + found.query_bias[:, None]
    keys = torch.einsum("hjde,bne->bhnjd", found.key, x) + found.key_bias[:, None]
    scores = torch.einsum("bhnid,bgsjd->bhnisj", queries, keys) * layer.scale
    wanted = scores.flatten(4).softmax(-1).view(scores.shape)
    assert close(attention_patterns(layer, x), wanted)


def test_patterns_carry_no_dropout():
    layer, x = layer_of(dropout=0.5).train(), torch.randn(1, 4, 8, dtype=DOUBLE)
    assert close(attention_patterns(layer, x), attention_patterns(layer.eval(), x), 0)


def test_after_freezing_the_patterns_are_those_of_the_pseudo_queries_that_are_left():
    layer, x = layer_of(init="mha"), torch.randn(1, 4, 8, dtype=DOUBLE)
    whole = attention_patterns(layer, x)
    layer.freeze_mixing()
    part = attention_patterns(layer, x)
    assert part.shape == (1, 2, 4, 1, 4, 3)
    assert close(part, whole[:, :, :, 2:], 1e-12)


def test_a_mask_of_the_caller_shows_in_the_patterns():
    layer, x = layer_of(), torch.randn(1, 4, 8, dtype=DOUBLE)
    future = torch.ones(4, 4, dtype=torch.bool).triu(1)
    patterns = attention_patterns(layer, x, attn_mask=future)
    assert not patterns.sum((3, 5))[:, :, future].any()
    assert close(patterns.sum((4, 5)), torch.ones(1, 2, 4, 3, dtype=DOUBLE))
    assert close(patterns, attention_patterns(layer_of(mask="token"), x))
