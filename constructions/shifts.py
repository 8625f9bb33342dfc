"""Brick of Theorem 4: one layer of hard attention that writes all cyclic shifts of the tokens side by side.

The input is ``[t, I]``: one column of tokens, then the identity as positional code. With S the cyclic matrix,
(S t)_i = t_(i+1 mod N), the layer's output is the *workspace*: row i reads t_i, t_(i+1), ..., all cyclically.

Why H heads suffice. Write a shift as c = hH + m. The query of head h at token i is the unit vector of position i + hH,
and the m-th key of token n is the unit vector of position n - m: their product is 1 exactly where n = i + hH + m. So
one pseudo-query has H maximal scores, one for each pseudo-key m, and hard attention averages over them: each weighs
1/H. The m-th pseudo-value writes H times the token into coordinate m, so the average is exactly
[t_(i+hH), ..., t_(i+hH+H-1)].
"""

from __future__ import annotations

from math import lcm
from typing import Any

import numpy as np
from einops import rearrange

from constructions.blocks import (
    Cover,
    cheapest_cover,
    full_cover,
    generic_features,
    powers,
    routing,
    unit_like,
    zeros_like,
)
from iha_theory.attention import hard, pattern
from iha_theory.count import ceil_sqrt
from iha_theory.layer import IHA, multi_head
from iha_theory.scalars import RATIONALS, as_fraction

_RATIONAL = RATIONALS.array(np.zeros((1, 1), dtype=object))


def cyclic(n: int, like: np.ndarray | None = None) -> np.ndarray:
    """The matrix S (n, n) with (S t)_i = t_(i+1 mod n), over the scalars of ``like`` (None: the rationals)."""
    return np.roll(unit_like(_RATIONAL if like is None else like, n), 1, axis=1)


def cyclic_shifts(n_max: int, *, pseudo_heads: int | None = None, cover: Cover | None = None,
                  like: np.ndarray | None = None, shift: np.ndarray | None = None) -> IHA:
    """The weights of IHA with hard attention that output all cyclic shifts of ``n_max`` tokens (Theorems 4 and 7).

    The paper's form, H = P = ceil(sqrt n_max): W_Q^m = [0; S^(mH)], W_K^m = [0; (S^m)^T], W_V^m = H e_0 u_m^T, and the
    mixing of Theorem 3. With ``pseudo_heads`` or ``cover`` the same base weights are routed with P < H, and the factor
    that undoes the average stands in alpha^V instead of W_V: how many scores tie differs from head to head.

    Args:
        n_max: tokens, at least 1.
        pseudo_heads: P; takes the tiled routing with the fewest heads. cover: the routing itself. Give one or none.
        like: an array whose scalars the weights take; None takes the rationals. Hard attention needs a field.
        shift: (n_max, n_max), the matrix in place of S.

    Returns:
        model = 1 + n_max (the token first), key = n_max, value = L column blocks; out head h holds the shifts hL, ...,
        hL + L - 1. Columns from n_max on start over.

    Raises:
        ValueError: ``n_max`` is below 1, or the routing has too few blocks.
    """
    _check(n_max, "cyclic_shifts")
    like = _RATIONAL if like is None else like
    paper = pseudo_heads is None and cover is None
    if cover is None:
        cover = full_cover(ceil_sqrt(n_max)) if pseudo_heads is None else cheapest_cover(n_max, pseudo_heads)
    heads, blocks = cover.heads, cover.columns
    if heads * blocks < n_max:
        raise ValueError(f"cyclic_shifts: the cover has {heads} x {blocks} blocks, but {n_max} shifts are wanted")
    small = powers(cyclic(n_max, like) if shift is None else shift, blocks + 1)
    large = powers(small[blocks], heads)
    one = unit_like(like, 1)[0, 0]
    w_q, w_k = zeros_like(like, (heads, 1 + n_max, n_max)), zeros_like(like, (heads, 1 + n_max, n_max))
    w_v = zeros_like(like, (heads, 1 + n_max, blocks))
    for m in range(heads):
        w_q[m, 1:] = large[m]
        if m < blocks:
            w_k[m, 1:] = small[m].T
            w_v[m, 0, m] = one * heads if paper else one
    return IHA(w_q, w_k, w_v, **routing(cover, like, averaged=not paper))


def cyclic_shifts_mha(n_max: int, *, like: np.ndarray | None = None, shift: np.ndarray | None = None) -> IHA:
    """The ``n_max``-head multi-head attention that outputs all cyclic shifts (Theorem 4, the construction for MHA).

    Head h has W_Q = [0; S^h], W_K = [0; I] and W_V = e_0. Args and errors as for :func:`cyclic_shifts`.
    """
    _check(n_max, "cyclic_shifts_mha")
    like = _RATIONAL if like is None else like
    w_q, w_k = zeros_like(like, (n_max, 1 + n_max, n_max)), zeros_like(like, (n_max, 1 + n_max, n_max))
    w_v = zeros_like(like, (n_max, 1 + n_max, 1))
    for h, power in enumerate(powers(cyclic(n_max, like) if shift is None else shift, n_max)):
        w_q[h, 1:], w_k[h, 1:] = power, unit_like(like, n_max)
        w_v[h, :1] = unit_like(like, 1)
    return multi_head(w_q, w_k, w_v)


def with_positions(tokens: np.ndarray) -> np.ndarray:
    """The layer's input [t, I] (n, 1 + n) of tokens (n, 1)."""
    return np.concatenate([tokens, unit_like(tokens, tokens.shape[0])], axis=1)


def workspace(tokens: np.ndarray, columns: int) -> np.ndarray:
    """The workspace by its definition, without the layer: entry [i, c] is token i + c, modulo their number.

    Args:
        tokens: (n, 1). columns: how many shifts.
    """
    n = tokens.shape[0]
    result = np.empty((n, columns), dtype=tokens.dtype)
    for i, c in np.ndindex(n, columns):
        result[i, c] = tokens[(i + c) % n, 0]
    return result


def first_of_ties(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Hard attention without the average: the value of the first maximal score alone. Axes as for any operator."""
    share = pattern(hard, q, k, q.flat[0] - q.flat[0] + 1)
    first = np.argmax(share != 0, axis=-1)
    values = rearrange(v, "head pseudo token value -> head 1 (pseudo token) value")
    return np.take_along_axis(values, first[..., None], axis=2)


def generic_tokens(weights: IHA) -> np.ndarray:
    """Tokens (n, 1) at which the layer outputs the shifts only if it does so for all tokens.

    It speaks of integer weights whose queries and keys read positions only, so that no score depends on a token. Then
    an output entry is an affine function of the tokens. At most P n scores tie, so lcm(1, ..., P n) times a coefficient
    is an integer; a coefficient is at most H P times the largest product of an entry of R, of alpha^V summed over the H
    sources, and of W_V. An affine function with coefficients within a bound vanishes at these tokens only if it is
    zero (see :func:`constructions.blocks.generic_features`).
    """
    size = weights.sizes
    n = size["model"] - 1
    bound = size["head"] * size["pseudo"] * size["source"]
    for array in (weights.w_v, weights.alpha_v, weights.collapse):
        if array is not None:
            bound *= max(1, *(int(abs(as_fraction(value))) for value in array.flat))
    return RATIONALS.array(generic_features(n, 1, lcm(*range(1, size["pseudo"] * n + 1)) * (bound + 1)))


def unread(weights: IHA) -> dict[str, np.ndarray]:
    """The free entries of the weights, as a section declares them: alpha^Q where R ignores the pseudo-query."""
    if weights.collapse is None or weights.alpha_q is None:
        return {}
    ignored = (weights.collapse == 0).all(axis=0)
    return {"weights.alpha_q": np.broadcast_to(ignored, weights.alpha_q.shape)}


def _check(n_max: Any, name: str) -> None:
    if n_max < 1:
        raise ValueError(f"{name}: got n_max={n_max}, wanted at least 1 token")
