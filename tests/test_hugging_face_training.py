"""Hugging Face models with interleaved heads in training: steps, dropout, freezing, files, precision, compilation."""

import copy
from typing import Any

import pytest
import torch
import transformers
from safetensors.torch import load_file

from iha_theory.torch_hugging_face import interleave_heads
from iha_theory.torch_init import parameter_groups
from tests.hugging_face_models import (
    CAUSAL,
    LEFT,
    LLAMA,
    MASKS,
    interleaved,
    logits,
    mixings,
    model_of,
    words,
)
from tests.torch_reference import DOUBLE, close


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_a_step_of_training_moves_the_mixing(kind, mask):
    model, x = model_of(kind), words()
    interleave_heads(model, 3, mask=mask)
    model.train()
    groups = parameter_groups(model)
    assert len(groups[1]["params"]) == 4 * len(mixings(model))
    before = copy.deepcopy(mixings(model))
    optimiser = torch.optim.AdamW(groups, lr=0.01)
    for _ in range(2):
        optimiser.zero_grad()
        model(x, attention_mask=LEFT, labels=x).loss.backward()
        optimiser.step()
    for old, new in zip(before, mixings(model), strict=True):
        for name in ("alpha_q", "alpha_k", "alpha_v", "collapse"):
            assert not torch.equal(getattr(old, name), getattr(new, name)), name
        # The copies of a key have parted.
        assert not close(new.alpha_k[:, :, 0], new.alpha_k[:, :, 1], 1e-6)


def test_dropout_is_applied_in_training_alone():
    model, x = interleaved("llama", "token", attention_dropout=0.5), words()
    assert torch.equal(logits(model, x), logits(model, x))
    model.train()
    assert not close(logits(model, x), logits(model, x), 1e-3)
    # One token that sees itself alone, with R of one head: its weight is dropped, or doubled.
    block = interleaved("gpt2", "token", pseudo=1, attn_pdrop=0.5, resid_pdrop=0.0).transformer.h[0].attn
    block.mixing.collapse.data[:, 1:] = 0
    x = torch.randn(1, 1, 21, dtype=DOUBLE, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        bias, seen = block.c_proj.bias, set()
        one = block(x)[0] - bias
        assert not close(one, 0 * one, 1e-3)
        block.train()
        for _ in range(20):
            got = block(x)[0] - bias
            seen.add("dropped" if not got.abs().max() > 1e-12 else "doubled" if close(got, 2 * one) else "neither")
    assert seen == {"dropped", "doubled"}


@pytest.mark.parametrize("mask", MASKS)
def test_freezing_skips_what_r_ignores_and_changes_nothing(mask):
    model, x = interleaved("llama", mask), words()
    for mixing in mixings(model):
        mixing.collapse.data[:, :, 1] = 0
    wanted = [logits(model, x), logits(model, x, LEFT)]
    for mixing in mixings(model):
        mixing.freeze()
        assert mixing.pseudo_queries == 2
        assert not mixing.alpha_q.requires_grad
    assert close(logits(model, x), wanted[0])
    assert close(logits(model, x, LEFT)[LEFT.bool()], wanted[1][LEFT.bool()])
    if mask == "flat":
        with pytest.raises(ValueError, match="same_for_all_heads: got False with mask='flat'"):
            mixings(model)[0].freeze(same_for_all_heads=False)


def test_what_is_saved_can_be_loaded(tmp_path):
    model, x = interleaved("gpt2", "flat"), words()
    model.save_pretrained(tmp_path)
    other = model_of("gpt2")
    interleave_heads(other, 3, mask="flat")
    assert not close(logits(other, x), logits(model, x), 1e-3)
    # The head shares its weights with the embedding, which the file has once.
    missing, unexpected = other.load_state_dict(load_file(tmp_path / "model.safetensors"), strict=False)
    assert (missing, unexpected) == (["lm_head.weight"], [])
    assert torch.equal(logits(other, x), logits(model, x))
    assert torch.equal(logits(copy.deepcopy(model), x), logits(model, x))


def test_half_precision_keeps_float32_masters_and_checkpointing_gives_the_same_gradients():
    x = words()
    half = interleaved("llama", "token").to(torch.bfloat16)
    assert {p.dtype for mixing in mixings(half) for p in mixing.parameters()} == {torch.float64}
    torch.manual_seed(0)
    fresh: Any = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA))
    fresh.to(torch.bfloat16)
    interleave_heads(fresh, 3)
    assert {p.dtype for mixing in mixings(fresh) for p in mixing.parameters()} == {torch.float32}
    assert logits(fresh, x, LEFT).dtype == torch.bfloat16
    found = []
    for again in (False, True):
        model = interleaved("llama", "flat").train()
        if again:
            model.activation_checkpointing_enable()
        model(x, labels=x, use_cache=False).loss.backward()
        found.append([p.grad for mixing in mixings(model) for p in mixing.parameters()])
    for got, wanted in zip(*found, strict=True):
        assert wanted.any()
        assert close(got, wanted)


@pytest.mark.parametrize("mask", MASKS)
def test_it_compiles_as_one_graph(mask):
    model, x = interleaved("llama", mask), words()
    compiled = torch.compile(model, backend="eager", fullgraph=True)
    assert close(logits(compiled, x), logits(model, x))
    assert close(logits(compiled, x, LEFT)[LEFT.bool()], logits(model, x, LEFT)[LEFT.bool()])
