"""The conformance kit on layers that are not its own: of other libraries, with odd buffers, few tokens, or no output."""

import signal

import pytest
import torch
from torch import nn

from examples import audit_others
from iha_theory.conformance import KEYS, Adapter, audit
from iha_theory.torch_layer import InterleavedHeadAttention


@pytest.mark.parametrize(("name", "differs"), [("torch_attention", ("dead rows",)), ("llama_attention", ())])
def test_attention_of_other_libraries_reads_as_multi_head_attention(name, differs):
    report = getattr(audit_others, name)()
    # In inference torch's layer gives NaN for a sequence that is all padding, when its batch comes first.
    assert report.differs == differs, report.summary()
    found = {row.key: row.status for row in report.findings}
    assert {found[key] for key in ("repeated tokens", "causality", "algorithm 1", "start", "parameters")} == {"conforms"}


def test_another_layer_that_is_not_what_it_says_is_told():
    report = audit(nn.MultiheadAttention(32, 4, batch_first=True), Adapter(white_box=False, mask="token"))
    assert report.differs == ("repeated tokens", "causality", "dead rows")
    assert "affine" in report.findings[KEYS.index("repeated tokens")].found


def test_a_module_with_its_tokens_first_is_called_so():
    report = audit(nn.MultiheadAttention(32, 4), Adapter(white_box=False, claims="mha"))
    assert report.conforms, report.summary()


class Phased(nn.Module):
    """Right, with complex rotary phases in a buffer."""

    def __init__(self):
        super().__init__()
        self.inner = InterleavedHeadAttention(8, 2, 2, rope="token", mask="token", batch_first=True)
        self.register_buffer("phase", torch.polar(torch.ones(4), torch.arange(4.0)))

    def forward(self, x):
        y, phase = self.inner(x, need_weights=False)[0], self.get_buffer("phase")
        return y * phase.abs().mean().to(y.dtype) * (phase.imag.abs().sum() > 0).to(y.dtype)


def test_complex_buffers_stay_complex():
    report = audit(Phased(), Adapter(features=8, rope="token", mask="token", white_box=False, padding=False))
    assert report.conforms, report.summary()


class Torn(InterleavedHeadAttention):
    """Not a number in float16 for some inputs only."""

    def forward(self, query, *others, **options):
        y, weights = super().forward(query, *others, **options)
        broken = y.dtype == torch.float16 and query[0, 0, 2] > 1
        return y * (torch.nan if broken else 1.0), weights


def test_one_bad_number_in_half_precision_is_enough():
    report = audit(Torn(8, 2, 2, batch_first=True))
    assert report.differs == ("dtypes",)
    # One draw of four, and all of its numbers.
    assert report.findings[KEYS.index("dtypes")].found == "float16: 112 entries are not finite"


class Mixed(nn.MultiheadAttention):
    """What people make of torch's layer."""

    def forward(self, query, key, value, **options):  # pyright: ignore[reportIncompatibleMethodOverride]
        y, weights = super().forward(query.tanh(), key, value, **options)
        return 2 * y, weights


def test_a_subclass_of_torchs_attention_is_not_taken_for_it():
    report = audit(Mixed(8, 1, batch_first=True))
    assert report.findings[KEYS.index("algorithm 1")].status == "not applicable"
    assert report.summary().endswith("The weights are not named: whether it is IHA was not judged")


def test_the_alarm_of_others_goes_on():
    before = signal.setitimer(signal.ITIMER_REAL, 1000, 7)
    try:
        audit(InterleavedHeadAttention(4, 1, 1))
        left, interval = signal.getitimer(signal.ITIMER_REAL)
    finally:
        signal.setitimer(signal.ITIMER_REAL, *before)
    assert 0 < left < 1000
    assert interval == 7


def test_many_heads_have_more_operators_than_a_short_sequence_shows():
    report = audit(InterleavedHeadAttention(64, 64, 2, attention="linear"))
    assert report.conforms, report.summary()


def test_a_layer_that_cannot_be_copied_is_refused():
    layer = InterleavedHeadAttention(8, 2, 2)
    layer.register_buffer("last", layer.q_proj.weight * 2, persistent=False)
    with pytest.raises(ValueError, match="Interleaved.* cannot be copied to the CPU"):
        audit(layer)


def test_a_layer_of_few_tokens_says_so():
    class Eight(InterleavedHeadAttention):
        def forward(self, query, *others, **options):
            if query.shape[1] > 8:
                raise RuntimeError("no more than 8 tokens")
            return super().forward(query, *others, **options)

    layer, options = Eight(8, 2, 2, mask="token", batch_first=True), {"white_box": False, "mask": "token"}
    report = audit(layer, Adapter(**options))
    assert "say Adapter(tokens=T)" in report.findings[KEYS.index("causality")].found
    assert audit(layer, Adapter(**options, tokens=8)).conforms


def exits(x):
    raise SystemExit(3)


def unprintable(x):
    raise RuntimeError("\ud800 \x1b[31m two\nlines")


@pytest.mark.parametrize(("layer", "found"), [
    (exits, "stopped Python with exit code 3"), (unprintable, "raised RuntimeError: ? ?[31m two lines"),
    (lambda x: x + 1j, "returned complex128, wanted floating-point numbers"),
    (lambda x: x.round().long(), "returned int64, wanted floating-point numbers"),
    (lambda x: {"out": x}, "returned a dict, wanted a tensor"),
])
def test_what_a_layer_does_instead_of_an_output_is_a_finding(layer, found):
    report = audit(layer, Adapter(features=4, white_box=False))
    assert report.differs == ("runs",)
    assert report.findings[0].found == found
    report.to_html().encode()
