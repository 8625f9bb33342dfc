"""Attention over virtual tokens on torch's kernels: softmax, hard and linear, under every :class:`Sight`.

Shapes throughout: q (batch, head, N Q, key), k (batch, kv head, S P, key), v (batch, kv head, S P, value), with virtual
tokens interleaved. Query head h reads kv head h // (head / kv head); keys shared by heads are not repeated.

No mask over all pairs of virtual tokens is ever formed for causal, windowed or padded attention. Softmax runs

* through torch's fused kernel as it stands: no mask, key padding, the flat causal mask;
* through torch's *private* CPU kernels, which return the log-sum-exp of each row ("fused"): flat causal with padding;
  token-causal, which is flat causal plus the P(P-1)/2 later pseudo-keys of the same token; and chunks of queries for
  windows and for layers that skip pseudo-queries. Several pieces of one row are merged by their log-sum-exps, and the
  kernel's own backward, given the merged output and log-sum-exp, is exact for its piece;
* through the public kernel in chunks of queries ("chunked"): everything else, and wherever the private kernels were
  not tested;
* on request through FlexAttention ("flex"), for GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from iha_theory.torch_flex import flex_attention, why_not_flex
from iha_theory.torch_fused import fused_attention, why_not_fused
from iha_theory.torch_masks import CHUNK_ROWS, Sight

Kernel = Literal["auto", "fused", "chunked", "flex"]
KERNELS = ("auto", "fused", "chunked", "flex")


def softmax_attention(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float, dropout: float = 0.0,
                      kernel: Kernel = "auto") -> Tensor:
    """Softmax of scale * q k^T under a sight, times v; rows that see nothing give zeros.

    Args:
        q, k, v: (batch, head, N Q, key), (batch, kv head, S P, key), (batch, kv head, S P, value).
        kernel: "auto" chooses as measured; another name is taken or refused, never replaced.

    Returns:
        (batch, head, N Q, value).

    Raises:
        ValueError: the kernel asked for cannot serve this call; says why.
    """
    sight = sight.simplified()
    width = v.shape[-1]
    # The kernels want one width. Zeros leave scores and values as they are.
    if k.shape[-1] < width:
        q, k = (F.pad(t, (0, width - t.shape[-1])) for t in (q, k))
    elif k.shape[-1] > width:
        v = F.pad(v, (0, k.shape[-1] - width))
    if kernel in ("fused", "flex"):
        reason = why_not_fused(q, sight, dropout) if kernel == "fused" else why_not_flex(q, k, v, sight, dropout)
        if reason:
            raise ValueError(f"kernel: got {kernel!r}, which does not serve this call: {reason}; wanted 'auto' or "
                             "'chunked'")
    return _softmax(q, k, v, sight, scale, dropout, kernel)[..., :width]


def _softmax(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float, dropout: float, kernel: Kernel) -> Tensor:
    if kernel == "flex":
        return flex_attention(q, k, v, sight, scale)
    # The CPU's fused kernel has no dropout; torch would then form all scores at once.
    if kernel != "chunked" and sight.extra is None and not (dropout and q.device.type == "cpu"):
        if not sight.is_causal:
            return sdpa(q, k, v, sight.virtual_padding(), scale, dropout)
        if sight.is_flat and not sight.is_windowed and sight.padding is None:
            return sdpa(q, k, v, None, scale, dropout, is_causal=True)
        if (kernel == "fused" or sight.queries > 1) and not why_not_fused(q, sight, dropout):
            return fused_attention(q, k, v, sight, scale)
    if sight.queries == 1 and sight.table is not None and sight.padding is None and sight.extra is None:
        # One token of a decoder: the end of the table that it brought.
        return sdpa(q, k, v, sight.table[:, -k.shape[2] :], scale, dropout)
    return _chunked_softmax(q, k, v, sight, scale, dropout)


def sdpa(q: Tensor, k: Tensor, v: Tensor, bias: Tensor | None, scale: float, dropout: float,
         is_causal: bool = False) -> Tensor:
    """Torch's fused attention; heads of keys and values may be fewer than those of queries."""
    grouped = {"enable_gqa": True} if k.shape[1] != q.shape[1] else {}
    return F.scaled_dot_product_attention(q, k, v, attn_mask=bias, dropout_p=dropout, is_causal=is_causal, scale=scale,
                                          **grouped)


def _pieces(q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Iterator[tuple[Tensor | None, Tensor, Tensor, Tensor]]:
    """Each chunk's bias, queries, keys and values."""
    keys_of, values_of = (_Runs(t, CHUNK_ROWS) if sight.is_windowed else _Whole(t) for t in (k, v))
    runs = q.split(sight.chunk_size() * sight.pseudo_queries, 2)
    for chunk, queries in zip(sight.chunks(q.dtype, q.device), runs, strict=False):
        seen = slice(chunk.lo * sight.pseudo_keys, chunk.hi * sight.pseudo_keys)
        yield chunk.bias, queries, keys_of[seen], values_of[seen]


class _Whole:
    """Slices of the tokens of (batch, head, token, feature), as views."""

    def __init__(self, t: Tensor) -> None:
        self.t = t

    def __getitem__(self, seen: slice) -> Tensor:
        return self.t[:, :, seen]


class _Runs(_Whole):
    """The same, put together from runs of tokens.

    The gradient of a slice of the whole is as long as the whole, for every chunk; that of a run is as long as the run.
    """

    def __init__(self, t: Tensor, length: int) -> None:
        super().__init__(t)
        self.runs, self.length = t.split(length, 2), length

    def __getitem__(self, seen: slice) -> Tensor:
        first = seen.start // self.length
        part = torch.cat(self.runs[first : -(-seen.stop // self.length)], 2)
        return part[:, :, seen.start - first * self.length : seen.stop - first * self.length]


def _chunked_softmax(q: Tensor, k: Tensor, v: Tensor, sight: Sight, scale: float, dropout: float) -> Tensor:
    parts = [sdpa(queries, keys, values, bias, scale, dropout)
             for bias, queries, keys, values in _pieces(q, k, v, sight)]
    return _joined(parts, q, k, v)


def _joined(parts: list[Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The chunks' outputs: (batch, head, N Q, value)."""
    if not parts:
        # No rows, but a product, so that gradients are zeros and not missing.
        return q @ (per_head(k, q.shape[1]).mT @ per_head(v, q.shape[1]))
    return parts[0] if len(parts) == 1 else torch.cat(parts, 2)


def per_head(t: Tensor, heads: int) -> Tensor:
    """(batch, kv head, token, feature) repeated to (batch, head, token, feature)."""
    return t if t.shape[1] == heads else t.repeat_interleave(heads // t.shape[1], 1)


def hard_attention(q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
    """The average of the values over the maximal scores of a row, ties included: (batch, head, N Q, value).

    Scores are compared exactly, so ties must be exact: as they are where scores are small integers.
    """
    return _chunked(q, k, v, sight, _hard_weights)


def linear_attention(q: Tensor, k: Tensor, v: Tensor, sight: Sight) -> Tensor:
    """act = identity, without a scale: q (k^T v) over the keys that are seen: (batch, head, N Q, value)."""
    if sight.is_causal or sight.extra is not None:
        return _chunked(q, k, v, sight, linear_weights)
    padding = sight.virtual_padding()
    if padding is not None:
        k = k.masked_fill(padding.mT.isneginf(), 0)
    return q @ per_head(k.mT @ v, q.shape[1])


def _chunked(q: Tensor, k: Tensor, v: Tensor, sight: Sight, weights: Any) -> Tensor:
    k, v = per_head(k, q.shape[1]), per_head(v, q.shape[1])
    parts = [weights(queries @ keys.mT, None if bias is None else ~bias.isneginf()) @ values
             for bias, queries, keys, values in _pieces(q, k, v, sight)]
    return _joined(parts, q, k, v)


def linear_weights(scores: Tensor, seen: Tensor | None) -> Tensor:
    """The scores, zero where nothing is seen."""
    return scores if seen is None else scores.masked_fill(~seen, 0)


def _hard_weights(scores: Tensor, seen: Tensor | None) -> Tensor:
    scores = scores.detach()
    if seen is not None:
        scores = scores.masked_fill(~seen, -torch.inf)
    if scores.shape[-1] == 0:
        return scores
    chosen = scores == scores.amax(-1, keepdim=True)
    if seen is not None:
        chosen = chosen & seen
    return chosen.to(scores.dtype) / chosen.sum(-1, keepdim=True).clamp(min=1)


def token_weights(q: Tensor, k: Tensor, sight: Sight, scale: float, attention: str) -> Tensor:
    """How much token n's pseudo-query i takes from token n2, over its pseudo-keys: (batch, head, N, Q, S).

    Linear attention has no weights; its scores stand in their place.
    """
    k, precision = per_head(k, q.shape[1]), torch.promote_types(q.dtype, torch.float32)
    result = []
    for chunk in sight.chunks(q.dtype, q.device):
        queries = q[:, :, chunk.first * sight.pseudo_queries : chunk.last * sight.pseudo_queries]
        # In float32 at least: half precision would overflow where the kernel does not.
        keys = k[:, :, chunk.lo * sight.pseudo_keys : chunk.hi * sight.pseudo_keys]
        scores = queries.to(precision) @ keys.to(precision).mT
        seen = None if chunk.bias is None else ~chunk.bias.isneginf()
        if attention == "linear":
            weights = linear_weights(scores, seen)
        elif attention == "hard":
            weights = _hard_weights(scores, seen)
        else:
            scores = scores * scale if chunk.bias is None else scores * scale + chunk.bias
            dead = scores.isneginf().all(-1, keepdim=True)
            weights = torch.softmax(scores.masked_fill(dead, 0), -1).masked_fill(dead, 0)
        weights = weights.unflatten(2, (-1, sight.pseudo_queries)).unflatten(4, (-1, sight.pseudo_keys)).sum(5)
        result.append(F.pad(weights, (chunk.lo, sight.keys - chunk.hi)).to(q.dtype))
    return torch.cat(result, 2) if result else q.new_zeros(*q.shape[:2], 0, sight.pseudo_queries, sight.keys)
