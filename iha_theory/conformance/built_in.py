"""The adapters that are built in: for this project's layer and for ``torch.nn.MultiheadAttention``."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from iha_theory.conformance.adapter import Adapter
from iha_theory.conformance.weights import Weights


def built_in(layer: Any) -> Adapter | None:
    """The adapter of a layer that the kit knows: this project's and ``torch.nn.MultiheadAttention``."""
    from iha_theory.torch_layer import InterleavedHeadAttention

    # A compiled module passes its attributes through.
    layer = getattr(layer, "_orig_mod", layer)
    if isinstance(layer, InterleavedHeadAttention):
        mask: Any = layer.mask
        rope: Any = layer.rope
        # Hard attention with a temperature is softmax at it.
        attention: Any = "softmax" if layer.temperature is not None else layer.attention
        phased = rope == "virtual" and layer.num_pseudo_heads > 1
        return Adapter(
            attention=attention, mask=mask, window=layer.window, rope=rope, rope_base=layer.rope_base,
            starts_as_mha=layer.init == "mha" and attention == "softmax" and not phased,
            scale=layer.scale if attention == "softmax" else None,
            features=layer.embed_dim, call=_call_batched, decode=None if mask == "none" else _decode,
            out=None if layer.out_proj is None else "out_proj", alpha_q="mixing.alpha_q", alpha_k="mixing.alpha_k",
            alpha_v="mixing.alpha_v", collapse="mixing.collapse", r="out head pseudo")
    # Not a subclass, which is made in order to be something else; and keys that are no token's have no name here.
    if type(layer) is nn.MultiheadAttention:
        plain = layer.bias_k is None and not layer.add_zero_attn
        return Adapter(claims="mha", mask="none", features=layer.embed_dim, call=_call_batched, weights=_of_mha,
                       white_box=plain)
    return None


def _call_batched(layer: Any, x: Tensor, padding: Tensor | None) -> Tensor:
    x = x if layer.batch_first else x.transpose(0, 1)
    y = layer(x, x, x, key_padding_mask=padding, need_weights=False)[0]
    return y if layer.batch_first else y.transpose(0, 1)


def _decode(layer: Any, x: Tensor) -> Tensor:
    cache = layer.new_cache(x.shape[0], x.shape[1], dtype=x.dtype)
    steps = []
    for token in x.split(1, 1):
        step = token if layer.batch_first else token.transpose(0, 1)
        y = layer(step, need_weights=False, cache=cache)[0]
        steps.append(y if layer.batch_first else y.transpose(0, 1))
    return torch.cat(steps, 1)


def _of_mha(layer: nn.MultiheadAttention) -> Weights:
    heads = layer.num_heads
    weights = (layer.in_proj_weight.chunk(3) if layer.in_proj_weight is not None
               else (layer.q_proj_weight, layer.k_proj_weight, layer.v_proj_weight))
    biases = (None,) * 3 if layer.in_proj_bias is None else layer.in_proj_bias.chunk(3)
    q, k, v = (w.unflatten(0, (heads, -1)).transpose(1, 2) for w in weights)
    q_bias, k_bias, v_bias = (None if b is None else b.unflatten(0, (heads, -1)) for b in biases)
    one = torch.eye(heads, dtype=q.dtype, device=q.device)[:, :, None]
    return Weights(q, k, v, q_bias, k_bias, v_bias, one, one, one, one, layer.out_proj.weight, layer.out_proj.bias)
