# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""Between the torch layer, the book's weights and ``torch.nn.MultiheadAttention``."""

from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from torch import nn

from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import (
    DOUBLE,
    LAYERS,
    MASKS,
    QUICK,
    by_formula,
    close,
    random_weights,
)


@QUICK
@given(sizes=LAYERS)
def test_the_books_weights_come_back(sizes):
    weights = random_weights(**sizes)
    back = InterleavedHeadAttention.from_weights(weights, dtype=DOUBLE).to_weights()
    assert back.fields().keys() == weights.fields().keys()
    for name, array in weights.fields().items():
        assert np.array_equal(getattr(back, name), array)


@pytest.mark.parametrize("mask", MASKS)
def test_shared_kv_heads_written_out_are_the_same_layer(mask):
    torch.manual_seed(1)
    layer = InterleavedHeadAttention(5, 6, 3, head_dim=4, num_kv_heads=2, bias=False, out_proj=False, mask=mask,
                                     init="uniform", dtype=DOUBLE)
    x = torch.randn(7, 5, dtype=DOUBLE)
    assert close(layer(x)[0], by_formula(layer.to_weights(), x.numpy(), mask=mask))


def mha(**options):
    torch.manual_seed(2)
    module = nn.MultiheadAttention(6, 2, dtype=DOUBLE, **options)
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module


CAUSAL = torch.ones(7, 7, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("pseudo", [1, 2, 5])
@pytest.mark.parametrize("options", [{}, {"batch_first": True}, {"bias": False}, {"kdim": 3, "vdim": 5}])
@pytest.mark.parametrize("padded", [False, True])
def test_a_converted_mha_computes_the_same(mask, pseudo, options, padded):
    module = mha(**options)
    layer = InterleavedHeadAttention.from_mha(module, pseudo, mask=mask)
    x = torch.randn(7, 7, 6, dtype=DOUBLE)
    key, value = (x[..., :3], x[..., :5]) if "kdim" in options else (x, x)
    padding = None
    if padded:
        padding = torch.zeros(7, 7, dtype=torch.bool)
        padding[1, 5:] = padding[2, 3] = True
    results = []
    for call in (module, layer):
        inputs = [t.clone().requires_grad_() for t in (x, key, value)]
        causal = None if mask == "none" or call is layer else CAUSAL
        y, weights = call(*inputs, key_padding_mask=padding, attn_mask=causal)
        results.append([y, weights, *torch.autograd.grad(y.square().sum(), inputs)])
    for got, wanted in zip(results[1], results[0], strict=True):
        assert close(got, wanted)
    back = layer.to_mha()
    y, _ = back(x, key, value, key_padding_mask=padding, attn_mask=None if mask == "none" else CAUSAL)
    assert close(y, results[0][0])


def test_an_mha_that_adds_tokens_is_refused():
    with pytest.raises(ValueError, match="add_zero_attn"):
        InterleavedHeadAttention.from_mha(mha(add_zero_attn=True))
    with pytest.raises(ValueError, match="bias_k"):
        InterleavedHeadAttention.from_mha(mha(add_bias_kv=True))


def test_a_layer_that_is_no_mha_says_why():
    layer = InterleavedHeadAttention(6, 2, 3, mask="flat")
    with torch.no_grad():
        layer.mixing.alpha_k[1, 0, 2] = 1
        with pytest.raises(ValueError, match="pseudo-key 2 of kv head 0"):
            layer.to_mha()
        layer.mixing.alpha_k[1, 0, 2] = 0
        layer.mixing.collapse[0, 0] = torch.tensor([0.0, 1.0, 0.0])
        with pytest.raises(ValueError, match="under the flat mask output head 0 reads pseudo-head 1"):
            layer.to_mha()
        layer.mixing.collapse[1, 0, 0] = 1
        with pytest.raises(ValueError, match="output head 1 reads 2 pseudo-heads"):
            layer.to_mha()
    kinds: tuple[tuple[dict[str, Any], str], ...] = (
        ({"attention": "linear"}, "attention"), ({"rope": "token", "head_dim": 2}, "rope"),
        ({"mask": "token", "window": 2}, "window"), ({"head_dim": 2}, "head_dim"), ({"value_dim": 2}, "value_dim"))
    for options, match in kinds:
        with pytest.raises(ValueError, match=match):
            InterleavedHeadAttention(6, 2, 3, **options).to_mha()


def test_to_mha_folds_what_it_can():
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(12, 4, 3, num_kv_heads=2, temperature=0.3, dtype=DOUBLE, init="uniform")
    with torch.no_grad():
        layer.mixing.alpha_k.copy_(layer.mixing.alpha_k[:, :, :1].clone().expand(-1, -1, 3))
        layer.mixing.collapse.zero_()
        for out, (h, j) in enumerate([(2, 0), (0, 1), (2, 2)]):  # output head 3 reads nothing
            layer.mixing.collapse[out, h, j] = 1.5 + out
        for p in (layer.q_proj.bias, layer.k_proj.bias, layer.v_proj.bias):
            p.normal_()
    x = torch.randn(7, 2, 12, dtype=DOUBLE)
    assert close(layer.to_mha()(x, x, x)[0], layer(x)[0])
