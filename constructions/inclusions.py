"""Shared brick of Theorem 2: multi-head attention as a layer with P pseudo-heads, for any given weights.

Every pseudo-head of head h copies base head h (alpha[m, h, j] = 1 where m = h, else 0), so every key occurs P
times with the same score. Where a row sees all P copies of a key or none of them, the copies cancel in the row
sum, and every pseudo-head computes what the head computed.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from constructions.blocks import lifted
from iha_theory.layer import IHA
from iha_theory.scalars import INTEGERS


def inclusion(mha: IHA, pseudo_heads: int, *, pick: str | int = "last") -> IHA:
    """The layer with P pseudo-heads that computes what a layer of multi-head attention computes (Theorem 2).

    alpha^Q[m, h, j] = alpha^K[m, h, j] = alpha^V[m, h, j] = 1 where m = h, else 0. Without a mask and with the
    token-causal mask R may pick any pseudo-head or take their mean. With the flat causal mask, which is what a
    standard causal kernel computes, only the last pseudo-head is exact.

    Args:
        mha: source = H heads without mixing weights, as :func:`iha_theory.layer.multi_head` makes; any scalars.
        pseudo_heads: P, at least 1.
        pick: what R takes of each head: "last", "first", "mean", or the number of a pseudo-head, from 0.

    Returns:
        the base weights of ``mha``, with source = head = out = H and pseudo = P.

    Raises:
        ValueError: ``mha`` has mixing weights, P is below 1, there is no such pseudo-head, or the mean of integers
            is asked for.
    """
    heads = _heads(mha, pseudo_heads, "inclusion")
    alpha = lifted(np.repeat(np.eye(heads, dtype=int)[:, :, None], pseudo_heads, axis=2), mha.w_v)
    collapse = _collapse(mha, pseudo_heads, pick)
    return IHA(mha.w_q, mha.w_k, mha.w_v, alpha, alpha.copy(), alpha.copy(), collapse)


def free_inclusion(mha: IHA, pseudo_heads: int, *, queries: np.ndarray, deviations: np.ndarray) -> IHA:
    """A layer that equals the multi-head attention ``mha``, with pseudo-heads that are free to part in training.

    R picks the last pseudo-head and the keys are copies, so a last pseudo-query weighs the P copies of a token
    alike, without a mask and with the token-causal and the flat causal one. Hence only the sum of a head's
    pseudo-values matters: alpha^V_j = identity + deviation_j with deviations that sum to zero. Nobody reads the
    other pseudo-queries. With R, the keys and the last query so, these are all the points that equal ``mha`` for
    every W_V.

    Args:
        mha: source = H heads without mixing weights. pseudo_heads: P, at least 1.
        queries: (source, head, pseudo = P - 1), alpha^Q of all pseudo-heads but the last: anything.
        deviations: (source, head, pseudo = P - 1), of alpha^V of all pseudo-heads but the last, which takes minus
            their sum: anything. Zeros give copies.

    Raises:
        ValueError: ``mha`` has mixing weights, P is below 1, or an array has another shape.
    """
    heads = _heads(mha, pseudo_heads, "free_inclusion")
    for name, array in (("queries", queries), ("deviations", deviations)):
        if array.shape != (heads, heads, pseudo_heads - 1):
            raise ValueError(f"free_inclusion: {name} has shape {array.shape}, but wants (source={heads}, "
                             f"head={heads}, pseudo={pseudo_heads - 1}): all pseudo-heads but the last")
    copy = lifted(np.eye(heads, dtype=int)[:, :, None], mha.w_v)
    alpha_q = np.concatenate([queries, copy], axis=2)
    alpha_k = np.repeat(copy, pseudo_heads, axis=2)
    alpha_v = np.concatenate([copy + deviations, copy - deviations.sum(axis=2, keepdims=True)], axis=2)
    return IHA(mha.w_q, mha.w_k, mha.w_v, alpha_q, alpha_k, alpha_v, _collapse(mha, pseudo_heads, "last"))


def _heads(mha: IHA, pseudo_heads: int, name: str) -> int:
    if mha.is_mixed:
        raise ValueError(f"{name}: the layer has mixing weights; give multi-head attention, which has none")
    if pseudo_heads < 1:
        raise ValueError(f"{name}: got P={pseudo_heads} pseudo-heads; wanted at least 1")
    return mha.sizes["source"]


def _collapse(mha: IHA, pseudo_heads: int, pick: str | int) -> np.ndarray:
    """R (out, head, pseudo): of each head its own pseudo-head ``pick``, or the mean of its pseudo-heads."""
    own = np.eye(mha.sizes["source"], dtype=int).astype(object)[:, :, None]
    if pick == "mean":
        if INTEGERS.foreign(mha.w_v) is None and pseudo_heads > 1:
            raise ValueError("inclusion: the mean divides by P; lift the integers to the rationals")
        return lifted(np.repeat(own * Fraction(1, pseudo_heads), pseudo_heads, axis=2), mha.w_v)
    place = {"first": 0, "last": pseudo_heads - 1}.get(pick, pick) if isinstance(pick, str) else pick
    if isinstance(place, str) or not 0 <= place < pseudo_heads:
        raise ValueError(f"inclusion: no pseudo-head {pick!r}; wanted 'first', 'last', 'mean' or a number from 0 "
                         f"to {pseudo_heads - 1}")
    chosen = np.zeros((1, 1, pseudo_heads), dtype=int)
    chosen[..., place] = 1
    return lifted(own * chosen, mha.w_v)
