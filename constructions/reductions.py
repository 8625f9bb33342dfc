"""Linear IHA is multi-head attention followed by an output projection, in three ways.

Statement. For every linear IHA layer with H heads and P pseudo-heads, every output head h and every input X,

    O_h = sum_(h',j,j')  head(Q[h',j], K[h',j'], V[h',j'])  R[h,h',j]           H P^2 heads, those of the pseudo-heads
        = sum_(m,m')     head(W_Q^m, W_K^m', I)  W_O[m,m'][h]                   H^2 heads, those of the base heads
        = sum_m          head(S_h[m], I, W_V^m)                                 H heads, another H for each h

with head(W_Q, W_K, W_V) = (X W_Q)(X W_K)^T X W_V, Q[h,j] = sum_m alpha^Q[m,h,j] W_Q^m (K and V likewise), and

    W_O[m,m'][h] = sum_(h',j,j') R[h,h',j] alpha^Q[m,h',j] alpha^K[m',h',j'] V[h',j'],
    S_h[m]       = sum_(h',j,j') R[h,h',j] alpha^V[m,h',j'] Q[h',j] K[h',j']^T.

The first two have the same heads for all h: a projection W_O after the layer only changes theirs.

Premises. Linear attention without a mask. Any weights, any input, any commutative ring.

Idea. Output h is linear in R, in the mixed queries, in the mixed keys and in the mixed values. Expanding nothing,
queries and keys, or the values gives the three forms.

Checked in :mod:`constructions.reduction_sections`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from einops import einsum, rearrange

from constructions.blocks import unit_like, zeros_like
from iha_theory.attention import linear
from iha_theory.layer import IHA, forward, multi_head


class Projected(NamedTuple):
    """Multi-head attention, and the projection (head * value, columns) that follows it."""

    heads: IHA
    projection: np.ndarray

    def output(self, x: np.ndarray) -> np.ndarray:
        """The projected heads on the input (token, model): (token, columns)."""
        return forward(self.heads, x, linear) @ self.projection


def _mixing(iha: IHA) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """alpha^Q, alpha^K, alpha^V and R; for multi-head attention the identity, with one pseudo-head."""
    heads = iha.sizes["source"]
    identity = rearrange(unit_like(iha.w_q, heads), "source head -> source head 1")
    given = iha.fields()
    alpha_q, alpha_k, alpha_v = (given.get(name, identity) for name in ("alpha_q", "alpha_k", "alpha_v"))
    return alpha_q, alpha_k, alpha_v, given.get("collapse", identity)


def _mixed(w: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    return einsum(alpha, w, "source head pseudo, source model feature -> head pseudo model feature")


def as_base_heads(iha: IHA) -> Projected:
    """The layer as H^2 heads with a projection: head (m, m') has the base query m, the base key m', the input as value.

    Args:
        iha: any layer of linear attention.

    Returns:
        heads with source = H^2 and value = model, and the projection (H^2 model, out value).
    """
    alpha_q, alpha_k, alpha_v, collapse = _mixing(iha)
    heads, model = iha.sizes["source"], iha.sizes["model"]
    queries = einsum(collapse, alpha_q, "out head pseudo, source head pseudo -> out source head")
    values = einsum(alpha_k, _mixed(iha.w_v, alpha_v),
                    "source head pseudo, head pseudo model value -> source head model value")
    projection = einsum(queries, values, "out query head, key head model value -> query key model out value")
    w_v = zeros_like(iha.w_q, (heads**2, model, model))
    w_v[:] = unit_like(iha.w_q, model)
    return Projected(multi_head(np.repeat(iha.w_q, heads, axis=0), np.concatenate([iha.w_k] * heads), w_v),
                     rearrange(projection, "query key model out value -> (query key model) (out value)"))


def as_pseudo_heads(iha: IHA) -> Projected:
    """The layer as H P^2 heads with a projection: head (h, j, j') has pseudo-query j, pseudo-key j' and -value j' of h.

    Returns:
        heads with source = H P^2, and the projection (H P^2 value, out value), which holds R.
    """
    alpha_q, alpha_k, alpha_v, collapse = _mixing(iha)
    pseudos, value = iha.sizes["pseudo"], iha.sizes["value"]
    q, k, v = _mixed(iha.w_q, alpha_q), _mixed(iha.w_k, alpha_k), _mixed(iha.w_v, alpha_v)
    w_q = rearrange(np.stack([q] * pseudos, axis=2), "head pseudo pseudo2 model key -> (head pseudo pseudo2) model key")
    w_k, w_v = (rearrange(np.stack([w] * pseudos, axis=1),
                          "head pseudo pseudo2 model feature -> (head pseudo pseudo2) model feature") for w in (k, v))
    placed = einsum(collapse, unit_like(iha.w_q, value),
                    "out head pseudo, value value2 -> head pseudo value out value2")
    projection = rearrange(np.stack([placed] * pseudos, axis=2),
                           "head pseudo pseudo2 value out value2 -> (head pseudo pseudo2 value) (out value2)")
    return Projected(multi_head(w_q, w_k, w_v), projection)


def as_value_heads(iha: IHA, out: int) -> Projected:
    """One output head as the sum of H heads: head m has the base value m, and all scores that meet it as its query.

    Args:
        out: the output head.

    Returns:
        heads with source = H and key = model, and the projection (H value, value) that adds them.

    Raises:
        ValueError: there is no such output head.
    """
    if not 0 <= out < iha.sizes["out"]:
        raise ValueError(f"output head: got {out}, wanted one of 0, ..., {iha.sizes['out'] - 1}")
    alpha_q, alpha_k, alpha_v, collapse = _mixing(iha)
    heads, model, value = (iha.sizes[axis] for axis in ("source", "model", "value"))
    read = rearrange(collapse[out], "head pseudo -> 1 head pseudo") * alpha_q
    queries = einsum(read, iha.w_q, "source head pseudo, source model key -> head model key")
    keys = einsum(alpha_v, _mixed(iha.w_k, alpha_k),
                  "source head pseudo, head pseudo model key -> source head model key")
    w_q = einsum(queries, keys, "head model key, source head model2 key -> source model model2")
    w_k, projection = zeros_like(iha.w_q, (heads, model, model)), zeros_like(iha.w_q, (heads, value, value))
    w_k[:], projection[:] = unit_like(iha.w_q, model), unit_like(iha.w_q, value)
    return Projected(multi_head(w_q, w_k, iha.w_v), rearrange(projection, "head value value2 -> (head value) value2"))
