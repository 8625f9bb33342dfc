"""Models of Hugging Face transformers with interleaved heads: made from a configuration, held to the numpy formula."""

import copy
import os
from typing import Any

import numpy as np
import pytest

os.environ["HF_HUB_OFFLINE"] = "1"
transformers = pytest.importorskip("transformers", reason="needs the extra hugging-face")

import torch  # noqa: E402
from safetensors.torch import load_file  # noqa: E402
from torch import nn  # noqa: E402
from transformers import StaticCache  # noqa: E402

from iha_theory import IHA, forward, softmax  # noqa: E402
from iha_theory.torch_hugging_face import NAME, HeadMixing, interleave_heads  # noqa: E402
from iha_theory.torch_init import parameter_groups  # noqa: E402
from tests.torch_reference import DOUBLE, close, mask_of  # noqa: E402

transformers.logging.set_verbosity_error()

WORDS, WINDOW = 17, 3
_LLAMA = {"vocab_size": WORDS, "hidden_size": 24, "intermediate_size": 16, "num_hidden_layers": 2,
          "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "initializer_range": 0.4,
          "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
_GPT2 = {"vocab_size": WORDS, "n_embd": 21, "n_layer": 2, "n_head": 3, "n_positions": 64, "initializer_range": 0.4,
         "scale_attn_by_inverse_layer_idx": True, "bos_token_id": 0, "eos_token_id": None, "pad_token_id": 0}
_BERT = {"vocab_size": WORDS, "hidden_size": 24, "intermediate_size": 16, "num_hidden_layers": 2,
         "num_attention_heads": 3, "initializer_range": 0.4}
#: Grouped heads and rotary positions; neither, and a scale of each layer's own; a sliding window.
KINDS = {"llama": (transformers.LlamaForCausalLM, transformers.LlamaConfig, _LLAMA),
         "gpt2": (transformers.GPT2LMHeadModel, transformers.GPT2Config, _GPT2),
         "mistral": (transformers.MistralForCausalLM, transformers.MistralConfig, {**_LLAMA, "sliding_window": WINDOW}),
         "bert": (transformers.BertModel, transformers.BertConfig, _BERT),
         "crossing": (transformers.GPT2LMHeadModel, transformers.GPT2Config, {**_GPT2, "add_cross_attention": True}),
         "softcap": (transformers.Gemma2ForCausalLM, transformers.Gemma2Config, {**_LLAMA, "head_dim": 6}),
         "elsewhere": (transformers.GPTNeoForCausalLM, transformers.GPTNeoConfig,
                       {"vocab_size": WORDS, "hidden_size": 24, "num_layers": 1, "num_heads": 4,
                        "attention_types": [[["global"], 1]]})}
CAUSAL = ("llama", "gpt2", "mistral")
MASKS = ("token", "flat")
#: 1 where a token is real.
ALL = torch.ones(2, 7, dtype=torch.long)
LEFT = torch.tensor([[1] * 7, [0, 0, 1, 1, 1, 1, 1]])
PADDINGS = {"none": None, "left": LEFT, "right": LEFT.flip(1)}


def model_of(kind, **changes):
    torch.manual_seed(0)
    model, config, sizes = KINDS[kind]
    return model(config(**{**sizes, **changes})).double().eval()


def mixings(model):
    return [m for m in model.modules() if isinstance(m, HeadMixing)]


def randomise(model, seed=1):
    generator = torch.Generator().manual_seed(seed)
    for mixing in mixings(model):
        for parameter in mixing.parameters():
            nn.init.normal_(parameter, generator=generator)
    return model


def interleaved(kind, mask, pseudo=3, **changes):
    """With random mixing."""
    model = model_of(kind, **changes)
    interleave_heads(model, pseudo, mask=mask)
    return randomise(model)


def words(batch=2, length=7):
    return torch.randint(1, WORDS, (batch, length), generator=torch.Generator().manual_seed(2))


def positions_of(padding):
    return (padding.cumsum(1) - 1).clamp(min=0)


@torch.no_grad()
def logits(model, x, padding=None, **call):
    if padding is not None:
        call.update(attention_mask=padding, position_ids=positions_of(padding))
    return model(x, use_cache=False, **call)[0]


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_at_the_mha_initialisation_logits_are_equal(kind, mask, padding):
    model, x, real = model_of(kind), words(), PADDINGS[padding]
    seen = (ALL if real is None else real).bool()
    wanted = logits(model, x, real)
    names = interleave_heads(model, 4 if kind == "gpt2" else None, mask=mask)
    got = logits(model, x, real)
    assert len(names) == len(mixings(model)) == 2
    assert got.isfinite().all()
    assert close(got[seen], wanted[seen], 1e-10)
    assert not close(logits(randomise(model), x, real)[seen], wanted[seen], 1e-3)


def rotated(t, cosine, sine):
    """(head, pseudo, token, feature): features i and i + d / 2 of token n turned, after mixing, alike for all pseudo."""
    first, second = np.split(t, 2, -1)
    return t * cosine + np.concatenate((-second, first), -1) * sine


def by_hand(model, module, x, real, mask):
    """(token, model): what an attention module makes of one sequence (token, model), by the numpy formula.

    Shared kv heads are written out: base head g m stands for kv head m, the others are left out by alpha.
    """
    heads, kv_heads = module.mixing.heads, module.mixing.kv_heads
    group = heads // kv_heads
    alpha_q, alpha_k, alpha_v, r = (getattr(module.mixing, name).detach().numpy()
                                    for name in ("alpha_q", "alpha_k", "alpha_v", "collapse"))
    if hasattr(module, "c_attn"):
        # Biases through a feature that is always 1.
        weight = torch.cat((module.c_attn.weight, module.c_attn.bias[None])).T
        parts = [part.detach().numpy() for part in weight.chunk(3)]
        last, bias = module.c_proj.weight.detach().numpy(), module.c_proj.bias.detach().numpy()
        x = np.concatenate((x, np.ones((len(x), 1))), 1)
    else:
        parts = [p.weight.detach().numpy() for p in (module.q_proj, module.k_proj, module.v_proj)]
        last, bias = module.o_proj.weight.detach().numpy().T, 0.0
    w_q, w_k, w_v = (part.reshape(-1, module.head_dim, x.shape[1]).swapaxes(1, 2) for part in parts)
    written = [np.zeros((heads, heads, alpha_k.shape[2])) for _ in range(2)]
    for out, alpha in zip(written, (alpha_k, alpha_v), strict=True):
        out[::group] = alpha.repeat(group, 1)
    weights = IHA(w_q, w_k.repeat(group, 0), w_v.repeat(group, 0), alpha_q, written[0], written[1], r)
    window = WINDOW if isinstance(model, transformers.MistralForCausalLM) else None
    attend = softmax(module.scaling, mask=mask_of(mask, window, real))

    def operator(q, k, v):
        if hasattr(model, "transformer"):
            return attend(q, k, v)
        token = torch.from_numpy(np.maximum(real.cumsum() - 1, 0))[None]
        cosine, sine = (t[0].numpy() for t in model.model.rotary_emb(torch.zeros(1, dtype=DOUBLE), token))
        return attend(rotated(q, cosine, sine), rotated(k, cosine, sine), v)

    return forward(weights, x, operator) @ last + bias


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_a_layer_with_random_mixing_is_the_formula(kind, mask, padding):
    model, x, real = interleaved(kind, mask), words(), PADDINGS[padding]
    seen = (ALL if real is None else real).bool()
    compared = 0

    def compare(module, positional, named, output):
        nonlocal compared
        given = named["hidden_states"] if "hidden_states" in named else positional[0]
        for row in range(2):
            wanted = by_hand(model, module, given[row].numpy(), seen[row].numpy(), mask)
            assert close(output[0][row][seen[row]], wanted[seen[row].numpy()])
            compared += 1

    for module in model.modules():
        if hasattr(module, "mixing"):
            module.register_forward_hook(compare, with_kwargs=True)
    logits(model, x, real)
    assert compared == 4


@pytest.mark.parametrize("padding", PADDINGS)
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_a_later_word_changes_nothing_before_it(kind, mask, padding):
    model, x, real = interleaved(kind, mask), words(), PADDINGS[padding]
    changed = x.clone()
    changed[:, 3] = changed[:, 3] % (WORDS - 1) + 1
    before, after = logits(model, x, real), logits(model, changed, real)
    assert torch.equal(before[:, :3], after[:, :3])
    assert not close(after[:, 4], before[:, 4], 1e-3)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_padding_leaves_the_real_tokens_as_they_are(kind, mask):
    model, x = interleaved(kind, mask), words()
    wanted = logits(model, x[1:, 2:])
    # The models norm and turn in float32.
    assert close(logits(model, x, LEFT)[1:, 2:], wanted, 1e-5)
    shifted = torch.cat((x[:, 2:], x[:, :2]), 1)
    assert close(logits(model, shifted, LEFT.flip(1))[1:, :5], wanted, 1e-5)


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_sequences_that_are_packed_into_one_row_do_not_see_one_another(kind, mask):
    model, x = interleaved(kind, mask), words(1)
    packed = logits(model, x, position_ids=torch.tensor([[0, 1, 2, 0, 1, 2, 3]]))
    for part in (slice(3), slice(3, 7)):
        assert close(packed[:, part], logits(model, x[:, part]), 1e-5)
    if kind != "mistral":  # its window always comes as a mask
        with pytest.raises(ValueError, match="cu_seq_lens_q: got sequences side by side without a mask"):
            logits(model, x, cu_seq_lens_q=torch.tensor([0, 3, 7]))


@pytest.mark.parametrize("padding", ["none", "left"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_generation_with_the_cache_is_generation_without(kind, mask, padding):
    model, x = interleaved(kind, mask), words()
    real = ALL if PADDINGS[padding] is None else PADDINGS[padding]
    runs = [model.generate(x, attention_mask=real, max_new_tokens=6, do_sample=False, use_cache=cached, num_beams=beams,
                           return_dict_in_generate=True, output_logits=True)
            for beams in (1, 2) for cached in (True, False)]
    for cached, whole in (runs[:2], runs[2:]):
        assert cached.sequences.shape == (2, 13)
        assert torch.equal(cached.sequences, whole.sequences)
        for got, wanted in zip(cached.logits, whole.logits, strict=True):
            assert close(got, wanted, 1e-5)
    assert runs[0].past_key_values is not None


@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.parametrize("kind", CAUSAL)
def test_a_prompt_in_two_pieces_is_the_prompt_as_a_whole(kind, mask):
    model, x = interleaved(kind, mask), words()
    with torch.no_grad():
        first = model(x[:, :4], use_cache=True)
        second = model(x[:, 4:], cache=first.past_key_values, use_cache=True)
    assert close(torch.cat((first.logits, second.logits), 1), logits(model, x), 1e-5)
    # What is cached are base heads: 1/P of the pseudo-heads.
    assert second.past_key_values.layers[0].keys.shape[1] == mixings(model)[0].kv_heads


def test_a_static_cache_serves_the_token_mask_and_is_refused_under_the_flat_one():
    x = words()
    for mask in MASKS:
        model = interleaved("llama", mask)
        cache = StaticCache(config=model.config, max_cache_len=16)
        with torch.no_grad():
            first = model(x[:, :4], cache=cache, use_cache=True)
            assert close(first.logits, logits(model, x)[:, :4], 1e-5)
            if mask == "token":
                second = model(x[:, 4:], cache=cache, use_cache=True)
                assert close(second.logits, logits(model, x)[:, 4:], 1e-5)
            else:
                with pytest.raises(ValueError, match="as with a static cache; mask='flat' wants"):
                    model(x[:, 4:], cache=cache, use_cache=True)


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
    fresh = transformers.LlamaForCausalLM(transformers.LlamaConfig(**_LLAMA)).to(torch.bfloat16)
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
