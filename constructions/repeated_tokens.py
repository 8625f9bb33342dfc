"""Shared brick of Theorem 2: layers on repeated tokens, the input X = 1 x^T on which the classes separate.

There all tokens are alike, so a row of multi-head attention averages equal values, whatever its weights. P
pseudo-heads bring P different keys and values to every token: a softmax over P terms remains.
"""

from __future__ import annotations

import numpy as np
from einops import einsum, rearrange

from constructions.blocks import lifted
from constructions.score_functions import ScoreFunction, average
from iha_theory.layer import IHA


def repeated(x: np.ndarray, n: int) -> np.ndarray:
    """The input 1 x^T: (n, model), every row equal to x (model)."""
    return np.repeat(x[None, :], n, axis=0)


def separating_layer(mha: IHA, pseudo_heads: int = 2, *, as_printed: bool = False) -> IHA:
    """The layer that separates the classes (Theorem 5): pseudo-heads 0 and 1 are the head with signs + and -.

    On repeated tokens, with s the score of a token with itself in head h and v its value, head h outputs

        (exp s - exp(-s)) / (exp s + exp(-s) + P - 2) v        (tanh(s) v for P = 2)

    without a mask and with the token-causal one. The pseudo-heads from 2 on have zero mixing; their keys score 0
    and stay in the denominator. As printed, with signs +, + on the values, it outputs v for P = 2.

    Args:
        mha: source = H heads without mixing weights. pseudo_heads: P, at least 2.
        as_printed: alpha^V with signs +, + in place of +, -.

    Returns:
        the base weights of ``mha`` with source = head = out = H; R picks pseudo-head 0.

    Raises:
        ValueError: ``mha`` has mixing weights, or P is below 2.
    """
    if mha.is_mixed:
        raise ValueError("separating_layer: the layer has mixing weights; give multi-head attention, which has "
                         "none")
    if pseudo_heads < 2:
        raise ValueError(f"separating_layer: got P={pseudo_heads} pseudo-heads; wanted at least 2, since one is "
                         "linear on repeated tokens")
    own = np.eye(mha.sizes["source"], dtype=int)[:, :, None]
    signs, value_signs, first = np.zeros((3, pseudo_heads), dtype=int)
    signs[:2], value_signs[:2], first[0] = (1, -1), (1, 1 if as_printed else -1), 1
    rows = {"alpha_q": signs, "alpha_k": signs, "alpha_v": value_signs, "collapse": first}
    mixing = {name: lifted(own * row, mha.w_v) for name, row in rows.items()}
    return IHA(mha.w_q, mha.w_k, mha.w_v, **mixing)


def own_scores(mha: IHA, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Of multi-head attention at a token x (model): its score with itself (head), its values (head, value)."""
    q, k, v = (einsum(x, w, "model, head model feature -> head feature") for w in (mha.w_q, mha.w_k, mha.w_v))
    return einsum(q, k, "head key, head key -> head"), v


def on_repeated_tokens(layer: IHA, x: np.ndarray, n: int, score: ScoreFunction, *, flat: bool) -> np.ndarray:
    """The output of any layer on n repeated tokens by its closed form, averages of P terms: (n, out value).

    Token t of head o outputs the sum over h and j of R[o, h, j] times the average over j' of v_{h,j'} with the
    weights c E(q_{h,j} . k_{h,j'}). Without a mask and with the token-causal one c = 1; with the flat causal one
    c = t + 1[j' <= j].

    Args:
        layer: with mixing weights. x: (model). score: E. flat: whether the mask is the flat causal one.
    """
    fields = layer.fields()
    q, k, v = (einsum(x, fields[f"w_{kind}"], fields[f"alpha_{kind}"],
                      "model, source model feature, source head pseudo -> head pseudo feature")
               for kind in ("q", "k", "v"))
    scores = einsum(q, k, "head pseudo key, head seen key -> head pseudo seen")
    weight = np.frompyfunc(score.weight, 1, 1)(scores)
    rows = []
    for token in range(n):
        copies = token + np.tri(scores.shape[1], dtype=int) if flat else np.ones(scores.shape[1:], dtype=int)
        mean = average(weight * copies.astype(object), v)
        heads = einsum(fields["collapse"], mean, "out head pseudo, head pseudo value -> out value")
        rows.append(rearrange(heads, "out value -> (out value)"))
    return np.stack(rows)
