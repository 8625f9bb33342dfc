# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""The layer under torch's transformations: compile, export, functional calls, vmap, forward derivatives, checkpoints."""

import shutil
from typing import Any

import pytest
import torch
from torch.func import functional_call, grad, jvp, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

from iha_theory.torch_fused import fused_attention
from iha_theory.torch_layer import InterleavedHeadAttention
from iha_theory.torch_masks import Sight
from tests.torch_reference import DOUBLE, close, outputs_and_gradients

KINDS = [("none", None), ("flat", None), ("token", None), ("flat", 2), ("token", 2)]


def layer_of(mask, window=None, kernel: Any = "auto", dtype=DOUBLE):
    torch.manual_seed(0)
    return InterleavedHeadAttention(6, 2, 3, mask=mask, window=window, kernel=kernel, batch_first=True, init="uniform",
                                    dtype=dtype)


#: Torch's own: tracing makes an autograd function object; its private kernel has no batching rule; it compiles jvp.
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize(("mask", "window"), KINDS)
def test_the_whole_graph_compiles_forward_and_backward(mask, window):
    torch._dynamo.reset()
    layer, x = layer_of(mask, window), torch.randn(2, 5, 6, dtype=DOUBLE, requires_grad=True)
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[0, 4] = True
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    for call in ({}, {"key_padding_mask": padding}):
        wanted = outputs_and_gradients(layer, x, **call)
        got = outputs_and_gradients(compiled, x, **call)
        for a, b in zip(got, wanted, strict=True):
            assert close(a, b)


@pytest.mark.skipif(not any(map(shutil.which, ("g++", "clang++", "c++"))), reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("ignore")  # the code generator's, not ours
def test_the_code_generator_takes_it():
    torch._dynamo.reset()
    layer, x = layer_of("token", dtype=torch.float32).eval(), torch.randn(1, 3, 6)
    with torch.no_grad():
        compiled = torch.compile(layer, fullgraph=True)
        assert close(compiled(x, need_weights=False)[0], layer(x, need_weights=False)[0], 1e-5)


@pytest.mark.parametrize(("mask", "window"), KINDS)
def test_it_exports(mask, window):
    layer, x = layer_of(mask, window), torch.randn(2, 5, 6, dtype=DOUBLE)
    exported = torch.export.export(layer, (x,), {"need_weights": False}).module()
    y = torch.randn(2, 5, 6, dtype=DOUBLE)
    assert close(exported(y, need_weights=False)[0], layer(y, need_weights=False)[0])


@pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning")
@pytest.mark.parametrize("kernel", ["auto", "chunked"])
@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("mask", "window"), KINDS)
def test_gradients_of_each_sample_under_vmap(mask, window, padded, kernel):
    layer = layer_of(mask, window, kernel)
    parameters, x = dict(layer.named_parameters()), torch.randn(3, 4, 5, 6, dtype=DOUBLE)
    padding = torch.zeros(3, 4, 5, dtype=torch.bool)
    padding[1, 2, 3:] = padding[2, 0, 0] = True
    if not padded:
        padding = None

    def loss(parameters, x, padding):
        call = {"need_weights": False, "key_padding_mask": padding}
        return functional_call(layer, parameters, (x,), call)[0].square().sum()

    got = vmap(grad(loss), in_dims=(None, 0, 0 if padded else None))(parameters, x, padding)
    for i in range(3):
        wanted = torch.autograd.grad(loss(parameters, x[i], padding[i] if padded else None), list(parameters.values()))
        for a, b in zip(got.values(), wanted, strict=True):
            assert (a[i] - b).abs().max() <= 1e-12 * max(float(t.abs().max()) for t in wanted)


def test_vmap_over_any_axis_of_some_arguments():
    torch.manual_seed(0)
    q, k, v = (torch.randn(2, 4, 2, 6, 3, dtype=DOUBLE) for _ in range(3))  # 4 samples, batch 2
    sight = Sight(3, 3, 2, 2, (1, 1))
    got = vmap(lambda q, k: fused_attention(q, k, v[:, 0], sight, 0.7), in_dims=(1, 1))(q, k)
    for i in range(4):
        assert close(got[i], fused_attention(q[:, i], k[:, i], v[:, 0], sight, 0.7))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("mask", "window"), KINDS)
def test_forward_derivatives_and_second_ones_through_the_public_kernel(mask, window):
    layer, x = layer_of(mask, window, "chunked"), torch.randn(1, 4, 6, dtype=DOUBLE)
    direction = torch.randn_like(x)
    with sdpa_kernel(SDPBackend.MATH):
        tangent = jvp(lambda x: layer(x, need_weights=False)[0], (x,), (direction,))[1]
        step = 1e-6
        ahead, behind = (layer(x + s * direction, need_weights=False)[0] for s in (step, -step))
        assert close(tangent, (ahead - behind) / (2 * step), 1e-7)
        inputs = x.clone().requires_grad_()
        assert torch.autograd.gradgradcheck(lambda x: layer(x, need_weights=False)[0], inputs, fast_mode=True)


def test_the_fused_kernel_refuses_a_second_derivative():
    layer, x = layer_of("token"), torch.randn(1, 4, 6, dtype=DOUBLE, requires_grad=True)
    first, = torch.autograd.grad(layer(x, need_weights=False)[0].square().sum(), x, create_graph=True)
    with pytest.raises(NotImplementedError, match="kernel='chunked'"):
        first.sum().backward()


@pytest.mark.parametrize(("mask", "window"), KINDS)
def test_checkpointing_changes_nothing(mask, window):
    layer, x = layer_of(mask, window), torch.randn(2, 5, 6, dtype=DOUBLE)
    wanted = outputs_and_gradients(layer, x)

    class Recomputed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = layer

        def forward(self, x, need_weights):
            return checkpoint(self.layer, x, need_weights=need_weights, use_reentrant=False)

    for a, b in zip(outputs_and_gradients(Recomputed(), x), wanted, strict=True):
        assert close(a, b)
