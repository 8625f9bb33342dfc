"""The conformance kit on layers whose findings were written down before it was run: wrong ones and right ones."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from iha_theory import IHA, forward, rotary, softmax
from iha_theory.conformance import audit
from tests import confusion
from tests.gallery import FAULTS, RIGHT, Plain
from tests.gallery.plain import decoded
from tests.torch_reference import DOUBLE, by_formula, close, mask_of

#: The draws of right layers: a hundred shapes and seeds.
DRAWS = [(RIGHT[seed % len(RIGHT)], seed) for seed in range(100)]
BY_NAME = {fault.name: fault for fault in FAULTS}


def named(layer: Plain) -> IHA:
    """The layer's weights, with the axes of the formula."""
    def base(projection):
        return projection.weight.detach().numpy().reshape(layer.num_heads, -1, layer.embed_dim).transpose(0, 2, 1)

    collapse = layer.collapse.detach().numpy().reshape(layer.num_heads, layer.num_heads, -1)
    return IHA(base(layer.q_proj), base(layer.k_proj), base(layer.v_proj), layer.alpha_q.detach().numpy(),
               layer.alpha_k.detach().numpy(), layer.alpha_v.detach().numpy(), collapse)


@pytest.mark.parametrize("mask", ["none", "token", "flat"])
@pytest.mark.parametrize("window", [None, 2])
@pytest.mark.parametrize(("attention", "rope"), [("softmax", None), ("linear", None), ("softmax", "token"),
                                                 ("softmax", "virtual")])
def test_the_layer_that_all_faults_depart_from_is_the_formula(mask, window, attention, rope):
    window = None if mask == "none" else window
    heads, pseudo, width = 2, 3, 4
    torch.manual_seed(0)
    layer = Plain(heads * width, heads, pseudo, mask=mask, window=window, attention=attention, rope=rope).to(DOUBLE)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape) if parameter.dim() > 1 else torch.zeros(parameter.shape))
        layer.out_proj.weight.copy_(torch.eye(heads * width))
    weights = named(layer)
    x, padding = torch.randn(7, heads * width, dtype=DOUBLE), torch.tensor([1, 0, 0, 1, 0, 0, 0]).bool()
    if rope is None:
        wanted = by_formula(weights, x.numpy(), attention, mask=mask, window=window, seen=~padding.numpy())
    else:
        def turn(position, pair):
            angle = position * 10000.0 ** (-2 * pair / width)
            return np.cos(angle), np.sin(angle)

        position = (lambda n, j: n) if rope == "token" else (lambda n, j: pseudo * n + j)
        wanted = forward(weights, x.numpy(), rotary(softmax(mask=mask_of(mask, window, ~padding.numpy())), position,
                                                    turn))
    assert close(layer(x[None], padding[None])[0], wanted, 1e-11)
    if mask != "none":
        assert close(decoded(layer, x[None]), layer(x[None]), 1e-11)


@pytest.mark.parametrize("shape", [(12, 2, 3), (24, 3, 4)], ids=str)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_exactly_the_rows_differ_that_were_written_down(fault, shape):
    layer, adapter = fault.make(*shape, 0)
    assert set(audit(layer, adapter, time_limit=fault.time_limit).differs) == fault.differs


@pytest.mark.parametrize(("right", "seed"), DRAWS, ids=lambda value: getattr(value, "name", str(value)))
def test_there_is_no_false_alarm(right, seed):
    layer, adapter = right.make(seed)
    assert set(audit(layer, adapter, seed=seed).differs) == right.differs


def test_every_row_is_seen_to_differ_by_a_fault():
    layer, adapter = RIGHT[0].make(0)
    keys = [finding.key for finding in audit(layer, adapter).findings]
    assert len(keys) == len(set(keys)) > 10
    assert set(keys) == set().union(*(fault.differs for fault in FAULTS))


def test_the_gallery_is_large_and_its_names_are_its_own():
    assert len(FAULTS) >= 24
    assert len(BY_NAME) == len(FAULTS)
    assert len({right.name for right in RIGHT}) == len(RIGHT)
    assert all(fault.says.endswith(".") and fault.differs for fault in FAULTS)
    assert all(right.note for right in RIGHT if right.differs)


def test_the_confusion_table_says_what_is_not_as_written_down(monkeypatch, capsys):
    found = BY_NAME["transposed alpha"]
    lost = replace(BY_NAME["padding ignored"], differs=frozenset({"right padding"}))
    right = next(right for right in RIGHT if right.name == "plain, no mask")
    monkeypatch.setattr(confusion, "RIGHT", (right,))
    monkeypatch.setattr(confusion, "FAULTS", (found,))
    assert confusion.main([]) == 0
    assert "faults found: 1 of 1; not found: none" in capsys.readouterr().out
    monkeypatch.setattr(confusion, "FAULTS", (found, lost))
    assert confusion.main(["--markdown"]) == 1
    printed = capsys.readouterr().out
    assert "not as written down: padding ignored" in printed
    row = next(line for line in printed.splitlines() if line.startswith("| padding ignored"))
    assert row.count(" x ") == 2  # left padding and dead rows
    assert row.count(" X ") == 1
    monkeypatch.setattr(confusion, "FAULTS", (found,))
    monkeypatch.setattr(confusion, "RIGHT", (replace(right, differs=frozenset({"causality"})),))
    assert confusion.main([]) == 1
    assert "that were not made: 3" in capsys.readouterr().out
