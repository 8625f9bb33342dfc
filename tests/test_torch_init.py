# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""What each initialisation guarantees: multi-head attention, and pseudo-heads that can separate."""

import copy

import pytest
import torch

from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import (
    DOUBLE,
    MASKS,
    close,
)


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
