# pyright: reportOptionalMemberAccess=false, reportOptionalSubscript=false
"""Generation: decoding with the cache is the full pass."""

from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from iha_theory.flops import Layer, cache_entries
from iha_theory.torch_layer import InterleavedHeadAttention
from tests.torch_reference import DOUBLE, close

N = 11


def layer_of(mask, window=None, rope=None, kernel: Any = "auto", kv_heads=2):
    torch.manual_seed(0)
    return InterleavedHeadAttention(8, 4, 3, num_kv_heads=kv_heads, mask=mask, window=window, rope=rope, kernel=kernel,
                                    batch_first=True, init="uniform", dtype=DOUBLE)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(mask=st.sampled_from(("token", "flat")), window=st.none() | st.integers(1, N + 1),
       rope=st.sampled_from((None, "token", "virtual")), kernel=st.sampled_from(("auto", "chunked")),
       cuts=st.lists(st.integers(1, N), max_size=3).map(sorted), frozen=st.booleans(), spare=st.integers(0, 3),
       weights=st.booleans())
def test_decoding_in_any_pieces_is_the_full_pass(mask, window, rope, kernel, cuts, frozen, spare, weights):
    layer = layer_of(mask, window, rope, kernel)
    if frozen:
        with torch.no_grad():
            layer.mixing.collapse[:, :, 1] = 0
        layer.freeze_mixing()
    x = torch.randn(2, N, 8, dtype=DOUBLE)
    cache = layer.new_cache(2, N + spare)
    with torch.no_grad():
        wanted, token_weights = layer(x)
        bounds = [0, *sorted(set(cuts) - {0, N}), N]
        pieces = [layer(x[:, a:b], cache=cache, need_weights=weights)
                  for a, b in pairwise(bounds)]
    assert close(torch.cat([y for y, _ in pieces], 1), wanted)
    assert cache.tokens == N
    if weights:
        last = pieces[-1][1]
        assert close(last, token_weights[:, -last.shape[1] :, -last.shape[2] :])


@pytest.mark.parametrize("mask", ["token", "flat"])
@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize("rope", [None, "token", "virtual"])
def test_token_by_token(mask, window, rope):
    layer = layer_of(mask, window, rope)
    x = torch.randn(2, N, 8, dtype=DOUBLE)
    cache = layer.new_cache(2, N)
    with torch.no_grad():
        wanted, _ = layer(x)
        for n in range(N):
            y, _ = layer(x[:, n : n + 1], cache=cache, need_weights=False)
            assert close(y, wanted[:, n : n + 1])
    if window is not None:
        assert cache.k.shape[2] <= 2 * window * 3


@pytest.mark.parametrize("mask", ["token", "flat"])
@pytest.mark.parametrize("window", [None, 1, 4])
@pytest.mark.parametrize("kv_heads", [2, 4])
@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("batch_first", [False, True])
def test_steps_of_one_sequence_and_of_new_weights_after_a_reset(mask, window, kv_heads, frozen, batch_first):
    layer = layer_of(mask, window, kv_heads=kv_heads)
    layer.batch_first = batch_first
    cache = layer.new_cache(1, N)
    for seed in range(2):
        layer.reset_parameters("uniform", generator=torch.Generator().manual_seed(seed))
        if frozen:
            with torch.no_grad():
                layer.mixing.collapse[:, :, 1] = 0
            layer.freeze_mixing()
        x = torch.randn(1, N, 8, dtype=DOUBLE)
        x = x if batch_first else x.transpose(0, 1)
        axis = 1 if batch_first else 0
        with torch.no_grad():
            wanted, _ = layer(x)
            steps = [layer(token, cache=cache, need_weights=False)[0] for token in x.split(1, axis)]
        assert close(torch.cat(steps, axis), wanted)
        cache.reset()
        layer.unfreeze_mixing()


@pytest.mark.parametrize("mask", ["token", "flat"])
def test_steps_after_a_padded_prompt_still_do_not_see_the_pads(mask):
    layer = layer_of(mask, kv_heads=4)
    x, pads = torch.randn(1, N, 8, dtype=DOUBLE), torch.full((1, 2, 8), 1e3, dtype=DOUBLE)
    cache = layer.new_cache(1, N + 2)
    with torch.no_grad():
        wanted, _ = layer(x)
        layer(torch.cat((pads, x[:, :3]), 1), cache=cache,
              key_padding_mask=torch.tensor([[True, True, False, False, False]]))
        for n in range(3, N):
            y, _ = layer(x[:, n : n + 1], cache=cache, need_weights=False)
            assert close(y, wanted[:, n : n + 1])


@pytest.mark.parametrize("mask", ["token", "flat"])
@pytest.mark.parametrize("window", [None, 3])
def test_left_padded_sequences_decode_like_unpadded_ones(mask, window):
    layer = layer_of(mask, window, "token")
    x = torch.randn(1, N, 8, dtype=DOUBLE)
    pads = torch.full((1, 2, 8), 1e3, dtype=DOUBLE)
    padding = torch.tensor([[True, True, False, False, False]])
    cache = layer.new_cache(1, N + 2)
    with torch.no_grad():
        wanted, _ = layer(x)
        first, _ = layer(torch.cat((pads, x[:, :3]), 1), key_padding_mask=padding, cache=cache,
                         position_ids=torch.tensor([[0, 0, 0, 1, 2]]))
        assert close(first[:, 2:], wanted[:, :3])
        for n in range(3, N):
            y, _ = layer(x[:, n : n + 1], cache=cache, position_ids=torch.tensor([[n]]), need_weights=False)
            assert close(y, wanted[:, n : n + 1])
        cache.reset()
        again, _ = layer(x, cache=cache)
        assert close(again, wanted)


def test_padding_that_comes_later_is_remembered():
    layer = layer_of("flat")
    x = torch.randn(2, 5, 8, dtype=DOUBLE)
    padding = torch.zeros(2, 5, dtype=torch.bool)
    padding[0, 2] = True
    cache = layer.new_cache(2, 5)
    with torch.no_grad():
        wanted, _ = layer(x, key_padding_mask=padding)
        got = [layer(x[:, n : n + 1], key_padding_mask=padding[:, n : n + 1] if n == 2 else None, cache=cache)[0]
               for n in range(5)]
    assert close(torch.cat(got, 1), wanted)


def test_a_cache_that_is_reset_takes_the_weights_of_now():
    layer = layer_of("flat")
    x = torch.randn(2, 5, 8, dtype=DOUBLE)
    cache = layer.new_cache(2, 5)
    with torch.no_grad():
        layer(x, cache=cache)
        layer.reset_parameters("uniform")
        cache.reset()
        assert close(layer(x, cache=cache)[0], layer(x)[0])


def test_beams_are_reordered():
    layer = layer_of("token")
    x = torch.randn(2, 5, 8, dtype=DOUBLE)
    cache = layer.new_cache(2, 5)
    with torch.no_grad():
        layer(x[:, :4], cache=cache)
        cache.reorder(torch.tensor([1, 1]))
        y, _ = layer(x[:, 4:], cache=cache)
        beams = torch.cat((x[[1, 1], :4], x[:, 4:]), 1)
        assert close(y, layer(beams)[0][:, 4:])


@pytest.mark.parametrize("kv_heads", [1, 2, 4])
def test_memory_is_what_the_accounts_say(kv_heads):
    layer = layer_of("token", kv_heads=kv_heads)
    cache = layer.new_cache(3, N)
    # Keys and values are those of a layer with as many heads as there are kv heads.
    accounted = cache_entries(Layer("iha", model=8, heads=kv_heads, key=2, value=2, pseudo=3), mixed=True)
    assert cache.numbers_per_token == accounted
    assert cache.k.numel() + cache.v.numel() == 3 * N * accounted


def test_a_cache_that_does_not_fit_is_refused_and_stays_as_it_was():
    layer, x = layer_of("token"), torch.randn(2, 5, 8, dtype=DOUBLE)
    with torch.no_grad():
        cache = layer.new_cache(2, 7)
        layer(x, cache=cache)
        for wrong, match in ((x, r"5 tokens and 5 more do not fit"), (x[:1, :1], r"cache: got one for \(batch")):
            with pytest.raises(ValueError, match=match):
                layer(wrong, cache=cache)
        assert cache.tokens == 5
        with pytest.raises(ValueError, match="cache: got torch.float32"):
            layer(x, cache=layer.new_cache(2, 7, dtype=torch.float32))
        with pytest.raises(ValueError, match="mask='none'"):
            layer_of("none")(x, cache=cache)
        with pytest.raises(ValueError, match="cross-attention"):
            layer(x, x.clone(), cache=cache)
        with pytest.raises(ValueError, match="attn_mask: got one with a cache"):
            layer(x, attn_mask=torch.zeros(5, 5, dtype=torch.bool), cache=cache)
    with pytest.raises(ValueError, match="no_grad"):
        layer(x[:, :1], cache=cache)
    with pytest.raises(ValueError, match="max_tokens: got 0"):
        layer.new_cache(2, 0)
