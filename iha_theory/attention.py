"""Attention operators: what happens between the pseudo-heads and the collapse (step 3 of Algorithm 1).

An operator takes pseudo-queries and -keys (head, pseudo, token, key) and pseudo-values (head, pseudo, token, value)
and returns (head, pseudo, token, value). It sees the pseudo-heads unstacked: a mask is a predicate of (token, pseudo)
pairs, and how the virtual tokens are ordered in memory is nobody's business here.

Each operator refuses, with ``TypeError``, scalars that it cannot serve: it never approximates.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import flint
import numpy as np
from einops import einsum

from iha_theory.layer import Attention
from iha_theory.residues import Residues
from iha_theory.scalars import as_fraction, elementwise, is_polynomial

#: ``mask(n, j, n2, j2)``: whether virtual token (token n, pseudo j) sees (n2, j2); called with broadcast index arrays.
Mask = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def token_causal(n: np.ndarray, j: np.ndarray, n2: np.ndarray, j2: np.ndarray) -> np.ndarray:
    """Token n sees every pseudo-token of the tokens up to n."""
    return (n2 <= n) & (j == j) & (j2 == j2)


def flat_causal(n: np.ndarray, j: np.ndarray, n2: np.ndarray, j2: np.ndarray) -> np.ndarray:
    """Virtual position nP + j sees the virtual positions up to its own: what a standard causal kernel computes."""
    return (n2 < n) | ((n2 == n) & (j2 <= j))


def windowed(mask: Mask, window: int) -> Mask:
    """``mask`` cut to the last ``window`` tokens, the own token included (W tokens are W P virtual tokens)."""
    if window < 1:
        raise ValueError(f"window: got {window} tokens, wanted at least 1")
    return lambda n, j, n2, j2: mask(n, j, n2, j2) & (n - n2 < window)


def padded(length: int) -> Mask:
    """Only the first ``length`` tokens are seen as keys; the rest is padding."""
    return lambda n, j, n2, j2: (n2 < length) & (n == n) & (j == j) & (j2 == j2)


def linear(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, mask: Mask | None = None) -> np.ndarray:
    """Linear attention, act = identity: Q (K^T V), without 1/sqrt(d_k) (Theorems 1, 3 and 6).

    Serves every scalar. With a mask the scores are formed first, since a masked product does not associate.
    """
    if mask is not None:
        scores = scores_of(q, k)
        return _average(scores * _visible(scores, mask).astype(int), v)
    state = einsum(k, v, "head pseudo token key, head pseudo token value -> head key value")
    return einsum(q, state, "head pseudo token key, head key value -> head pseudo token value")


def hard(q: np.ndarray, k: np.ndarray, v: np.ndarray, *, mask: Mask | None = None) -> np.ndarray:
    """Hard attention: the uniform average of the values over the maximal scores of a row (Theorems 4 and 7).

    It is the limit of softmax at temperature 0; ties are averaged. Serves rationals, floats, and polynomials whose
    scores are constants; raises ``TypeError`` for balls and residues (not ordered), and where a score is not constant.
    """
    scores = _ordered(scores_of(q, k))
    visible = _visible(scores, mask)
    chosen = np.zeros(scores.shape, dtype=int)
    for index in np.ndindex(*scores.shape[:3]):
        row, seen = scores[index], visible[index]
        if seen.any():
            chosen[index] = seen & (row == max(row[seen]))
    return _normalized(chosen.astype(float) if v.dtype != object else chosen.astype(object), v)


def softmax(beta: Any = None, *, base: Any = None, mask: Mask | None = None) -> Attention:
    """Softmax attention, as an operator.

    Args:
        beta: factor of the scores; None means 1/sqrt(d_k), the scale of Algorithm 1. Serves floats and balls.
        base: a positive rational b in place of e: weights b ** score, exact over the rationals for integer scores
            (the gain, 1/sqrt(d_k) included, is then in the weights). Excludes ``beta``.
        mask: who sees whom; a row that sees nobody gives zeros.

    Raises:
        ValueError: both ``beta`` and ``base``, or a base that is not positive.
        TypeError: exact scalars without a base (a real exponential is never exact), or scores that are not integers.
    """
    if base is None:
        return lambda q, k, v: _softmax_real(q, k, v, beta, mask)
    if beta is not None:
        raise ValueError("softmax: give an inverse temperature beta or a rational base, not both")
    rational = as_fraction(base)
    if rational <= 0:
        raise ValueError(f"softmax: the base must be positive; got {rational}")

    def power(score: Any) -> flint.fmpq:
        exponent = as_fraction(_constant(score))
        if exponent.denominator != 1:
            raise TypeError(f"softmax with a rational base wants integer scores; got {exponent}")
        value = rational**exponent.numerator
        return flint.fmpq(value.numerator, value.denominator)

    return normalized(power, mask=mask)


def normalized(function: Callable[[Any], Any], *, mask: Mask | None = None) -> Attention:
    """The attention whose weights are a positive function of the score, normalised by the row sum.

    Softmax is the instance ``exp``. With :class:`FormalScore` nothing is assumed of the function, so that an
    equality of outputs holds for every positive function.
    """

    def operator(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
        if v.dtype != object:
            raise TypeError(f"normalized attention serves exact scalars; got {v.dtype}. Use softmax(beta)")
        scores = scores_of(q, k)
        weight = elementwise(function, scores)
        return _normalized(weight * _visible(scores, mask).astype(int).astype(object), v)

    return operator


class FormalScore:
    """A positive function of which nothing is known: each distinct score gets a symbol of its own.

    Args:
        symbols: generators of a sympy polynomial ring that occur in no score.

    Raises:
        ValueError: more distinct scores than symbols.
    """

    def __init__(self, symbols: list[Any]) -> None:
        self._free = list(reversed(symbols))
        self._symbol: dict[Any, Any] = {}

    def __call__(self, score: Any) -> Any:
        if score not in self._symbol:
            if not self._free:
                raise ValueError(f"more than {len(self._symbol)} distinct scores; give more symbols")
            self._symbol[score] = self._free.pop()
        return self._symbol[score]


def rotary(attention: Attention, position: Callable[[int, int], int], turn: Callable[[int, int], tuple[Any, Any]],
           ) -> Attention:
    """``attention`` after rotary position embedding of the queries and keys.

    Args:
        position: the position of virtual token (token n, pseudo j): ``n`` keeps all pseudo-tokens of a token
            together, ``n P + j`` gives each its own phase.
        turn: (position, pair) to (cosine, sine) of the angle by which the features (2 pair, 2 pair + 1) turn.
    """

    def turned(array: np.ndarray) -> np.ndarray:
        if array.shape[3] % 2:
            raise ValueError(f"rotary: wants an even number of key features; got {array.shape[3]}")
        result = array.copy()
        for j, n, pair in np.ndindex(array.shape[1], array.shape[2], array.shape[3] // 2):
            cosine, sine = turn(position(n, j), pair)
            first, second = array[:, j, n, 2 * pair], array[:, j, n, 2 * pair + 1]
            result[:, j, n, 2 * pair] = first * cosine - second * sine
            result[:, j, n, 2 * pair + 1] = first * sine + second * cosine
        return result

    return lambda q, k, v: attention(turned(q), turned(k), v)


def pattern(attention: Attention, q: np.ndarray, k: np.ndarray, one: Any = 1) -> np.ndarray:
    """The attention pattern itself: the operator applied to the identity over the virtual tokens.

    Returns:
        (head, pseudo, token, pseudo token): the last axis lists the keys pseudo-major, j N + n.
    """
    heads, pseudos, tokens, _ = k.shape
    identity = np.eye(pseudos * tokens)
    if k.dtype == object:
        identity = identity.astype(int).astype(object) * one
    v = np.broadcast_to(identity.reshape(pseudos, tokens, -1), (heads, pseudos, tokens, pseudos * tokens))
    return attention(q, k, v)


def scores_of(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    """The inner products of pseudo-queries and -keys: (head, pseudo, token, pseudo2, token2)."""
    return einsum(q, k, "head pseudo token key, head pseudo2 token2 key -> head pseudo token pseudo2 token2")


def _average(weight: np.ndarray, v: np.ndarray) -> np.ndarray:
    return einsum(weight, v, "head pseudo token pseudo2 token2, head pseudo2 token2 value -> head pseudo token value")


def _visible(scores: np.ndarray, mask: Mask | None) -> np.ndarray:
    """The mask as a Boolean array of the shape of the scores."""
    if mask is None:
        return np.ones(scores.shape, dtype=bool)
    j, n, j2, n2 = np.ogrid[tuple(slice(size) for size in scores.shape[1:])]
    return np.broadcast_to(mask(n, j, n2, j2), scores.shape)


def _normalized(weight: np.ndarray, v: np.ndarray) -> np.ndarray:
    """The weighted average of the values; a row without weight gives zeros."""
    total = weight.sum(axis=(3, 4))
    sums = _average(weight, v)
    if sums.dtype != object:
        return sums / np.where(total == 0, 1, total)[..., None]
    result = np.empty(sums.shape, dtype=object)
    for index, value in np.ndenumerate(sums):
        result[index] = _quotient(value, total[index[:-1]])
    return result


def _quotient(numerator: Any, denominator: Any) -> Any:
    if is_polynomial(numerator):
        ring = numerator.ring
        if denominator == 0:
            return ring.zero
        if ring.domain.is_Field and not (is_polynomial(denominator) and not denominator.is_ground):
            return numerator * (ring.domain(1) / ring.domain_new(_constant(denominator)))
        field = ring.to_field()
        return field(numerator) / field(denominator)
    if isinstance(numerator, int | flint.fmpz):
        raise TypeError("this attention divides; lift the integers to the rationals")
    return numerator * 0 if denominator == 0 else numerator / denominator


def _constant(score: Any) -> Any:
    """The number that a constant polynomial is; any other scalar as it stands."""
    if not is_polynomial(score):
        return score
    if not score.is_ground:
        raise TypeError(f"this attention serves polynomials only where the scores are constants; got the score {score}")
    value = score.coeff(1)
    return flint.fmpq(int(value.numerator), int(value.denominator))


def _ordered(scores: np.ndarray) -> np.ndarray:
    if isinstance(scores, Residues):
        raise TypeError("hard attention compares scores; residues are not ordered")
    if scores.dtype != object:
        return scores
    scores = elementwise(_constant, scores)
    if any(isinstance(score, flint.arb) for score in scores.flat):
        raise TypeError("hard attention compares scores; balls are not ordered. Use rationals")
    return scores


def _softmax_real(q: np.ndarray, k: np.ndarray, v: np.ndarray, beta: Any, mask: Mask | None) -> np.ndarray:
    if isinstance(v, Residues):
        raise TypeError("softmax does not serve residues")
    scores = scores_of(q, k)
    if scores.dtype != object:
        scaled = scores * (1 / np.sqrt(q.shape[3]) if beta is None else float(beta))
        scaled = np.where(_visible(scores, mask), scaled, -np.inf)
        top = scaled.max(axis=(3, 4), keepdims=True)
        return _normalized(np.exp(scaled - np.where(np.isfinite(top), top, 0)), v)
    if not all(isinstance(score, flint.arb) for score in scores.flat):
        raise TypeError("softmax at a real temperature is not exact; use balls or floats, or give a rational base")
    factor = 1 / flint.arb(q.shape[3]).sqrt() if beta is None else beta
    weight = elementwise(lambda score: (score * factor).exp(), scores)
    return _normalized(weight * _visible(scores, mask).astype(int).astype(object), v)
