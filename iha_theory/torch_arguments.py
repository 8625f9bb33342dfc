"""The checks of what the layer is made of and called with: everything is refused before anything is computed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor

from iha_theory.torch_cache import KVCache
from iha_theory.torch_kernels import KERNELS
from iha_theory.torch_masks import Sight, additive

if TYPE_CHECKING:
    from iha_theory.torch_layer import InterleavedHeadAttention

ATTENTIONS = ("softmax", "linear", "hard")
MASKS = ("none", "token", "flat")
ROPES = (None, "token", "virtual")


def check_sizes(**sizes: Any) -> None:
    """Every size a positive integer, or ValueError that names it."""
    for name, size in sizes.items():
        if not isinstance(size, int) or isinstance(size, bool) or size < 1:
            raise ValueError(f"{name}: got {size!r}, wanted a positive integer")


def check_choices(*, attention: str, mask: str, rope: str | None, kernel: str, window: int | None, dropout: float,
                  temperature: float | None, head_dim: int, num_heads: int, num_kv_heads: int) -> None:
    """What a layer can be; ValueError names the argument."""
    for name, value, allowed in (("attention", attention, ATTENTIONS), ("mask", mask, MASKS), ("rope", rope, ROPES),
                                 ("kernel", kernel, KERNELS)):
        if value not in allowed:
            raise ValueError(f"{name}: got {value!r}, wanted one of {', '.join(map(repr, allowed))}")
    if window is not None:
        check_sizes(window=window)
        if mask == "none":
            raise ValueError(f"window: got {window} with mask='none', wanted a causal mask ('token' or 'flat'): a "
                             "window is the last tokens before a token")
    if not 0 <= dropout < 1:
        raise ValueError(f"dropout: got {dropout}, wanted a probability in [0, 1)")
    if temperature is not None and not temperature > 0:
        raise ValueError(f"temperature: got {temperature}, wanted a positive number")
    if attention == "linear" and temperature is not None:
        raise ValueError("temperature: linear attention has none; leave it out")
    if dropout and (attention == "linear" or (attention == "hard" and temperature is None)):
        raise ValueError(f"dropout: got {dropout}; {attention} attention has none, wanted 0")
    if kernel != "auto" and (attention == "linear" or (attention == "hard" and temperature is None)):
        raise ValueError(f"kernel: got {kernel!r}, which is softmax's; wanted 'auto' for {attention} attention")
    if num_heads % num_kv_heads:
        raise ValueError(f"num_kv_heads: got {num_kv_heads}, wanted a divisor of num_heads={num_heads}")
    if rope is not None and head_dim % 2:
        raise ValueError(f"rope: turns pairs of features; got head_dim={head_dim}, wanted an even number")


class Arguments(NamedTuple):
    """What ``forward`` works on: batch first, (batch, token, model), and the sight of the layer with S new keys.

    ``positions`` and ``key_positions`` are (batch or 1, token), or None where the layer does not turn by them.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    sight: Sight
    positions: Tensor | None
    key_positions: Tensor | None


def checked(layer: InterleavedHeadAttention, query: Tensor, key: Tensor | None, value: Tensor | None,
            key_padding_mask: Tensor | None, attn_mask: Tensor | None, is_causal: bool, position_ids: Tensor | None,
            cache: KVCache | None) -> Arguments:
    """The call's arguments, batch first; ValueError names what does not fit."""
    own = (key is None or key is query) and (value is None or value is query or value is key)
    if key is None and value is not None:
        raise ValueError("value: got a tensor without a key; give both, or none for self-attention")
    key = query if key is None else key
    value = key if value is None else value
    batched = query.dim() == 3
    given = {"query": (query, layer.embed_dim), "key": (key, layer.kdim), "value": (value, layer.vdim)}
    if own and layer.kdim == layer.vdim == layer.embed_dim:
        # One tensor, one check.
        del given["key"], given["value"]
    kind = layer.q_proj.weight.dtype
    order = "batch, token" if layer.batch_first else "token, batch"
    for name, (tensor, width) in given.items():
        if tensor.dim() not in (2, 3) or tensor.shape[-1] != width or (tensor.dim() == 3) != batched:
            axes = f"({order}, {width})" if batched or tensor.dim() not in (2, 3) else f"(token, {width})"
            raise ValueError(f"{name}: got shape {tuple(tensor.shape)}, wanted {axes}")
        if tensor.dtype != kind and not torch.is_autocast_enabled(tensor.device.type):
            raise ValueError(f"{name}: got dtype {tensor.dtype}, wanted the layer's {kind}")
    if not batched:
        query, key, value = (t.unsqueeze(0) for t in (query, key, value))
    elif not layer.batch_first:
        query, key, value = (t.transpose(0, 1) for t in (query, key, value))
    batch, queries, keys = query.shape[0], query.shape[1], key.shape[1]
    if key.shape[0] != batch:
        raise ValueError(f"key: got {key.shape[0]} sequences, wanted as many as query has, {batch}")
    if value.shape[:2] != key.shape[:2]:
        raise ValueError(f"value: got (batch, token) {tuple(value.shape[:2])}, wanted those of key, "
                         f"{tuple(key.shape[:2])}")
    causal = layer.mask != "none"
    if is_causal and not causal and attn_mask is None:
        raise ValueError("is_causal: got True, but the layer has mask='none' and no attn_mask is given; make the layer "
                         "with mask='token' or mask='flat'")
    if causal and queries != keys:
        raise ValueError(f"key: got {keys} tokens, wanted {queries}, as query has: mask={layer.mask!r} is causal")
    if cache is not None and not own:
        raise ValueError("cache: got one in cross-attention, wanted self-attention (leave key and value out)")
    positions = _positions(layer, batch, queries, position_ids, own, cache, query.device)
    others = positions if own or positions is None else torch.arange(keys, device=key.device)[None]
    sight = _sight(layer, batch, queries, keys, key_padding_mask, attn_mask, batched, cache, query)
    return Arguments(query, key, value, sight, positions, others)


def _sight(layer: InterleavedHeadAttention, batch: int, queries: int, keys: int, key_padding_mask: Tensor | None,
           attn_mask: Tensor | None, batched: bool, cache: KVCache | None, query: Tensor) -> Sight:
    only = f"{layer.attention} attention adds nothing to scores" if layer.attention != "softmax" else None
    dtype = layer.compute_dtype(query)
    padding = extra = None
    if key_padding_mask is not None:
        shape = {"(batch, key token)": (batch, keys)} if batched else {"(key token)": (keys,)}
        padding = additive("key_padding_mask", key_padding_mask, dtype, shape, boolean_only=only).view(batch, keys)
    if attn_mask is not None:
        if cache is not None:
            raise ValueError("attn_mask: got one with a cache; wanted the layer's own mask and key_padding_mask")
        shapes = {"(query token, key token)": (queries, keys),
                  "(batch * head, query token, key token)": (batch * layer.num_heads, queries, keys)}
        mask = additive("attn_mask", attn_mask, dtype, shapes, boolean_only=only)
        extra = mask[None, None] if mask.dim() == 2 else mask.view(batch, layer.num_heads, queries, keys)
    limits = None
    if layer.mask == "flat":
        limits = layer.mixing.limits
    elif layer.mask == "token":
        limits = (layer.num_pseudo_heads - 1,) * layer.mixing.pseudo_queries
    if cache is not None:
        if limits is None:
            raise ValueError("cache: got one with mask='none'; decoding token by token wants mask='token' or 'flat'")
        cache.check(batch, queries, layer.num_kv_heads, layer.num_pseudo_heads, dtype, query.device)
        if torch.is_grad_enabled() and (query.requires_grad or any(p.requires_grad for p in layer.parameters())):
            raise ValueError("cache: is for inference and keeps no gradients; call under torch.no_grad()")
    return Sight(queries, keys, layer.num_pseudo_heads, layer.mixing.pseudo_queries, limits, layer.window, padding,
                 extra)


def _positions(layer: InterleavedHeadAttention, batch: int, queries: int, position_ids: Tensor | None, own: bool,
               cache: KVCache | None, device: torch.device) -> Tensor | None:
    """(batch or 1, token): the positions of the queries' tokens, if the layer turns by them."""
    if position_ids is None:
        if layer.rope is None:
            return None
        return torch.arange(queries, device=device)[None] + (cache.tokens if cache is not None else 0)
    if layer.rope is None:
        raise ValueError("position_ids: got a tensor, but the layer has rope=None")
    if not own:
        raise ValueError("position_ids: got a tensor in cross-attention, where queries and keys count from 0; leave "
                         "it out")
    if position_ids.dtype not in (torch.int64, torch.int32):
        raise ValueError(f"position_ids: got dtype {position_ids.dtype}, wanted int64 or int32")
    if tuple(position_ids.shape) not in ((queries,), (batch, queries)):
        raise ValueError(f"position_ids: got shape {tuple(position_ids.shape)}, wanted (token) {(queries,)} or "
                         f"(batch, token) {(batch, queries)}")
    return position_ids.view(-1, queries)
