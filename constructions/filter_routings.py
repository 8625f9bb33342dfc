"""Which routing of Theorem 3 a case takes and a request asks for: P = H, tiled with P < H, or the signed one.

A routing writes the all-ones H x L matrix as a sum of rank-one matrices, one for each head; P is the largest support
(:class:`constructions.blocks.Cover`). The weights it routes are those of
:func:`constructions.theorem_3_polynomial_filter.polynomial_filter`.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np

from constructions.bank_cases import DEFAULT_K, requested_banks
from constructions.blocks import Cover, cheapest_cover, cheapest_sizes, full_cover, tiled_cover
from iha_theory.claims import Case, Request
from iha_theory.count import ceil_sqrt

#: H = L = 3 with P = 2, where no 0/1 cover exists; it needs 1/2.
SIGNED = Cover(
    np.array([[0, 1, Fraction(1, 2)], [1, 0, Fraction(1, 2)], [-1, 1, 0]], dtype=object),
    np.array([[0, 2, 1], [2, 0, 1], [1, -1, 0]], dtype=object),
)


def chosen_cover(k: int, pseudo_heads: int | None = None, heads: int | None = None, signed: bool = False) -> Cover:
    """The routing of a case: the paper's (P = H), the tiled one with P given, or the signed one of H = 3, P = 2.

    Args:
        heads: H; None takes the fewest that the routing allows.
    """
    if signed:
        return SIGNED
    if pseudo_heads is None:
        return full_cover(ceil_sqrt(k))
    if heads is not None:
        return tiled_cover(heads, -(-k // heads), pseudo_heads)
    return cheapest_cover(k, pseudo_heads)


def _sizes(pseudo_heads: int | None, k: int, d: int, n: int) -> dict[str, int]:
    """The axes of the layer that a case will build, without building its routing."""
    heads, blocks = (ceil_sqrt(k), ceil_sqrt(k)) if pseudo_heads is None else cheapest_sizes(k, pseudo_heads)
    return {"source": heads, "head": heads, "out": heads, "pseudo": min(heads, pseudo_heads or heads), "model": d + n,
            "key": n, "value": d * blocks}


def _is_tiled(request: Request) -> bool:
    """Whether fewer pseudo-heads than heads are asked for.

    Raises:
        ValueError: more pseudo-heads than heads.
    """
    p, heads = request.pseudo_heads, ceil_sqrt(DEFAULT_K if request.k is None else max(1, request.k))
    if p is None:
        return False
    if p > heads:
        raise ValueError(f"pseudo-heads: got P={p}, but {heads} heads do with at most P={heads}; leave P out for P = H")
    return p < heads


def requested(request: Request) -> tuple[Case, ...]:
    """The cases with P = H that a request asks for; none if it asks for fewer."""
    if _is_tiled(request):
        return ()
    return requested_banks(replace(request, pseudo_heads=None), partial(_sizes, None))


def requested_tiled(request: Request) -> tuple[Case, ...]:
    """The cases with P < H that a request asks for; none if it asks for P = H."""
    if not _is_tiled(request):
        return ()
    return requested_banks(request, partial(_sizes, request.pseudo_heads))
