# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""The torch layer against the numpy formula: outputs and gradients, under every mask, on every kernel."""

import copy
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from iha_theory import forward, pseudo_heads, rotary, softmax
from iha_theory.torch_init import parameter_groups
from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import (
    DOUBLE,
    MASKS,
    by_formula,
    close,
    mask_of,
    outputs_and_gradients,
    random_weights,
)

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
LAYERS = st.fixed_dictionaries({
    "heads": st.integers(1, 3), "pseudo": st.integers(1, 4), "model": st.integers(1, 5), "key": st.integers(1, 5),
    "value": st.integers(1, 5), "seed": st.integers(0, 99)})
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
@pytest.mark.parametrize("window", [None, 3])
def test_a_frozen_layer_skips_what_r_ignores_and_nothing_else(mask, window):
    if mask == "none" and window:
        return
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(6, 3, 4, mask=mask, window=window, batch_first=True, init="uniform", dtype=DOUBLE)
    with torch.no_grad():
        layer.mixing.collapse[:, 0, (0, 1)] = 0
        layer.mixing.collapse[:, 1, (0, 2)] = 0
        layer.mixing.collapse[:, 2] = 0
    x = torch.randn(2, 131, 6, dtype=DOUBLE)
    before, weights_before = layer(x)
    projections = [p for name, p in layer.named_parameters() if "mixing" not in name]
    gradients = torch.autograd.grad(before.square().sum(), projections)
    layer.freeze_mixing()
    assert layer.mixing.pseudo_queries == (3 if mask == "flat" else 2)
    after, weights_after = layer(x)
    assert close(after, before)
    assert close(weights_after, weights_before)
    for got, wanted in zip(torch.autograd.grad(after.square().sum(), projections), gradients, strict=True):
        assert close(got, wanted, 1e-11)
    with torch.no_grad():
        layer.mixing.collapse[:, :, 0] = 1
    reference = copy.deepcopy(layer).unfreeze_mixing()
    layer.load_state_dict(reference.state_dict())  # weights that read another pseudo-query
    assert layer.mixing.pseudo_queries > 2
    assert close(layer(x)[0], reference(x)[0])
    assert all(p.requires_grad for p in reference.parameters())


@pytest.mark.parametrize("mask", MASKS)
def test_trainable_mixing_is_never_skipped(mask):
    layer = InterleavedHeadAttention(6, 2, 3, mask=mask, batch_first=True)
    layer(torch.randn(1, 5, 6))[0].square().sum().backward()
    assert (layer.mixing.collapse.grad[:, :, 0] != 0).all()  # R ignores pseudo-head 0, and yet learns of it


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


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("rope", [None, "token"])
@pytest.mark.parametrize("window", [None, 3])
def test_mha_initialisation_is_mha(mask, rope, window):
    if mask == "none" and window:
        return
    torch.manual_seed(0)
    one = InterleavedHeadAttention(12, 3, 1, mask=mask, rope=rope, window=window, dtype=DOUBLE)
    many = InterleavedHeadAttention(12, 3, 4, mask=mask, rope=rope, window=window, dtype=DOUBLE)
    state = {name: t for name, t in one.state_dict().items() if "mixing" not in name}
    many.load_state_dict(state, strict=False)
    x = torch.randn(7, 2, 12, dtype=DOUBLE)
    padding = torch.zeros(2, 7, dtype=torch.bool)
    padding[0, 5:] = True
    for call in ({}, {"key_padding_mask": padding}):
        assert close(many(x, **call)[0], one(x, **call)[0])


def test_virtual_positions_break_the_inclusion():
    torch.manual_seed(0)
    one = InterleavedHeadAttention(12, 3, 1, rope="virtual", dtype=DOUBLE)
    many = InterleavedHeadAttention(12, 3, 2, rope="virtual", dtype=DOUBLE)
    many.load_state_dict({name: t for name, t in one.state_dict().items() if "mixing" not in name}, strict=False)
    x = torch.randn(7, 2, 12, dtype=DOUBLE)
    assert not close(many(x)[0], one(x)[0], 1e-3)


def spreads_after_training(layer, steps=10):
    """How far the pseudo-heads' mixing of keys and of values is from that of the first, after Adam."""
    torch.manual_seed(3)
    x, target = torch.randn(4, 7, 6, dtype=DOUBLE), torch.randn(4, 7, 6, dtype=DOUBLE)
    optimiser = torch.optim.Adam(layer.parameters(), lr=0.05)
    for _ in range(steps):
        optimiser.zero_grad()
        (layer(x, need_weights=False)[0] - target).square().mean().backward()
        optimiser.step()
    return [float((t - t[:, :, :1]).detach().abs().max()) for t in (layer.mixing.alpha_k, layer.mixing.alpha_v)]


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kernel", ["auto", "chunked"])
def test_the_plain_copy_is_a_trap_and_the_initialisation_is_not(mask, kernel):
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(6, 2, 3, mask=mask, batch_first=True, dtype=DOUBLE, kernel=kernel)
    trap = copy.deepcopy(layer)
    trap.reset_parameters(noise=0)
    keys, values = spreads_after_training(layer)
    assert keys > 0.05
    assert values > 0.05
    keys, values = spreads_after_training(trap)
    if mask == "flat":
        assert keys > 0.05  # here the copies see different tokens
    else:  # equal gradients but for rounding
        assert keys < 1e-9
        assert values < 1e-9


def test_the_other_initialisations_separate_too():
    for init in ("noise", "uniform"):
        torch.manual_seed(0)
        layer = InterleavedHeadAttention(6, 2, 3, batch_first=True, dtype=DOUBLE, init=init)
        keys, values = spreads_after_training(layer)
        assert keys > 0.05
        assert values > 0.05
    layer = InterleavedHeadAttention(64, 32, 8, init="uniform")
    assert float(layer.mixing.alpha_k.detach().var()) == pytest.approx(1 / 32, rel=0.1)
    assert float(layer.mixing.collapse.detach().var()) == pytest.approx(1 / 256, rel=0.1)
    near = InterleavedHeadAttention(64, 32, 8, init="noise")
    assert float((near.mixing.collapse[:, :, -1] - torch.eye(32)).detach().std()) == pytest.approx(0.05, rel=0.1)


def test_initialisations_obey_their_generator_and_refuse_nonsense():
    layers = [InterleavedHeadAttention(6, 2, 3) for _ in range(2)]
    for init in ("mha", "noise", "uniform"):
        for layer in layers:
            layer.reset_parameters(init, generator=torch.Generator().manual_seed(7))
        assert all(torch.equal(a, b) for a, b in zip(layers[0].parameters(), layers[1].parameters(), strict=True))
    with pytest.raises(ValueError, match="init: got 'copy'"):
        layers[0].reset_parameters("copy")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="noise: got -1"):
        layers[0].reset_parameters(noise=-1)


@pytest.mark.parametrize("mask", MASKS)
def test_mixing_stays_in_float32(mask):
    torch.manual_seed(0)
    layer = InterleavedHeadAttention(8, 2, 3, mask=mask, batch_first=True, init="uniform")
    masters = [p.detach().clone() for p in layer.mixing.parameters()]
    wanted = layer.double()(torch.ones(1, 5, 8, dtype=DOUBLE).cumsum(1) / 5)[0]
    layer = layer.float()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out, _ = layer(torch.ones(1, 5, 8).cumsum(1) / 5, need_weights=False)
    assert out.dtype == torch.bfloat16
    assert close(out, wanted, 0.05)
    out.float().square().sum().backward()
    assert all(p.grad.dtype == torch.float32 and (p.grad != 0).any() for p in layer.mixing.parameters())
    for low in (layer.to(torch.bfloat16), layer.half(), InterleavedHeadAttention(8, 2, 3, dtype=torch.bfloat16)):
        assert all(p.dtype == torch.float32 for p in low.mixing.parameters())
        assert low.q_proj.weight.dtype != torch.float32
    assert all(torch.equal(p, master) for p, master in zip(layer.mixing.parameters(), masters, strict=True))
    assert layer(torch.ones(1, 5, 8, dtype=torch.float16))[0].dtype == torch.float16


def test_the_optimisers_groups_part_mixing_from_projections():
    model = nn.Sequential(nn.Linear(6, 6), InterleavedHeadAttention(6, 2, 3))
    others, mixing = parameter_groups(model, weight_decay=0.3, mixing_lr=0.01)
    assert others["weight_decay"] == 0.3
    assert (mixing["weight_decay"], mixing["lr"]) == (0.0, 0.01)
    assert {id(p) for p in mixing["params"]} == {id(p) for name, p in model.named_parameters() if "mixing" in name}
    assert {id(p) for g in (others, mixing) for p in g["params"]} == {id(p) for p in model.parameters()}
    torch.optim.AdamW([others, mixing], lr=0.1)
    assert "lr" not in parameter_groups(model)[1]


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
