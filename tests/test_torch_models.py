"""Conversion of whole models: equal outputs, nothing half done, and no fused path around the mixing."""

import runpy
import warnings
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from iha_theory.torch_layer import InterleavedHeadAttention
from iha_theory.torch_mixing import Mixing
from iha_theory.torch_models import convert_model
from tests.torch_reference import DOUBLE, close

CAUSAL = nn.Transformer.generate_square_subsequent_mask(5, dtype=DOUBLE)
PADDING = torch.tensor([[False] * 5, [False, False, False, True, True]])
MASKS = {"none": {}, "padding": {"src_key_padding_mask": PADDING}, "causal": {"mask": CAUSAL, "is_causal": True},
         "both": {"mask": CAUSAL != 0, "src_key_padding_mask": PADDING}}


def encoder_of(dropout=0.0, norm_first=False):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout, batch_first=True, norm_first=norm_first, dtype=DOUBLE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that norm_first keeps it off its fused path
        encoder = nn.TransformerEncoder(layer, 2)
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, 0.0, 0.5)
    return encoder


def tokens():
    return torch.randn(2, 5, 8, dtype=DOUBLE, generator=torch.Generator().manual_seed(1))


def randomise_mixing(model):
    generator = torch.Generator().manual_seed(2)
    for module in model.modules():
        if isinstance(module, Mixing):
            for parameter in module.parameters():
                nn.init.normal_(parameter, generator=generator)


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")  # of the encoder before conversion
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("masks", MASKS)
@pytest.mark.parametrize("norm_first", [False, True])
def test_a_converted_encoder_gives_equal_outputs(norm_first, masks, training):
    encoder, x = encoder_of(norm_first=norm_first).train(training), tokens()
    with torch.no_grad():
        wanted = encoder(x, **MASKS[masks])
        names = convert_model(encoder, 3)
        got = encoder(x, **MASKS[masks])
    assert names == ("layers.0.self_attn", "layers.1.self_attn")
    assert not any(isinstance(m, nn.MultiheadAttention) for m in encoder.modules())
    if masks == "padding" and not norm_first and not training:
        # Its fused path gave zeros at padded tokens.
        got, wanted = got[~PADDING], wanted[~PADDING]
    assert close(got, wanted)


@pytest.mark.parametrize("mask", ["token", "flat"])
def test_a_causal_layer_gives_equal_outputs_to_causal_callers(mask):
    encoder, x = encoder_of().eval(), tokens()
    wanted = encoder(x, mask=CAUSAL)
    convert_model(encoder, 3, mask=mask)
    assert close(encoder(x, mask=CAUSAL), wanted)
    assert close(encoder(x, is_causal=True), wanted)


def by_hand(encoder, x, mask=None, src_key_padding_mask=None, is_causal=False):
    """The encoder's layers one after the other, by their formula."""
    for layer in encoder.layers:
        attended, _ = layer.self_attn(x, x, x, src_key_padding_mask, False, mask, is_causal=is_causal)
        x = layer.norm1(x + attended)
        x = layer.norm2(x + layer.linear2(layer.linear1(x).relu()))
    return x


@pytest.mark.parametrize("masks", MASKS)
def test_inference_does_not_bypass_the_mixing(masks):
    encoder, x = encoder_of(), tokens()
    convert_model(encoder, 3)
    plain = encoder(x, **MASKS[masks])
    randomise_mixing(encoder)
    wanted = by_hand(encoder, x, **MASKS[masks])
    assert not close(wanted, plain, 1e-3)
    encoder.eval()
    with torch.no_grad():
        assert close(encoder(x, **MASKS[masks]), wanted)
    with torch.inference_mode():
        assert close(encoder(x, **MASKS[masks]), wanted)


def test_a_whole_transformer_with_cross_attention():
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's, that batch_first=False keeps it off its fused path
        model = nn.Transformer(8, 2, 1, 1, 16, 0.0, dtype=DOUBLE)
    source, target = torch.randn(6, 2, 8, dtype=DOUBLE), torch.randn(5, 2, 8, dtype=DOUBLE)
    wanted = model(source, target, tgt_mask=CAUSAL, memory_key_padding_mask=torch.zeros(2, 6, dtype=DOUBLE))
    assert len(convert_model(model)) == 3
    got = model(source, target, tgt_mask=CAUSAL, memory_key_padding_mask=torch.zeros(2, 6, dtype=DOUBLE))
    assert close(got, wanted)


def test_a_layer_that_stands_twice_stays_one_and_frozen_weights_stay_frozen():
    shared = nn.MultiheadAttention(8, 2)
    shared.in_proj_weight.requires_grad_(False)
    shared.out_proj.bias.requires_grad_(False)
    model = nn.ModuleDict({"a": shared, "b": nn.ModuleList([shared])})
    assert convert_model(model, 2) == ("a", "b.0")
    layer = model["a"]
    assert layer is model["b"].get_submodule("0")
    assert isinstance(layer, InterleavedHeadAttention)
    frozen = {name for name, p in layer.named_parameters() if not p.requires_grad}
    assert frozen == {"q_proj.weight", "k_proj.weight", "v_proj.weight", "out_proj.bias"}


class Other(nn.MultiheadAttention):
    pass


def hooked():
    mha = nn.MultiheadAttention(8, 2)
    mha.register_forward_hook(lambda *_: None)
    return mha


REFUSED = {"add_zero_attn": (lambda: nn.MultiheadAttention(8, 2, add_zero_attn=True), "add_zero_attn=True"),
           "bias_k": (lambda: nn.MultiheadAttention(8, 2, add_bias_kv=True), "bias_k and bias_v"),
           "subclass": (lambda: Other(8, 2), "got Other, a subclass"), "hooks": (hooked, "it has forward hooks")}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_cannot_be_replaced_is_named_and_nothing_is_replaced(kind):
    make, reason = REFUSED[kind]
    model = nn.ModuleList([nn.MultiheadAttention(8, 2), make()])
    before = list(model)
    with pytest.raises(ValueError, match=f"nothing was replaced(.|\n)*1: .*{reason}"):
        convert_model(model, 2)
    assert all(a is b for a, b in zip(model, before, strict=True))


def test_shared_weights_and_a_bare_attention_are_refused():
    model = nn.ModuleList([nn.MultiheadAttention(8, 2), nn.Linear(8, 8)])
    model[1].weight = model[0].get_parameter("out_proj.weight")
    with pytest.raises(ValueError, match=r"0: out_proj\.weight is shared"):
        convert_model(model)
    with pytest.raises(ValueError, match="call InterleavedHeadAttention.from_mha"):
        convert_model(nn.MultiheadAttention(8, 2))


def test_a_state_dict_survives_safetensors(tmp_path):
    model, other, x = encoder_of(), encoder_of(), tokens()
    for each in (model, other):
        convert_model(each, 3)
    randomise_mixing(model)
    save_file(model.state_dict(), tmp_path / "model.safetensors")
    assert not close(other(x), model(x), 1e-3)
    other.load_state_dict(load_file(tmp_path / "model.safetensors"))
    assert torch.equal(other(x), model(x))


def test_the_example_takes_steps_and_prints_its_loss(capsys):
    example = runpy.run_path(str(Path(__file__).parent.parent / "examples" / "decoder.py"))
    symbols = example["batch_of"](2, torch.Generator().manual_seed(0))
    # The same batch again, so that nothing but the step can lower the loss.
    example["train"].__globals__["batch_of"] = lambda *_: symbols
    first, second = example["train"](2, report=1)
    assert 2.3 < second < first < 3.5
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[1:4] for line in printed] == [["0", "loss", f"{first:.4f}"], ["1", "loss", f"{second:.4f}"]]
    # A later symbol changes nothing before it.
    model, changed = example["Decoder"](), symbols.clone()
    changed[:, 7] = (changed[:, 7] + 1) % example["SYMBOLS"]
    before, after = model(symbols), model(changed)
    assert close(after[:, :7], before[:, :7], 1e-5)
    assert not close(after[:, 8:], before[:, 8:], 1e-5)
