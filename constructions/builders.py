"""What ``iha-theory build`` offers: constructions by name, with the options they take."""

from __future__ import annotations

from iha_theory.attention import hard, linear
from iha_theory.book import Builder, Built
from iha_theory.graphs import Graph
from iha_theory.scalars import RATIONALS

from constructions.theorem_1_operator_count import polynomial_filter_mha
from constructions.theorem_3_polynomial_filter import polynomial_filter
from constructions.shifts import cyclic_shifts, cyclic_shifts_mha

ATTENTIONS = {"linear": linear, "hard": hard}


def _filter(graph: Graph, k: int, d: int = 1, pseudo_heads: int | None = None) -> Built:
    a = RATIONALS.array(graph.adjacency)
    return Built(polynomial_filter(a, k, d, pseudo_heads=pseudo_heads), "linear", len(graph.nodes), k * d)


def _filter_mha(graph: Graph, k: int, d: int = 1) -> Built:
    return Built(polynomial_filter_mha(RATIONALS.array(graph.adjacency), k, d), "linear", len(graph.nodes), k * d)


def _shifts(n: int, pseudo_heads: int | None = None) -> Built:
    return Built(cyclic_shifts(n, pseudo_heads=pseudo_heads), "hard", n, n)


def _shifts_mha(n: int) -> Built:
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
