"""Audits attention layers that were not written here: that of torch, and of a Llama model made from a configuration.

Run as ``python examples/audit_others.py``; the Llama part needs the extra ``hugging-face``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from iha_theory.conformance import Adapter, Report, audit


def torch_attention() -> Report:
    """``torch.nn.MultiheadAttention``, whose adapter is built in."""
    return audit(nn.MultiheadAttention(32, 4, batch_first=True))


def llama_attention() -> Report:
    """One attention layer of a small random Llama model with grouped keys and rotary positions."""
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaAttention, LlamaRotaryEmbedding

    config = LlamaConfig(hidden_size=32, num_attention_heads=4, num_key_value_heads=2)
    config._attn_implementation = "eager"
    positions = LlamaRotaryEmbedding(config)

    def call(layer: Any, x: Tensor, padding: Tensor | None) -> Tensor:
        tokens = x.shape[1]
        later = torch.full((tokens, tokens), -torch.inf, dtype=x.dtype).triu(1)[None, None]
        phases = positions(x, torch.arange(tokens)[None])
        return layer(x, position_embeddings=phases, attention_mask=later)[0]

    return audit(LlamaAttention(config, 0), Adapter(
        claims="mha", mask="token", rope="token", features=32, call=call, padding=False, heads=4, kv_heads=2,
        q=_paired("q_proj", 4), k=_paired("k_proj", 2), v="v_proj", out="o_proj",
        alpha_q=None, alpha_k=None, alpha_v=None, collapse=None))


def _paired(name: str, heads: int) -> Callable[[Any], Tensor]:
    """Llama turns features i and i + d_k / 2 together, the kit features 2 i and 2 i + 1: the rows in the kit's order."""
    def weight(layer: Any) -> Tensor:
        return getattr(layer, name).weight.unflatten(0, (heads, 2, -1)).transpose(1, 2).flatten(0, 2)

    return weight


if __name__ == "__main__":
    for report in (torch_attention(), llama_attention()):
        print("\n".join(report.text()), "\n")
