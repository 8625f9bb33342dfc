"""Generation of Hugging Face models with interleaved heads: with their caches it is generation without."""


import pytest
import torch
from transformers import StaticCache

from tests.hugging_face_models import (
    ALL,
    CAUSAL,
    MASKS,
    PADDINGS,
    interleaved,
    logits,
    mixings,
    words,
)
from tests.torch_reference import close


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
