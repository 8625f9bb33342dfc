"""What ``iha-theory build`` offers: constructions by name, with the options they take."""

from __future__ import annotations

import numpy as np

from constructions.shifts import cyclic_shifts, cyclic_shifts_mha
from constructions.theorem_1_operator_count import polynomial_filter_mha
from constructions.theorem_3_polynomial_filter import polynomial_filter
from iha_theory.attention import hard, linear
from iha_theory.book import Builder, Built
from iha_theory.count import ceil_sqrt, parameters
from iha_theory.graphs import Graph
from iha_theory.scalars import RATIONALS

ATTENTIONS = {"linear": linear, "hard": hard}
#: Entries of the largest weights that are built; beyond, the request is refused before any work.
LARGEST = 20_000_000


def _within_reach(construction: str, **sizes: int) -> None:
    """Refuse weights with more than :data:`LARGEST` entries."""
    entries = parameters(sizes, mixed="pseudo" in sizes)
    if entries > LARGEST:
        raise ValueError(f"{construction}: the weights would have {entries:,} entries, more than {LARGEST:,}; take fewer "
                         "powers, features or tokens")


def _filter(graph: Graph, k: int, d: int = 1, pseudo_heads: int | None = None) -> Built:
    n, least = len(graph.nodes), ceil_sqrt(k)
    _within_reach("polynomial-filter", source=least, head=least, out=least, pseudo=pseudo_heads or least, model=d + n, key=n,
                  value=d * least)
    weights = polynomial_filter(_exact(graph), k, d, pseudo_heads=pseudo_heads)
    return Built(weights, "linear", n, k * d)


def _filter_mha(graph: Graph, k: int, d: int = 1) -> Built:
    n = len(graph.nodes)
    _within_reach("polynomial-filter-mha", source=k, model=d + n, key=n, value=d)
    return Built(polynomial_filter_mha(_exact(graph), k, d), "linear", n, k * d)


def _exact(graph: Graph) -> np.ndarray:
    """The graph's matrix over the rationals; doubles are taken as the exact numbers that they are."""
    return RATIONALS.array(graph.adjacency)


def _shifts(n: int, pseudo_heads: int | None = None) -> Built:
    least = ceil_sqrt(n)
    _within_reach("cyclic-shifts", source=least, head=least, out=least, pseudo=pseudo_heads or least, model=1 + n, key=n,
                  value=least)
    return Built(cyclic_shifts(n, pseudo_heads=pseudo_heads), "hard", n, n)


def _shifts_mha(n: int) -> Built:
    _within_reach("cyclic-shifts-mha", source=n, model=1 + n, key=n, value=1)
    return Built(cyclic_shifts_mha(n), "hard", n, n)


BUILDERS = {
    "polynomial-filter": Builder("Theorem 3: [X, AX, ..., A^(k-1) X] with ceil(sqrt k) heads", ("graph", "k"),
                                 ("d", "pseudo_heads"), _filter),
    "polynomial-filter-mha": Builder("Theorem 1: the same with k heads of multi-head attention", ("graph", "k"),
                                     ("d",), _filter_mha),
    "cyclic-shifts": Builder("Theorem 4: all cyclic shifts of n tokens with ceil(sqrt n) heads", ("n",),
                             ("pseudo_heads",), _shifts),
    "cyclic-shifts-mha": Builder("Theorem 4: the same with n heads of multi-head attention", ("n",), (), _shifts_mha),
}
