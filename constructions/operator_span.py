"""How many attention operators a layer has that are linearly independent: the worth of P^2 patterns per head.

Statement. A linear attention layer applies to its values operators (N x N), query times key transposed. For every
weight and every input they span at most

    multi-head, grouped-query and multi-query attention, talking heads (logits mixed over the heads)       H
    IHA with P pseudo-heads                                                                    min(H^2, H P^2)

dimensions, and at the sizes checked each number is attained. Of its H P^2 operators IHA has no more than H^2 that are
independent, so that more than ceil(sqrt H) pseudo-heads add no dimension.

Why at most. H operators span at most H dimensions, H P^2 at most H P^2; a talking head's operator is a combination of
those of H heads. Every operator of IHA is a combination of the H^2 products of a base query and a base key,

    operator(h, j, j') = sum_(m,m') alpha^Q[m,h,j] alpha^K[m',h,j'] (X W_Q^m)(X W_K^m')^T,

with every weight and every input entry a symbol: the claim ``span-mixed``. That is the upper bound, for all weights.

Why attained. The rank at drawn integers is a lower bound of the largest rank that there is. Where it equals the upper
bound it is the largest, and then all weights have it but those at which a certain polynomial that is not zero
vanishes: it is what random weights give.

Checked: the identity at small sizes; the rank over the rationals at drawn weights, for H and P from 1 to 4 and two
sizes with 1 < P and P^2 < H. Not checked: that min(H^2, H P^2) is attained for all H and P.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from einops import einsum, rearrange

from constructions.reduction_sections import drawn_layer
from iha_theory.claims import Case, Claim, Mutant, Relation, Scope, Section
from iha_theory.layer import IHA, multi_head
from iha_theory.layer import pseudo_heads as mixed_over_heads
from iha_theory.rank import exact_rank
from iha_theory.scalars import INTEGERS, POLYNOMIALS, Domain

KINDS = ("multi-head", "grouped-query", "multi-query", "talking-heads", "iha")


def operators(weights: IHA, x: np.ndarray) -> np.ndarray:
    """Pseudo-query times pseudo-key of the same head: (head, pseudo, pseudo, token, token)."""
    q, k, _ = mixed_over_heads(weights, x)
    return einsum(q, k, "head pseudo token key, head pseudo2 token2 key -> head pseudo pseudo2 token token2")


def base_operators(weights: IHA, x: np.ndarray) -> np.ndarray:
    """Every base query times every base key: (source, source, token, token)."""
    q, k = (einsum(x, w, "token model, source model key -> source token key") for w in (weights.w_q, weights.w_k))
    return einsum(q, k, "query token key, key2 token2 key -> query key2 token token2")


def dimension(found: np.ndarray) -> int:
    """The dimension that operators (..., token, token) span over the rationals, exactly."""
    return exact_rank(found.reshape(-1, found.shape[-1] * found.shape[-2]))


def shared_keys(weights: IHA, groups: int) -> IHA:
    """The layer with as many keys as groups: heads of one group have the key of its first head."""
    heads = weights.sizes["source"]
    size = -(-heads // groups)
    return replace(weights, w_k=weights.w_k[[h - h % size for h in range(heads)]])


def _sizes(heads: int, pseudo_heads: int, model: int, key: int) -> dict[str, int]:
    return {"source": heads, "head": heads, "out": heads, "pseudo": pseudo_heads, "model": model, "key": key,
            "value": 1}


def drawn_operators(kind: str, heads: int, pseudo_heads: int = 1, seed: int = 0) -> np.ndarray:
    """The operators of a layer at drawn integer weights and a drawn input: (..., token, token).

    The sizes do not limit the dimension: N = H + 1 tokens of as many numbers, d_k = 2. Grouped-query attention has
    keys for ceil(H/2) groups, multi-query attention one key.

    Args:
        kind: one of :data:`KINDS`. heads: H. pseudo_heads: P, for IHA.

    Raises:
        ValueError: an unknown kind, H or P below 1, or P for another kind than IHA.
    """
    if kind not in KINDS:
        raise ValueError(f"operators: no kind {kind!r}; there are {', '.join(KINDS)}")
    if heads < 1 or pseudo_heads < 1:
        raise ValueError(f"operators: got H={heads}, P={pseudo_heads}; wanted at least 1 of each")
    if pseudo_heads > 1 and kind != "iha":
        raise ValueError(f"operators: {kind} attention has no pseudo-heads; got P={pseudo_heads}, wanted 1")
    layer, x = drawn_layer(INTEGERS, heads + 1, _sizes(heads, pseudo_heads, heads + 1, 2), seed)
    if kind == "iha":
        return operators(layer, x)
    plain = multi_head(layer.w_q, layer.w_k, layer.w_v)
    if kind == "talking-heads":
        mixing = rearrange(layer.fields()["alpha_q"], "source head 1 -> source head")
        return einsum(operators(plain, x), mixing,
                      "source one two token token2, source head -> head one two token token2")
    groups = {"multi-head": heads, "grouped-query": -(-heads // 2), "multi-query": 1}[kind]
    return operators(shared_keys(plain, groups), x)


def operator_span(kind: str, heads: int, pseudo_heads: int = 1, seed: int = 0) -> int:
    """The dimension that the attention operators of a layer span at drawn integer weights, exactly.

    It is H for multi-head, grouped-query and multi-query attention and for talking heads, min(H^2, H P^2) for IHA.

    Args:
        kind: one of :data:`KINDS`. heads: H. pseudo_heads: P, for IHA. seed: of the draw.

    Raises:
        ValueError: see :func:`drawn_operators`.
    """
    return dimension(drawn_operators(kind, heads, pseudo_heads, seed))


@dataclass(frozen=True)
class Mixed:
    """An IHA layer, an input (n, model), and the base projections and mixing weights that the layer is made of."""

    weights: IHA
    original: IHA
    x: np.ndarray

    @cached_property
    def applied(self) -> np.ndarray:
        return operators(self.weights, self.x)

    @property
    def combined(self) -> np.ndarray:
        """The base operators mixed: (head, pseudo, pseudo, token, token)."""
        given = self.original.fields()
        mixed = einsum(given["alpha_q"], base_operators(self.original, self.x),
                       "query head pseudo, query key token token2 -> head pseudo key token token2")
        return einsum(given["alpha_k"], mixed,
                      "key head pseudo2, head pseudo key token token2 -> head pseudo pseudo2 token token2")


def _mixed(*, domain: Domain, heads: int, pseudo_heads: int, n: int, key: int) -> Mixed:
    layer, x = drawn_layer(domain, n, _sizes(heads, pseudo_heads, n, key), seed=0)
    return Mixed(layer, layer, x)


def _entries_of_values(instance: Mixed) -> dict[str, np.ndarray]:
    """The operators do not depend on the values, nor on what is done with them."""
    return {f"{layer}.{name}": np.ones(instance.weights.fields()[name].shape, dtype=bool)
            for layer in ("weights", "original") for name in ("w_v", "alpha_v", "collapse")}


MIXED = Section(
    title="every operator of IHA combines H^2 products",
    instance=_mixed,
    cases=(
        Case("random integers, H=1, P=2, N=2, d_k=1", INTEGERS, Scope.INPUT,
             {"heads": 1, "pseudo_heads": 2, "n": 2, "key": 1}),
        *(Case(f"symbolic, H={h}, P={p}, N={n}, d_k={key}", POLYNOMIALS, Scope.SIZE,
               {"heads": h, "pseudo_heads": p, "n": n, "key": key})
          for h, p, n, key in ((1, 1, 1, 1), (2, 2, 2, 1), (2, 3, 2, 2), (3, 2, 1, 2))),
    ),
    claims=(
        Claim("span-mixed", "each of the H P^2 operators is the sum of alpha^Q alpha^K times base query times base "
              "key: they span at most H^2 dimensions", Relation.EQUAL, lambda i: i.applied, lambda i: i.combined),
    ),
    free=_entries_of_values,
)


@dataclass(frozen=True)
class Span:
    """The operators of each kind of layer with H heads, and of IHA with P pseudo-heads, at drawn weights."""

    heads: int
    pseudo_heads: int
    applied: dict[str, np.ndarray]


def _span(*, domain: Domain, heads: int, pseudo_heads: int) -> Span:
    applied = {kind: drawn_operators(kind, heads, pseudo_heads if kind == "iha" else 1) for kind in KINDS}
    return Span(heads, pseudo_heads, applied)


def _spans(kind: str, says: str, wanted: Callable[[Span], int]) -> tuple[Claim, Claim]:
    return (
        Claim(f"span-{kind}", f"{says}: its operators span that many dimensions at drawn weights", Relation.EQUAL,
              lambda i: dimension(i.applied[kind]), wanted),
        Claim(f"operators-{kind}", f"it has {'H P^2' if kind == 'iha' else 'H'} operators", Relation.EQUAL,
              lambda i: i.applied[kind].size // i.applied[kind].shape[-1] ** 2,
              lambda i: i.heads * (i.pseudo_heads**2 if kind == "iha" else 1), scope=Scope.SIZE),
    )


def _copied(kind: str) -> Callable[[Span], Any]:
    """The last head's operators are a copy of the first's."""

    def change(instance: Span) -> Span:
        copied = instance.applied[kind].copy()
        copied[-1] = copied[0]
        return replace(instance, applied=instance.applied | {kind: copied})

    return change


def _fewer(kind: str) -> Callable[[Span], Any]:
    return lambda i: replace(i, applied=i.applied | {kind: i.applied[kind][:-1]})


SPAN = Section(
    title="the dimension that the attention operators span",
    instance=_span,
    cases=tuple(Case(f"random integers, H={h}, P={p}, N={h + 1}, d_k=2", INTEGERS, Scope.INPUT,
                     {"heads": h, "pseudo_heads": p})
                for h, p in (*((h, p) for h in (2, 1, 3, 4) for p in (1, 2, 3, 4)), (5, 2), (10, 3))),
    claims=(
        *_spans("multi-head", "multi-head attention, H", lambda i: i.heads),
        *_spans("grouped-query", "grouped-query attention with ceil(H/2) keys, H", lambda i: i.heads),
        *_spans("multi-query", "multi-query attention, H", lambda i: i.heads),
        *_spans("talking-heads", "talking heads that mix logits, H", lambda i: i.heads),
        *_spans("iha", "IHA, min(H^2, H P^2)", lambda i: min(i.heads**2, i.heads * i.pseudo_heads**2)),
    ),
    mutants=(
        *(Mutant(f"{kind}: the last head copies the first", _copied(kind), (f"span-{kind}",)) for kind in KINDS),
        *(Mutant(f"{kind}: one head fewer", _fewer(kind), (f"operators-{kind}",)) for kind in KINDS),
    ),
)
