"""Masks, models and arguments that interleaved heads serve or refuse in Hugging Face models."""

from typing import Any

import pytest
import torch
import transformers
from torch import nn

from iha_theory.torch_hugging_face import NAME, HeadMixing, interleave_heads
from tests.hugging_face_models import (
    ALL,
    LEFT,
    MASKS,
    WORDS,
    interleaved,
    logits,
    mixings,
    model_of,
    randomise,
    words,
)
from tests.torch_reference import DOUBLE, close


def test_attention_that_is_not_causal_and_cross_attention():
    x, hidden = words(), torch.randn(2, 5, 21, dtype=DOUBLE, generator=torch.Generator().manual_seed(3))
    calls = {"bert": {"attention_mask": LEFT}, "crossing": {"encoder_hidden_states": hidden}}
    for kind, call in calls.items():
        model = model_of(kind)
        with torch.no_grad():
            wanted = model(x, **call)[0]
            with pytest.raises(ValueError, match="is not causal, so that mask='flat' has no order"):
                interleave_heads(model, 3, mask="flat")
            assert not mixings(model)
            interleave_heads(model, 3)
            seen = LEFT.bool() if kind == "bert" else ALL.bool()
            assert close(model(x, **call)[0][seen], wanted[seen], 1e-10)
            randomise(model)
            plain = model(x, **call)[0]
            changed = x.clone()
            changed[:, 6] = changed[:, 6] % (WORDS - 1) + 1
            moved = not close(model(changed, **call)[0][:, 2], plain[:, 2], 1e-3)
            assert moved == (kind == "bert")
            if kind == "crossing":
                assert not close(model(x, encoder_hidden_states=2 * hidden)[0], plain, 1e-3)


def test_a_mask_of_the_callers_own():
    x = words()
    ladder = torch.ones(7, 7, dtype=torch.bool).tril()[None, None]
    holes = ladder.clone()
    holes[..., 5, 2] = False
    later = ladder.clone()
    later[..., 1, 2] = True
    for mask in MASKS:
        model = interleaved("gpt2", mask)
        assert close(logits(model, x, attention_mask=ladder), logits(model, x))
        added = torch.zeros(1, 1, 7, 7, dtype=DOUBLE).masked_fill(~holes, torch.finfo(DOUBLE).min)
        got = logits(model, x, attention_mask=holes.expand(2, 3, 7, 7))
        assert close(got, logits(model, x, attention_mask=added))
        assert not close(got[:, 5], logits(model, x)[:, 5], 1e-3)
        if mask == "token":
            changed = x.clone()
            changed[:, 2] = changed[:, 2] % (WORDS - 1) + 1
            before, after = (logits(model, t, attention_mask=later) for t in (x, changed))
            assert torch.equal(before[:, 0], after[:, 0])
            assert not close(after[:, 1], before[:, 1], 1e-3)
        else:
            with pytest.raises(ValueError, match="in which a token sees later ones"):
                logits(model, x, attention_mask=later)


def test_a_model_that_makes_no_masks_and_is_not_causal():
    torch.manual_seed(0)
    model = transformers.ViTModel(transformers.ViTConfig(
        image_size=8, patch_size=4, hidden_size=24, num_hidden_layers=1, num_attention_heads=3, intermediate_size=16,
        initializer_range=0.4)).double().eval()
    x = torch.randn(1, 3, 8, 8, dtype=DOUBLE, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        wanted = model(x)[0]
        interleave_heads(model, 2)
        assert close(model(x)[0], wanted, 1e-10)
        assert not close(randomise(model)(x)[0], wanted, 1e-3)


def test_a_decoder_whose_configuration_is_not_causal_sees_both_ways():
    model, x = model_of("llama", is_causal=False), words()
    changed = x.clone()
    changed[:, 6] = changed[:, 6] % (WORDS - 1) + 1
    interleave_heads(model, 3)
    randomise(model)
    for real in (None, LEFT):
        assert not close(logits(model, changed, real)[:, 2], logits(model, x, real)[:, 2], 1e-3)


def test_the_flat_mask_is_refused_where_the_order_is_unknown(monkeypatch):
    mixing = HeadMixing(2, 2, 3, "flat")
    with pytest.raises(ValueError, match="got 'flat' where the model's attention is not causal, wanted 'token'"):
        mixing.sight(4, 4, None, False, DOUBLE)
    seen = torch.ones(1, 1, 1, 4, dtype=torch.bool)
    assert mixing.sight(1, 4, seen, True, DOUBLE).limits == (0, 1, 2)
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    with pytest.raises(ValueError, match="got 'flat' with 1 query tokens and a mask over 4 key tokens in compiled code"):
        mixing.sight(1, 4, seen, True, DOUBLE)


ZEROS: Any = "zeros"


def twice():
    interleave_heads(interleaved("llama", "token"))


REFUSED = {
    "another module": (lambda: interleave_heads(nn.Linear(2, 2)), "model: got Linear, wanted a transformers.Pre"),
    "no interface": (lambda: interleave_heads(model_of("elsewhere")), "GPTNeoForCausalLM, of which transformer.h.0.attn"),
    "no attention": (lambda: interleave_heads(transformers.ResNetModel(transformers.ResNetConfig(
        embedding_size=4, hidden_sizes=[4], depths=[1]))), "ResNetModel, in which no module"),
    "twice": (twice, r"model\.layers\.0\.self_attn: has a mixing already"),
    "no pseudo-heads": (lambda: interleave_heads(model_of("llama"), 0), "num_pseudo_heads: got 0, wanted a positive"),
    "mask": (lambda: interleave_heads(model_of("llama"), mask="none"), "mask: got 'none', wanted one of 'token', 'flat'"),
    "init": (lambda: interleave_heads(model_of("llama"), init=ZEROS), "init: got 'zeros'"),
    "softcap": (lambda: logits(interleaved("softcap", "token"), words()), "softcap: got one, wanted none"),
    "no mixing": (lambda: logits(model_of("llama", attn_implementation=NAME), words()),
                  "LlamaAttention: has no mixing; call interleave_heads"),
    "mask shape": (lambda: logits(interleaved("gpt2", "token"), words(), attention_mask=torch.ones(1, 1, 7, 6) > 0),
                   r"attention_mask: got shape \(1, 1, 7, 6\), wanted .* \(2, 3, 7, 7\)"),
    "mask dtype": (lambda: logits(interleaved("gpt2", "token"), words(), attention_mask=torch.ones(1, 1, 7, 7).int()),
                   "attention_mask: got dtype torch.int32, wanted bool"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_possible_is_refused(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=message):
        call()


def test_a_refusal_leaves_the_model_as_it_was():
    cases: tuple[tuple[str, dict[str, Any]], ...] = (("elsewhere", {}), ("llama", {"init": ZEROS}), ("llama", {}))
    for kind, call in cases:
        model = model_of(kind)
        if kind == "llama" and not call:
            # One more attention module, which has a configuration of its own that the model does not set.
            stranger: Any = nn.Linear(2, 2)
            stranger.is_causal, stranger.config = True, model_of("llama").config
            model.add_module("stranger", stranger)
        before = model.config._attn_implementation
        with pytest.raises(ValueError, match="got"):
            interleave_heads(model, 3, **call)
        assert model.config._attn_implementation == before != NAME
        assert not mixings(model)


def test_heads_that_the_mixing_does_not_have():
    model = interleaved("llama", "token")
    model.model.layers[1].self_attn.mixing = HeadMixing(4, 4, 3, "token", dtype=DOUBLE)
    with pytest.raises(ValueError, match=r"key: got shape \(2, 2, 7, 6\), wanted \(batch, 4 heads, token, feature\)"):
        logits(model, words())
