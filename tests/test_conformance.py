"""The conformance kit's interface: findings, reports, adapters and what it refuses. What it finds: test_gallery."""

import json
import re
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from iha_theory import conformance
from iha_theory.conformance import KEYS, PROPERTIES, Adapter, audit, rows
from iha_theory.conformance.formula import Formula, applied, variants
from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import MASKS, by_formula, close, random_weights


@pytest.mark.parametrize("row", list(conformance.rows(InterleavedHeadAttention(12, 3, 2, mask="flat"))),
                         ids=lambda row: row.key)
def test_the_five_lines_that_add_the_kit_to_a_project(row):
    assert row.conforms, str(row)


def test_the_findings_stand_in_the_order_of_the_properties_and_are_evidence():
    found = list(rows(InterleavedHeadAttention(8, 2, 2)))
    assert [row.key for row in found] == list(KEYS)
    for row in found:
        assert row.status in ("conforms", "differs", "not applicable")
        assert row.theorem == "conformance"
        assert row.says
        assert row.found
        assert row.meaning


def test_the_layer_is_left_as_it_was():
    torch.set_num_threads(2)
    layer = InterleavedHeadAttention(8, 2, 2, mask="token").train()
    before = {name: t.clone() for name, t in layer.state_dict().items()}
    state = torch.get_rng_state()
    try:
        audit(layer)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(1)
    assert layer.training
    assert all(torch.equal(t, before[name]) for name, t in layer.state_dict().items())
    assert all(p.grad is None and p.dtype == torch.float32 for p in layer.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_the_same_seed_gives_the_same_report():
    first, second, third = (audit(InterleavedHeadAttention(8, 2, 2, init="uniform").requires_grad_(), seed=seed)
                            for seed in (3, 3, 4))
    witness = [report.findings[KEYS.index("repeated tokens")].witness for report in (first, second, third)]
    assert witness[0] == witness[1] != witness[2]


class Doubled(nn.Module):
    """Wrong in one row only: a parameter that the formula does not have, read with no effect."""

    def __init__(self):
        super().__init__()
        self.layer = InterleavedHeadAttention(8, 2, 2)
        self.more = nn.Parameter(torch.zeros(5))

    def forward(self, x):
        return self.layer(x.transpose(0, 1), need_weights=False)[0].transpose(0, 1) + 0 * self.more.sum()


DOUBLED = Adapter(features=8, q="layer.q_proj", k="layer.k_proj", v="layer.v_proj", out="layer.out_proj", heads=2,
                  pseudo=2, alpha_q="layer.mixing.alpha_q", alpha_k="layer.mixing.alpha_k", r="out head pseudo",
                  alpha_v="layer.mixing.alpha_v", collapse="layer.mixing.collapse")


def test_a_report_names_what_differs_as_text_markdown_json_and_a_page():
    report = audit(Doubled(), DOUBLED)
    assert report.differs == ("parameters",)
    assert not report.conforms
    text = "\n".join(report.text())
    assert "parameters       DIFFERS   325 against Q + mixing = 288 + 32: +5" in text
    assert text.endswith("Doubled: 12 conform, 1 differ: parameters; 5 not applicable")
    lines = report.markdown().splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert len(table) == 2 + len(KEYS)
    assert {line.count("|") - line.count("\\|") for line in table} == {5}
    assert sum("**differs**" in line for line in table) == 1
    plain = json.loads(report.to_json())
    assert plain["differs"] == ["parameters"]
    assert [row["status"] for row in plain["findings"]].count("differs") == 1
    page = report.to_html()
    assert page.count("<tr class=") == len(KEYS)
    assert page.count('<tr class="differs">') == 1
    assert "<script" not in page


def test_a_page_escapes_what_comes_from_the_layer():
    def layer(x):
        raise RuntimeError("<script>alert(1)</script> | pipe")

    report = audit(layer, Adapter(features=4, white_box=False))
    assert report.differs == ("runs",)
    assert "<script>" not in report.to_html()
    assert "&lt;script&gt;" in report.to_html()
    assert "\\| pipe" in report.markdown()
    assert [row.status for row in report.findings[1:]] == ["not applicable"] * (len(KEYS) - 1)


def test_a_layer_that_hangs_is_stopped_even_if_it_catches_every_exception():
    def layer(x):
        try:
            time.sleep(60)
        except Exception:
            return x
        return x

    started = time.monotonic()
    report = audit(layer, Adapter(features=4, white_box=False), time_limit=0.2)
    assert report.differs == ("runs",)
    assert "took longer than 0.2 s" in report.findings[0].found
    assert time.monotonic() - started < 30


def test_the_kits_formula_is_algorithm_1():
    for mask in MASKS:
        weights, x = random_weights(3, 3, 2, 7, 5, 4), np.random.default_rng(1).standard_normal((5, 7))
        layer = InterleavedHeadAttention.from_weights(weights, mask=mask, dtype=torch.float64)
        adapter = Adapter(out=None, alpha_q="mixing.alpha_q", alpha_k="mixing.alpha_k", alpha_v="mixing.alpha_v",
                          collapse="mixing.collapse", r="out head pseudo")
        named = adapter.read(layer).to(torch.float64)
        found = Formula(mask=mask)(named, torch.from_numpy(x)[None])[0]
        assert close(found, by_formula(weights, x, mask=mask))


def test_every_known_variant_is_another_function():
    weights = random_weights(3, 3, 2, 7, 6, 4)
    layer = InterleavedHeadAttention.from_weights(weights, mask="flat", rope="token", dtype=torch.float64)
    adapter = conformance.Adapter(out=None, alpha_q="mixing.alpha_q", alpha_k="mixing.alpha_k",
                                  alpha_v="mixing.alpha_v", collapse="mixing.collapse", r="out head pseudo")
    named, x = adapter.read(layer).to(torch.float64), torch.randn(2, 5, 7, dtype=torch.float64)
    q_bias, v_bias = torch.randn(3, 6, dtype=torch.float64), torch.randn(3, 4, dtype=torch.float64)
    named = named._replace(q_bias=q_bias, k_bias=q_bias.flip(0), v_bias=v_bias)
    formula = Formula(mask="flat", rope="token")
    outputs = [formula(named, x), *(applied(formula, each)(named, x) for each in variants(formula, named))]
    says = ["Algorithm 1", *(name for name, _ in variants(formula, named))]
    assert len(set(says)) == len(says)
    for i, first in enumerate(outputs):
        for j, second in enumerate(outputs[:i]):
            assert not close(first, second, 1e-4), (says[i], says[j])


@pytest.mark.parametrize(("options", "message"), [
    ({"q": "wq"}, "q='wq', but Doubled has no attribute 'wq'"),
    ({"heads": 3}, r"q has shape \(8, 8\), which does not read as .* with \{'head': 3\}"),
    ({"pseudo": 3}, r"collapse|alpha_q has shape"),
    ({"r": "out (head pseudo)"}, r"collapse has shape \(2, 2, 2\), which does not read as"),
    ({"q": lambda layer: layer.nothing}, "q: AttributeError: .* has no attribute 'nothing'"),
    ({"heads": "layer"}, "heads='layer' is Interleaved"),
    ({"weights": lambda layer: (1, 2)}, "the weights are a tuple, wanted iha_theory.conformance.Weights"),
    ({"output": "feature model", "out": lambda layer: torch.zeros(4, 8)}, r"out has shape \(8, 4\).*wanted 8 features"),
    ({"out": "layer"}, "out is a InterleavedHeadAttention, wanted a tensor or an nn.Linear"),
])
def test_an_adapter_that_does_not_fit_is_refused(options, message):
    from dataclasses import replace

    with pytest.raises(ValueError, match=message):
        audit(Doubled(), replace(DOUBLED, **options))


@pytest.mark.parametrize(("options", "message"), [
    ({"claims": "gqa"}, "claims='gqa', wanted one of"), ({"mask": "causal"}, "mask='causal'"),
    ({"features": "32"}, "features='32', wanted a whole number"), ({"scale": "1"}, "scale='1', wanted a number"),
    ({"heads": 2.5}, "heads=2.5, wanted a whole number or"), ({"q": 5}, "q=5, wanted the name"),
    ({"decode": 3}, "decode is a int, wanted a function"), ({"window": 3, "mask": "none"}, "a window reaches back"),
    ({"window": 0}, "window=0, wanted a whole number of at least 1"), ({"alpha_q": None}, "name all of alpha_q"),
])
def test_an_adapter_with_impossible_facts_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        Adapter(**options)


@pytest.mark.parametrize(("layer", "options", "message"), [
    (3, {}, "got a int, wanted a module or a callable"),
    (nn.Linear(3, 3), {}, "the number of features of Linear is not in any of embed_dim"),
    (InterleavedHeadAttention(4, 2), {"time_limit": 0}, "time_limit=0, wanted a positive number"),
])
def test_what_is_no_layer_is_refused(layer, options, message):
    with pytest.raises(ValueError, match=message):
        audit(layer, **options)


PAGE = (Path(__file__).parent.parent / "docs" / "conformance.md").read_text()


def test_the_page_has_a_line_for_every_property():
    rows = [line for line in PAGE.splitlines() if line.startswith("| `")]
    assert [line.split("|")[1:3] for line in rows] == [[f" `{item.key}` ", f" {item.says} "] for item in PROPERTIES]


def test_the_code_on_the_page_runs():
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL):
        exec(block, {})  # noqa: S102
