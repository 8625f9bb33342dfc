# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""Padding, masks of the caller, rows that see nothing, and what is refused before anything is computed."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import DOUBLE, MASKS, by_formula, close, random_weights

KERNELS = ("auto", "chunked")


def layer_of(mask="none", kernel="auto", **options: Any):
    torch.manual_seed(0)
    made: dict[str, Any] = {"mask": mask, "kernel": kernel, "batch_first": True, "init": "uniform", "dtype": DOUBLE} | options
    return InterleavedHeadAttention(6, 2, 3, **made)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("kernel", KERNELS)
def test_rows_that_see_nothing_are_zeros_forward_and_backward(mask, window, kernel):
    if mask == "none" and window:
        return
    layer = layer_of(mask, kernel, window=window, bias=False, out_proj=False)
    x = torch.randn(3, 5, 6, dtype=DOUBLE, requires_grad=True)
    padding = torch.zeros(3, 5, dtype=torch.bool)
    padding[0] = True  # a sequence of nothing but padding
    padding[1, :2] = True
    y, weights = layer(x, key_padding_mask=padding)
    assert (y[0] == 0).all()
    assert (weights[0] == 0).all()
    assert (y[1, :2] == 0).all() == (mask != "none")  # the first two see nothing but themselves
    (y.square().sum() + weights.square().sum()).backward()
    for t in (y, x.grad, *(p.grad for p in layer.parameters())):
        assert t.isfinite().all()
    assert (x.grad[0] == 0).all()
    assert (x.grad[1, 3] != 0).all()


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("attention", ["softmax", "linear", "hard"])
@pytest.mark.parametrize("shape", [(0, 4), (2, 0), (0, 0)])
def test_no_sequences_and_no_tokens_give_zero_gradients(mask, attention, shape):
    layer = layer_of(mask, attention=attention)
    x = torch.randn(*shape, 6, dtype=DOUBLE, requires_grad=True)
    for padding in (None, torch.zeros(shape, dtype=torch.bool)):
        layer.zero_grad()
        y, weights = layer(x, key_padding_mask=padding)
        assert y.shape == x.shape
        assert weights.shape == (*shape, shape[1])
        y.sum().backward()
        assert x.grad.shape == x.shape
        for name, parameter in layer.named_parameters():
            # The scores of hard attention have no gradients.
            if attention != "hard" or not name.startswith(("q_proj", "k_proj", "mixing.alpha_q", "mixing.alpha_k")):
                assert parameter.grad is not None, name
                assert not parameter.grad.any(), name


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_dead_rows_in_low_precision(mask, window, kernel, dtype):
    if mask == "none" and window:
        return
    layer = layer_of(mask, kernel, window=window, dtype=dtype)
    x = torch.randn(2, 5, 6, dtype=dtype, requires_grad=True)
    padding = torch.ones(2, 5, dtype=torch.bool)
    padding[1, 4] = False
    y, _ = layer(x, key_padding_mask=padding, need_weights=False)
    y.float().square().sum().backward()
    assert y.isfinite().all()
    assert x.grad.isfinite().all()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("rope", [None, "token"])
def test_left_and_right_padding_leave_the_real_tokens_alone(mask, kernel, rope):
    layer = layer_of(mask, kernel, rope=rope, head_dim=4)
    real = torch.randn(1, 5, 6, dtype=DOUBLE)
    wanted, _ = layer(real)
    pads = torch.full((1, 2, 6), 1e3, dtype=DOUBLE)
    right, left = torch.cat((real, pads), 1), torch.cat((pads, real), 1)
    is_pad = torch.tensor([[False] * 5 + [True] * 2])
    positions = None if rope is None else torch.tensor([[0, 0, 0, 1, 2, 3, 4]])
    assert close(layer(right, key_padding_mask=is_pad)[0][:, :5], wanted)
    assert close(layer(left, key_padding_mask=is_pad.flip(1), position_ids=positions)[0][:, 2:], wanted)
    both, ignored = torch.cat((right, left)), torch.cat((is_pad, is_pad.flip(1)))
    together, _ = layer(both, key_padding_mask=ignored)
    assert close(together[:1, :5], wanted)
    assert close(together[1:, 2:], wanted)
    if mask == "none":
        assert not close(layer(right)[0][:, :5], wanted, 1e-3)  # padding that is not masked is seen


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("window", [None, 3])
@pytest.mark.parametrize("attention", ["softmax", "linear", "hard"])
def test_a_boolean_mask_over_token_pairs_is_that_of_the_formula(mask, window, attention):
    if mask == "none" and window:
        return
    weights = random_weights(3, heads=2, pseudo=3, model=5, key=4, value=3)
    x = np.random.default_rng(4).standard_normal((7, 5))
    pairs = np.random.default_rng(5).random((7, 7)) < 0.6
    pairs[2] = False
    layer = InterleavedHeadAttention.from_weights(weights, mask=mask, window=window, attention=attention, dtype=DOUBLE)
    y, w = layer(torch.tensor(x), attn_mask=torch.tensor(~pairs))
    assert close(y, by_formula(weights, x, attention, mask=mask, window=window, pairs=pairs))
    assert (w[torch.tensor(~pairs)] == 0).all()
    frozen, _ = layer.freeze_mixing()(torch.tensor(x), attn_mask=torch.tensor(~pairs))
    assert close(frozen, y)


def test_masks_mean_what_they_mean_in_multi_head_attention():
    torch.manual_seed(0)
    mha = nn.MultiheadAttention(6, 2, batch_first=True, dtype=DOUBLE)
    layer = InterleavedHeadAttention.from_mha(mha, 3)
    x, y = torch.randn(3, 5, 6, dtype=DOUBLE), torch.randn(3, 7, 6, dtype=DOUBLE)
    boolean, additive = torch.rand(5, 7) < 0.3, torch.randn(5, 7, dtype=DOUBLE)
    boolean[:, 6] = False
    padding = torch.tensor([[False] * 7, [False, True] + [False] * 5, [True] + [False] * 6])
    weak = torch.zeros(3, 7, dtype=DOUBLE).masked_fill(padding, -2.5)
    per_head = torch.randn(6, 5, 7, dtype=DOUBLE)
    for call in ({"attn_mask": boolean}, {"attn_mask": additive}, {"attn_mask": per_head}, {"key_padding_mask": padding},
                 {"key_padding_mask": weak}, {"attn_mask": boolean, "key_padding_mask": padding},
                 {"attn_mask": per_head > 1, "key_padding_mask": padding},
                 {"attn_mask": additive, "key_padding_mask": weak}):
        for average in (True, False):
            got, wanted = (module(x, y, y, average_attn_weights=average, **call) for module in (layer, mha))
            assert close(got[0], wanted[0])
            assert close(got[1], wanted[1])
    assert not close(layer(x, y, attn_mask=additive)[0], layer(x, y)[0], 1e-3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("mask", ["token", "flat"])
def test_numbers_in_the_padding_mask_are_added(mask, kernel):
    layer = layer_of(mask, kernel)
    x, numbers = torch.randn(2, 5, 6, dtype=DOUBLE), torch.randn(2, 5, dtype=DOUBLE)
    y, w = layer(x, key_padding_mask=numbers)
    wanted, weights = layer(x, attn_mask=numbers[:, None, None].expand(2, 2, 5, 5).reshape(4, 5, 5))
    assert close(y, wanted)
    assert close(w, weights)


def test_a_padding_mask_that_is_trained_gets_its_gradient():
    layer, x = layer_of("token"), torch.randn(2, 5, 6, dtype=DOUBLE)

    def run(numbers):
        return layer(x, key_padding_mask=numbers, need_weights=False)[0]

    assert torch.autograd.gradcheck(run, torch.randn(2, 5, dtype=DOUBLE, requires_grad=True), fast_mode=True)


def test_large_scores_do_not_overflow_in_half_precision():
    layer = layer_of("token", dtype=torch.float16)
    with torch.no_grad():
        layer.mixing.alpha_q.mul_(400)
        layer.mixing.alpha_k.mul_(400)
    assert layer(torch.randn(2, 5, 6, dtype=torch.float16), need_weights=False)[0].isfinite().all()


def test_an_is_causal_that_contradicts_the_mask_is_refused():
    x = torch.randn(2, 5, 6, dtype=DOUBLE)
    with pytest.raises(ValueError, match=r"is_causal: got True, but the layer has mask='none'"):
        layer_of()(x, is_causal=True)
    causal = torch.ones(5, 5, dtype=torch.bool).triu(1)
    hinted, _ = layer_of()(x, attn_mask=causal, is_causal=True)
    assert close(hinted, layer_of("token")(x, is_causal=True)[0])


X = torch.zeros(2, 5, 6, dtype=DOUBLE)
WRONG = [
    ({}, (torch.zeros(2, 5, 7, dtype=DOUBLE),), {}, r"query: got shape \(2, 5, 7\), wanted \(batch, token, 6\)"),
    ({}, (torch.zeros(2, 5, 6, 1, dtype=DOUBLE),), {}, r"query: got shape \(2, 5, 6, 1\)"),
    ({}, (X.float(),), {}, r"query: got dtype torch.float32, wanted the layer's torch.float64"),
    ({}, (X, X[..., :4]), {}, r"key: got shape \(2, 5, 4\), wanted \(batch, token, 6\)"),
    ({}, (X, X[0]), {}, r"key: got shape \(5, 6\), wanted \(batch, token, 6\)"),
    ({}, (X, X[:1]), {}, r"key: got 1 sequences, wanted as many as query has, 2"),
    ({}, (X, X, X[:, :4]), {}, r"value: got \(batch, token\) \(2, 4\), wanted those of key, \(2, 5\)"),
    ({}, (X, None, X), {}, r"value: got a tensor without a key"),
    ({"mask": "flat"}, (X, X[:, :4]), {}, r"key: got 4 tokens, wanted 5.*mask='flat' is causal"),
    ({}, (X,), {"key_padding_mask": torch.zeros(2, 5)[:1]}, r"key_padding_mask: got shape \(1, 5\), wanted .*\(2, 5\)"),
    ({}, (X,), {"key_padding_mask": torch.zeros(5, dtype=torch.bool)}, r"key_padding_mask: got shape \(5,\)"),
    ({}, (X,), {"key_padding_mask": torch.zeros(2, 5, dtype=torch.uint8)}, r"key_padding_mask: got dtype torch.uint8"),
    ({}, (X,), {"attn_mask": torch.zeros(1, 5, dtype=torch.bool)}, r"attn_mask: got shape \(1, 5\), wanted .*\(5, 5\)"),
    ({}, (X,), {"attn_mask": torch.zeros(2, 5, 5)}, r"attn_mask: got shape \(2, 5, 5\), wanted .*\(4, 5, 5\)"),
    ({}, (X,), {"attn_mask": torch.zeros(5, 5, dtype=torch.int64)}, r"attn_mask: got dtype torch.int64"),
    ({"attention": "linear"}, (X,), {"attn_mask": torch.zeros(5, 5)}, r"attn_mask: got dtype torch.float32, wanted bool"),
    ({"attention": "hard"}, (X,), {"key_padding_mask": torch.zeros(2, 5)}, r"key_padding_mask: got dtype .* wanted bool"),
    ({}, (X,), {"position_ids": torch.arange(5)}, r"position_ids: got a tensor, but the layer has rope=None"),
    ({"rope": "token", "head_dim": 2}, (X,), {"position_ids": torch.arange(4)}, r"position_ids: got shape \(4,\), wanted"),
    ({"rope": "token", "head_dim": 2}, (X,), {"position_ids": torch.zeros(5)}, r"position_ids: got dtype torch.float32"),
    ({"rope": "token", "head_dim": 2}, (X, X.clone()), {"position_ids": torch.arange(5)}, r"position_ids: .*cross-attention"),
]


@pytest.mark.parametrize(("options", "inputs", "call", "message"), WRONG)
def test_bad_calls_are_refused_before_any_computation(options, inputs, call, message, monkeypatch):
    layer = layer_of(**options)
    layer(X)
    monkeypatch.setattr(nn.Linear, "forward", None)  # nothing may be computed
    with pytest.raises(ValueError, match=message):
        layer(*inputs, **call)


BAD_LAYERS = [
    ({"embed_dim": 7}, r"embed_dim: got 7, wanted a multiple of num_heads=2"),
    ({"num_heads": 0}, r"num_heads: got 0, wanted a positive integer"),
    ({"num_pseudo_heads": 1.5}, r"num_pseudo_heads: got 1.5, wanted a positive integer"),
    ({"num_kv_heads": 3, "num_heads": 4, "embed_dim": 8}, r"num_kv_heads: got 3, wanted a divisor of num_heads=4"),
    ({"attention": "sharp"}, r"attention: got 'sharp', wanted one of 'softmax', 'linear', 'hard'"),
    ({"mask": "causal"}, r"mask: got 'causal', wanted one of 'none', 'token', 'flat'"),
    ({"kernel": "flash"}, r"kernel: got 'flash'"),
    ({"rope": "yarn"}, r"rope: got 'yarn'"),
    ({"rope": "token"}, r"rope: .*got head_dim=3, wanted an even number"),
    ({"window": 2}, r"window: got 2 with mask='none', wanted a causal mask"),
    ({"window": 0, "mask": "flat"}, r"window: got 0, wanted a positive integer"),
    ({"dropout": 1.0}, r"dropout: got 1.0, wanted a probability"),
    ({"dropout": 0.1, "attention": "linear"}, r"dropout: got 0.1; linear attention has none"),
    ({"temperature": 0.0}, r"temperature: got 0.0, wanted a positive number"),
    ({"temperature": 1.0, "attention": "linear"}, r"temperature: linear attention has none"),
    ({"kernel": "fused", "attention": "hard"}, r"kernel: got 'fused', which is softmax's"),
    ({"init": "copy"}, r"init: got 'copy', wanted 'mha', 'noise' or 'uniform'"),
]


def layer_with(options: dict[str, Any]):
    return InterleavedHeadAttention(**options)


@pytest.mark.parametrize(("options", "message"), BAD_LAYERS)
def test_layers_that_cannot_be_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        layer_with({"embed_dim": 6, "num_heads": 2} | options)


def test_weights_of_the_book_that_are_not_this_layer_are_refused():
    weights = random_weights(0, heads=2, pseudo=3, model=5, key=4, value=3)
    fields = weights.fields() | {"collapse": weights.collapse[:1]}
    with pytest.raises(ValueError, match=r"from_weights: got source=2, head=2, out=1"):
        InterleavedHeadAttention.from_weights(type(weights)(**fields))
    for options, match in (({}, "output projection"), ({"out_proj": False}, "biases"),
                           ({"out_proj": False, "bias": False, "kdim": 3}, "kdim=3")):
        with pytest.raises(ValueError, match=f"to_weights: .*{match}"):
            layer_with({"embed_dim": 6, "num_heads": 2} | options).to_weights()


def test_no_mask_over_all_pairs_of_virtual_tokens_is_formed():
    """Every tensor that an operator makes stays linear in N P, at a length where N P squared would stand out."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Largest(TorchDispatchMode):
        numbers = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            for t in result if isinstance(result, tuple | list) else (result,):
                if isinstance(t, torch.Tensor) and t.untyped_storage().nbytes():
                    self.numbers = max(self.numbers, t.untyped_storage().nbytes() // t.element_size())
            return result

    def largest(n, mask, window, padded):
        layer = InterleavedHeadAttention(4, 2, 2, mask=mask, window=window, batch_first=True)
        x = torch.randn(1, n, 4, requires_grad=True)
        padding = torch.arange(n)[None] >= n - 5 if padded else None
        with Largest() as seen:
            layer(x, key_padding_mask=padding, need_weights=False)[0].sum().backward()
        return seen.numbers

    for padded in (False, True):
        for mask, window in (("none", None), ("flat", None), ("token", None), ("flat", 100), ("token", 100)):
            small, large = (largest(n, mask, window, padded) for n in (512, 1024))
            assert large <= 2 * small
            assert large < 2048**2 / 8
