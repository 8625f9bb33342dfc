# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""The torch layer against the numpy formula: outputs and gradients, under every mask, on every kernel."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from iha_theory import forward, pseudo_heads, rotary, softmax
from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import (
    DOUBLE,
    LAYERS,
    MASKS,
    QUICK,
    by_formula,
    close,
    mask_of,
    outputs_and_gradients,
    random_weights,
)

#: Enough tokens for several chunks of virtual queries, or few.
TOKENS = st.sampled_from((1, 2, 3, 7, 131, 300))


@QUICK
@given(sizes=LAYERS, n=TOKENS, mask=st.sampled_from(tuple(MASKS)), window=st.none() | st.integers(1, 140),
       hidden=st.integers(0, 3), kernel=st.sampled_from(("auto", "chunked")),
       attention=st.sampled_from(("softmax", "softmax", "softmax", "linear", "hard")))
def test_the_layer_is_the_formula(sizes, n, mask, window, hidden, kernel, attention):
    window = None if mask == "none" else window
    n = min(n, 7) if attention == "hard" else n  # the formula's hard attention loops over rows
    weights = random_weights(**sizes)
    source = np.random.default_rng(sizes["seed"])
    x, seen = source.standard_normal((n, sizes["model"])), np.ones(n, dtype=bool)
    seen[source.integers(0, n, hidden)] = False
    layer = InterleavedHeadAttention.from_weights(weights, attention=attention, mask=mask, window=window, dtype=DOUBLE,
                                                  kernel=kernel if attention == "softmax" else "auto")
    y, _ = layer(torch.tensor(x), key_padding_mask=torch.tensor(~seen), need_weights=False)
    assert close(y, by_formula(weights, x, attention, mask=mask, window=window, seen=seen))


@QUICK
@given(sizes=LAYERS, n=TOKENS, mask=st.sampled_from(tuple(MASKS)), window=st.none() | st.integers(1, 140),
       hidden=st.integers(0, 3), grouped=st.booleans())
def test_every_kernel_has_the_same_gradients(sizes, n, mask, window, hidden, grouped):
    window = None if mask == "none" else window
    torch.manual_seed(sizes["seed"])
    heads = sizes["heads"] * (2 if grouped else 1)
    layer = InterleavedHeadAttention(sizes["model"], heads, sizes["pseudo"], head_dim=sizes["key"],
                                     value_dim=sizes["value"], num_kv_heads=sizes["heads"], mask=mask, window=window,
                                     batch_first=True, init="uniform", dtype=DOUBLE)
    x, padding = torch.randn(2, n, sizes["model"], dtype=DOUBLE), torch.zeros(2, n, dtype=torch.bool)
    padding[0, torch.randint(n, (hidden,))] = True
    chosen = outputs_and_gradients(layer, x, key_padding_mask=padding)
    layer.kernel = "chunked"
    chunked = outputs_and_gradients(layer, x, key_padding_mask=padding)
    for got, wanted in zip(chosen, chunked, strict=True):
        assert close(got, wanted) or (got - wanted).abs().max() < 1e-13 * max(float(t.abs().max()) for t in chunked)


@pytest.mark.parametrize("kernel", ["auto", "chunked"])
@pytest.mark.parametrize(("mask", "window"), [("none", None), ("token", None), ("flat", None), ("token", 2),
                                              ("flat", 2)])
@pytest.mark.parametrize("padded", [False, True])
def test_the_gradients_are_those_of_the_output(mask, window, padded, kernel):
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(2, 2, 3, head_dim=2, value_dim=3, num_kv_heads=1, mask=mask, window=window,
                                     batch_first=True, init="uniform", dtype=DOUBLE, kernel=kernel)
    padding = torch.tensor([[True, False, False, False], [False, False, False, True]]) if padded else None
    names = [name for name, _ in layer.named_parameters()]

    def run(x, *parameters):
        return torch.func.functional_call(layer, dict(zip(names, parameters, strict=True)), (x,),
                                          {"key_padding_mask": padding, "need_weights": False})[0]

    inputs = [torch.randn(2, 4, 2, dtype=DOUBLE, requires_grad=True), *layer.parameters()]
    assert torch.autograd.gradcheck(run, inputs, fast_mode=True)


@pytest.mark.parametrize(("mask", "window"), [("token", None), ("flat", None), ("token", 60), ("flat", 60)])
@pytest.mark.parametrize("padded", [False, True])
def test_the_fused_kernel_serves_what_it_is_asked_for(mask, window, padded):
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(6, 2, 3, mask=mask, window=window, batch_first=True, dtype=DOUBLE, kernel="fused",
                                     init="uniform")
    x = torch.randn(2, 131, 6, dtype=DOUBLE)
    padding = torch.arange(131).expand(2, -1) >= 120 if padded else None
    fused = outputs_and_gradients(layer, x, key_padding_mask=padding)
    layer.kernel = "chunked"
    for got, wanted in zip(fused, outputs_and_gradients(layer, x, key_padding_mask=padding), strict=True):
        assert close(got, wanted, 1e-11)


def test_an_explicit_kernel_is_never_replaced(monkeypatch):
    x = torch.randn(1, 5, 6)
    layer = InterleavedHeadAttention(6, 2, mask="token", kernel="fused", dropout=0.5, batch_first=True)
    with pytest.raises(ValueError, match=r"kernel: got 'fused'.*dropout"):
        layer(x)
    layer.eval()(x)
    with pytest.raises(ValueError, match=r"kernel: got 'fused'.*attn_mask"):
        layer(x, attn_mask=torch.zeros(5, 5, dtype=torch.bool))
    monkeypatch.setattr("iha_theory.torch_fused.TESTED", ())
    with pytest.raises(ValueError, match=r"kernel: got 'fused'.*tested releases"):
        layer(x)
    layer.kernel = "auto"
    monkeypatch.setattr("iha_theory.torch_fused._forward", None)
    layer(x)  # the public kernel takes over, and the private one is not called


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("rope", ["token", "virtual"])
@pytest.mark.parametrize("frozen", [False, True])
def test_both_rules_of_rotary_positions_are_those_of_the_formula(mask, rope, frozen):
    weights = random_weights(3, heads=2, pseudo=3, model=5, key=4, value=3)
    weights.collapse[0, :, :2] = weights.collapse[1, :, :2] = 0
    weights.collapse[:, 0, 1] = 1
    x = np.random.default_rng(4).standard_normal((7, 5))

    def turn(position, pair):
        angle = position * 100.0 ** (-2 * pair / 4)
        return np.cos(angle), np.sin(angle)

    position = (lambda n, j: n) if rope == "token" else (lambda n, j: 3 * n + j)
    wanted = forward(weights, x, rotary(softmax(mask=mask_of(mask)), position, turn))
    layer = InterleavedHeadAttention.from_weights(weights, mask=mask, rope=rope, rope_base=100.0, dtype=DOUBLE)
    if frozen:
        layer.freeze_mixing()
        assert layer.mixing.pseudo_queries == 2
    assert close(layer(torch.tensor(x))[0], wanted)
    shifted, _ = layer(torch.tensor(x), position_ids=torch.arange(7) + 11)
    assert close(shifted, wanted)  # only differences of positions count
    assert not close(layer(torch.tensor(x), position_ids=torch.arange(7) * 2)[0], wanted, 1e-3)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("sizes", [(1, 1, 1, 1), (3, 1, 2, 1), (3, 4, 1, 1), (3, 1, 1, 5), (0, 4, 2, 3)])
def test_the_smallest_sizes(mask, sizes):
    batch, n, heads, pseudo = sizes
    layer = InterleavedHeadAttention(4, heads, pseudo, mask=mask, batch_first=True, init="uniform")
    x = torch.randn(batch, n, 4, requires_grad=True)
    for call in ({}, {"key_padding_mask": torch.zeros(batch, n, dtype=torch.bool)}):
        y, weights = layer(x, **call)
        assert y.shape == (batch, n, 4)
        assert weights.shape == (batch, n, n)
        y.sum().backward()
        assert x.grad.isfinite().all()


@pytest.mark.parametrize("mask", MASKS)
def test_strides_layouts_and_unbatched_inputs_do_not_matter(mask):
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(6, 2, 3, mask=mask, batch_first=True, init="uniform", dtype=DOUBLE)
    x = torch.randn(3, 5, 6, dtype=DOUBLE)
    wanted, weights = layer(x, average_attn_weights=False)
    assert weights.shape == (3, 2, 5, 5)
    strided = torch.randn(6, 10, 3, dtype=DOUBLE).transpose(0, 2)[:, ::2]
    strided.copy_(x)
    assert not strided.is_contiguous()
    assert close(layer(strided)[0], wanted)
    assert close(layer(x[1])[0], wanted[1])
    layer.batch_first = False
    assert close(layer(x.transpose(0, 1))[0].transpose(0, 1), wanted)
    expanded = layer(x.transpose(0, 1))[0]
    expanded.sum().backward()  # a gradient of stride 0


@pytest.mark.parametrize("mask", MASKS)
def test_token_level_weights_are_what_the_formula_weighs(mask):
    weights = random_weights(3, heads=2, pseudo=3, model=5, key=4, value=3)
    x = np.random.default_rng(4).standard_normal((7, 5))
    layer = InterleavedHeadAttention.from_weights(weights, mask=mask, dtype=DOUBLE)
    _, got = layer(torch.tensor(x), average_attn_weights=False)
    q, k, _ = pseudo_heads(weights, x)
    identity = np.tile(np.eye(7), (3, 1))  # a virtual token, pseudo-major, says which token it is
    seen = softmax(mask=mask_of(mask))(q, k, np.broadcast_to(identity.reshape(3, 7, 7), (2, 3, 7, 7)))
    assert weights.collapse is not None
    assert close(got, np.einsum("ohj,hjnm->onm", weights.collapse, seen))
    _, mean = layer(torch.tensor(x))
    assert close(mean, got.mean(0))


@pytest.mark.parametrize("mask", MASKS)
def test_dropout_drops_in_training_only(mask):
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(6, 2, 3, mask=mask, dropout=0.5, batch_first=True)
    x = torch.randn(1, 9, 6)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])


def test_copies_and_state_survive():
    layer = InterleavedHeadAttention(6, 2, 3, mask="token", init="uniform")
    x = torch.randn(5, 2, 6)
    other = InterleavedHeadAttention(6, 2, 3, mask="token")
    other.load_state_dict(layer.state_dict())
    for same in (copy.deepcopy(layer), other):
        assert torch.equal(same(x)[0], layer(x)[0])
    assert "alpha_q" in repr(dict(layer.mixing.named_parameters()))
    meta = InterleavedHeadAttention(6, 2, 3, device="meta", dtype=torch.bfloat16)
    assert meta.mixing.alpha_q.dtype == torch.float32
    assert meta.to_empty(device="cpu").q_proj.weight.device.type == "cpu"
