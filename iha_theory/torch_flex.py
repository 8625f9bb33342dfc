"""Softmax attention through FlexAttention: causal, windowed and padded sights as block masks, for GPUs.

The block mask is computed from where each block of queries starts and ends to see, block by block; the mask over all
pairs of virtual tokens is never formed. On the CPU FlexAttention has no backward pass (torch 2.13).
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
from torch import Tensor

from iha_theory.torch_masks import Sight

_BLOCK = 128


def why_not_flex(q: Tensor, k: Tensor, v: Tensor, sight: Sight, dropout: float) -> str:
    """Why FlexAttention does not serve this call; empty if it does."""
    if not sight.is_causal:
        return "no causal mask, where the standard kernel is as good"
    if dropout:
        return "dropout in training"
    if sight.extra is not None:
        return "attn_mask over pairs of tokens"
    if q.device.type == "cpu" and torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v)):
        return "it has no backward pass on the CPU"
    return ""


def flex_attention(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float) -> Tensor:
    """Softmax attention under a causal sight without ``extra``; see :func:`why_not_flex`: (batch, head, N Q, value)."""
    limits = torch.tensor(sight.limits, device=q.device)
    per_query, per_key = sight.pseudo_queries, sight.pseudo_keys
    # Tensors, not numbers: another offset or window is then no other kernel to compile. No window is one of all keys.
    offset = torch.tensor(sight.offset, device=q.device)
    window = torch.tensor(sight.keys if sight.window is None else sight.window, device=q.device)

    def seen(batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
        n, n2 = offset + row // per_query, column // per_key
        return ((n2 < n) | ((n2 == n) & (column % per_key <= limits[row % per_query]))) & (n - n2 < window)

    padding = None if sight.padding is None else sight.padding.float()

    def padded(value: Tensor, batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return value if padding is None else value + padding[batch, column // per_key]

    score = None if padding is None else padded
    blocks = _block_mask(sight, seen, q.shape[2], k.shape[2], q.device)
    grouped = {"enable_gqa": True} if k.shape[1] != q.shape[1] else {}
    return _compiled()(q, k, v, score_mod=score, block_mask=blocks, scale=scale, **grouped)


@cache
def _compiled() -> Any:
    from torch.nn.attention.flex_attention import flex_attention as torchs

    # Without a full graph torch would run the unfused scores after eight compilations, with no more than a warning.
    return torch.compile(torchs, fullgraph=True)


def _block_mask(sight: Sight, seen: Any, rows: int, columns: int, device: torch.device) -> Any:
    """Which blocks are seen in part and which as a whole."""
    from torch.nn.attention.flex_attention import BlockMask

    first_row = torch.arange(0, rows, _BLOCK, device=device)
    last_row = (first_row + _BLOCK).clamp(max=rows) - 1
    first_column = torch.arange(0, columns, _BLOCK, device=device)
    last_column = (first_column + _BLOCK).clamp(max=columns) - 1
    # The tokens of a block of rows; its first row sees least of the future, its last row least of the past.
    first, last = (sight.offset + row // sight.pseudo_queries for row in (first_row, last_row))
    limits = sight.limits or (0,)
    reach = columns if sight.window is None else (sight.window - 1) * sight.pseudo_keys
    start, end = first * sight.pseudo_keys, last * sight.pseudo_keys
    some = (first_column <= (end + max(limits))[:, None]) & (last_column >= (start - reach)[:, None])
    whole = (last_column <= (start + min(limits))[:, None]) & (first_column >= (end - reach)[:, None])
    # A block that the sequence does not fill is masked entry by entry.
    whole = whole & (last_column - first_column + 1 == _BLOCK) & (last_row - first_row + 1 == _BLOCK)[:, None]
    lists = [_listed(mask) for mask in (some & ~whole, whole)]
    return BlockMask.from_kv_blocks(*lists[0], *lists[1], BLOCK_SIZE=_BLOCK, mask_mod=seen, seq_lengths=(rows, columns))


def _listed(mask: Tensor) -> tuple[Tensor, Tensor]:
    """How many blocks each row of blocks has, and which, those first: (1, 1, row), (1, 1, row, column)."""
    order = torch.argsort((~mask).int(), dim=1, stable=True)
    return mask.sum(1, dtype=torch.int32)[None, None], order.to(torch.int32)[None, None]
