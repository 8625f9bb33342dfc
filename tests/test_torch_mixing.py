# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""alpha and R as a module: freezing, their precision, their group in an optimiser."""

import copy

import pytest
import torch
from torch import nn

from iha_theory.torch_init import parameter_groups
from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import (
    DOUBLE,
    MASKS,
    close,
)


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
