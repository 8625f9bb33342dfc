"""Shared brick of the accounts: parameter counts from the axes, and when IHA is the smaller.

Filter banks of k powers on N tokens with d features (Theorems 1 and 3), cyclic shifts of N tokens (Theorem 4,
which is the bank with k = N and d = 1 in its sizes) and the counting MLP. No formula of the paper stands
here: every count of attention is the product of the axes, summed.
"""

from __future__ import annotations

from math import isqrt
from typing import Any, NamedTuple

from iha_theory.count import ceil_sqrt, parameters


class Routing(NamedTuple):
    """H heads, L column blocks of the value space and P pseudo-heads, for the H L >= k blocks of a bank."""

    heads: int
    blocks: int
    pseudo_heads: int


def ceiling(numerator: int, denominator: int) -> int:
    """The least integer that is at least the quotient."""
    return -(-numerator // denominator)


def tiles(heads: int, blocks: int, pseudo_heads: int) -> int:
    """How many rectangles the H x L ones fall into when rows and columns are cut into runs of P."""
    return ceiling(heads, pseudo_heads) * ceiling(blocks, pseudo_heads)


def paper_routing(k: int) -> Routing:
    """The paper's: H = L = P = ceil(sqrt k)."""
    heads = ceil_sqrt(k)
    return Routing(heads, heads, heads)


def tiled_routing(k: int) -> Routing:
    """H = ceil(sqrt k) heads, L = ceil(k / H) blocks, and the fewest pseudo-heads that tile H x L."""
    heads = ceil_sqrt(k)
    blocks = ceiling(k, heads)
    return Routing(heads, blocks, least_pseudo_heads(heads, blocks))


def cheapest_routing(k: int, pseudo_heads: int) -> Routing:
    """The tiled routing with P pseudo-heads given and the fewest heads, as
    :func:`constructions.blocks.cheapest_cover`.

    A row of tiles has at most P heads, so that ceil(L / P) <= P, L <= P^2 and H >= k / P^2. From there on,
    the next multiple of P serves.
    """
    heads = max(ceil_sqrt(k), ceiling(k, pseudo_heads**2))
    while tiles(heads, ceiling(k, heads), pseudo_heads) > heads:
        heads += 1
    return Routing(heads, ceiling(k, heads), pseudo_heads)


def least_pseudo_heads(heads: int, blocks: int) -> int:
    """The least P for which at most H rectangles of at most P x P tile the H x L ones, L <= H.

    As for :func:`cheapest_routing`, L <= P^2 is needed.
    """
    pseudo_heads = ceil_sqrt(blocks)
    while tiles(heads, blocks, pseudo_heads) > heads:
        pseudo_heads += 1
    return pseudo_heads


def filter_iha(n: Any, d: Any, heads: Any, blocks: Any, pseudo_heads: Any) -> Any:
    """Parameters of the bank with H heads: model = d + N, key = N, value = d L."""
    return parameters({"source": heads, "head": heads, "out": heads, "pseudo": pseudo_heads, "model": d + n,
                       "key": n, "value": d * blocks})


def filter_mha(n: Any, d: Any, k: Any) -> Any:
    """Parameters of the bank with k heads of multi-head attention."""
    return parameters({"source": k, "model": d + n, "key": n, "value": d}, mixed=False)


def margin(n: Any, d: Any, k: Any, heads: Any, blocks: Any, pseudo_heads: Any) -> Any:
    """Parameters of multi-head attention less those of IHA: IHA is smaller where it is positive."""
    return filter_mha(n, d, k) - filter_iha(n, d, heads, blocks, pseudo_heads)


def least_tokens(k: int, d: int, routing: Routing) -> int | None:
    """The least N >= 1 from which on IHA is smaller, None where it never is; exact.

    With a = k - H and b = H L - k the margin is (N + d)(2aN - bd) - 4 H^2 P. For a = 0 it is negative. For
    a > 0, 8a times it is (4aN + (2a - b)d)^2 - D with D = (2a + b)^2 d^2 + 32 a H^2 P, so it is positive iff
    4aN + (2a - b)d > sqrt D, which for integers means >= isqrt(D) + 1.
    """
    heads, blocks, pseudo_heads = routing
    a, b = k - heads, heads * blocks - k
    if a <= 0:
        return None
    discriminant = ((2 * a + b) * d) ** 2 + 32 * a * heads**2 * pseudo_heads
    return max(1, ceiling(isqrt(discriminant) + 1 - (2 * a - b) * d, 4 * a))


def shifts_iha(n: Any, heads: Any) -> Any:
    """Parameters of all cyclic shifts with H = P = L heads (Theorem 4)."""
    return filter_iha(n, 1, heads, heads, heads)


def shifts_mha(n: Any) -> Any:
    """Parameters of all cyclic shifts with N heads of multi-head attention."""
    return filter_mha(n, 1, n)


def counting_units(n: Any) -> Any:
    """Hidden units of the MLP of CPM-3: all N^2 ordered pairs, j1 = j2 included."""
    return n * n


def counting_mlp_size(n: Any, width: Any) -> Any:
    """Parameters of that MLP: each unit reads ``width`` columns and writes one count."""
    return width * counting_units(n) + counting_units(n)


def cpm3_iha(n: Any, heads: Any) -> Any:
    """Parameters of CPM-3 with IHA: shifts and an MLP on H^2 columns."""
    return shifts_iha(n, heads) + counting_mlp_size(n, heads * heads)


def cpm3_mha(n: Any) -> Any:
    """Parameters of CPM-3 with multi-head attention: shifts and an MLP on N columns."""
    return shifts_mha(n) + counting_mlp_size(n, n)
