"""A graph from networkx's classic collection or from a user's file, as an exact adjacency matrix A.

A[i][j] weighs what node i reads from node j, so that A X collects what every node reads. An edge u -> v of a
file is read as "u reads from v" (`source-reads-target`) unless the user says `target-reads-source`; an
undirected edge is read both ways, a self-loop once. The entries of a matrix file are A itself, and
`target-reads-source` transposes it.

Weights come from the edge attribute "weight" if some edge has it (an edge without it weighs 1), from another
attribute if the user names it, and are all 1 on demand or where there is nothing to read; `Graph.weights`
says which. A numeric attribute of another name is never taken by guess.

`normalize="row"` divides each row by its sum and stays exact; `normalize="sym"` is D^-1/2 A D^-1/2 with the
row sums of a symmetric A on the diagonal of D: it has square roots, so its entries are float64, each within
one unit in the last place. No self-loop is added, and in both the row of a node that reads nothing stays
zero.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import flint
import numpy as np

from iha_theory.edge_files import Edge, EdgeTable, read_edge_list, read_gml
from iha_theory.files import (
    FilePath,
    exact_number,
    known_suffix,
    number_at,
    refusal,
    shown,
    suggestion,
    zeros,
)
from iha_theory.matrices import MATRIX_SUFFIXES, load_features, load_matrix

__all__ = ["GRAPH_SUFFIXES", "NAMED_GRAPHS", "NORMALIZATIONS", "ORIENTATIONS", "Graph", "load_features",
           "load_graph", "load_matrix"]

ORIENTATIONS = ("source-reads-target", "target-reads-source")
NORMALIZATIONS = ("none", "sym", "row")
GRAPH_SUFFIXES = (".graphml", ".gml", ".edgelist", ".edges", ".txt", *MATRIX_SUFFIXES)
NAMED_GRAPHS: Mapping[str, str] = MappingProxyType({  # name -> its function in networkx
    "karate": "karate_club_graph",
    "les-miserables": "les_miserables_graph",
    "florentine": "florentine_families_graph",
    "davis": "davis_southern_women_graph",
})


@dataclass(frozen=True, eq=False)
class Graph:
    """An adjacency matrix with the node of each row, and how it was read."""

    name: str  # "karate", or the name of the file
    nodes: tuple[str, ...]  # labels, in the order of the rows
    adjacency: np.ndarray  # (node, node), read-only: objects flint.fmpq, or float64 after "sym"
    directed: bool
    orientation: str  # one of ORIENTATIONS
    weights: str  # how the weights were read: "attribute 'weight'", "all 1", "matrix entries", ...
    normalization: str  # one of NORMALIZATIONS

    def __post_init__(self) -> None:
        n = len(self.nodes)
        if self.adjacency.shape != (n, n):
            raise ValueError(f"Graph {self.name}: the adjacency has the shape {self.adjacency.shape}, wanted "
                             f"{(n, n)}: one row and one column for each of the {n} nodes")
        self.adjacency.setflags(write=False)

    @property
    def is_exact(self) -> bool:
        """Whether the entries of A are exact rationals."""
        return self.adjacency.dtype == object

    def describe(self) -> str:
        """One line on what the graph is and how it was read."""
        entries = np.count_nonzero(self.adjacency)
        reader, read = ("u", "v") if self.orientation == ORIENTATIONS[0] else ("v", "u")
        reading = (f"directed, {self.orientation} (an edge u -> v means that {reader} reads from {read})"
                   if self.directed else "undirected (each end of an edge reads from the other)")
        kind = "exact" if self.is_exact else "float64 because of square roots"
        return (f"{self.name}: {len(self.nodes)} nodes, {entries} non-zero entries, {reading}; weights: "
                f"{self.weights}; normalisation: {self.normalization}, {kind}")


def load_graph(
    source: FilePath, *, orientation: str = ORIENTATIONS[0], weight: str = "weight", normalize: str = "none"
) -> Graph:
    """The graph of a name in `NAMED_GRAPHS` or of a file with one of the `GRAPH_SUFFIXES`.

    `weight` is the edge attribute to read, or "none" for weights that are all 1. Whatever cannot be read or
    normalised is refused by a `ValueError` of one line.
    """
    for option, value, known in (("orientation", orientation, ORIENTATIONS),
                                 ("normalisation", normalize, NORMALIZATIONS)):
        if value not in known:
            raise ValueError(f"unknown {option} {shown(value)}; {suggestion(value, known)}")
    table = _read_table(source)
    if isinstance(table, EdgeTable):
        nodes, directed = tuple(table.nodes), table.directed
        adjacency, weights = _weighted_adjacency(table, weight)
    else:
        adjacency, weights = _matrix_as_adjacency(source, table, weight)
        nodes, directed = tuple(map(str, range(len(table)))), not _is_symmetric(adjacency)
    if orientation == "target-reads-source":
        adjacency = adjacency.T.copy()
    name = Path(source).name if Path(source).name.isprintable() else repr(Path(source).name)
    if normalize == "row":
        adjacency = _row_normalized(name, nodes, adjacency)
    elif normalize == "sym":
        adjacency = _symmetrically_normalized(name, nodes, adjacency)
    return Graph(name, nodes, adjacency, directed, orientation, weights, normalize)


def _read_table(source: FilePath) -> EdgeTable | np.ndarray:
    """The edges of a named graph or a graph file, or the matrix of a matrix file."""
    if isinstance(source, str) and source in NAMED_GRAPHS:
        return _named_table(source)
    path = Path(source)
    if not path.suffix and path.name == str(source) and not os.path.exists(path):
        raise ValueError(f"unknown graph {shown(path.name)}; {suggestion(path.name, NAMED_GRAPHS)}; or a "
                         f"file that ends in {', '.join(GRAPH_SUFFIXES)}")
    suffix = known_suffix(source, GRAPH_SUFFIXES)
    if suffix in MATRIX_SUFFIXES:
        return load_matrix(source)
    if suffix == ".graphml":
        from iha_theory.graphml import read_graphml
        table = read_graphml(source)
    else:
        table = read_gml(source) if suffix == ".gml" else read_edge_list(source)
    if not table.nodes:
        raise refusal(source, "holds no node, wanted at least one")
    return table


def _named_table(name: str) -> EdgeTable:
    """A graph of networkx's collection, in networkx's order of the nodes."""
    import networkx

    graph = getattr(networkx, NAMED_GRAPHS[name])()
    table = EdgeTable(name, graph.is_directed())
    for node in graph:
        table.add_node(str(node), 0)
    for source, target, attributes in graph.edges(data=True):
        table.add_edge(str(source), str(target), {key: str(value) for key, value in attributes.items()}, 0)
    return table


def _weighted_adjacency(table: EdgeTable, weight: str) -> tuple[np.ndarray, str]:
    """The adjacency of edges, source by target, and how their weights were read."""
    adjacency = zeros(table.path, len(table.nodes), len(table.nodes))
    attribute, weights = _choose_weights(table, weight)
    column, what = (0, f"the attribute {shown(weight)} of an edge: ") if table.named else (3, "")
    for source, target, attributes, line in table.edges.values():
        value = flint.fmpq(1)
        if attribute in attributes:
            value = number_at(table.path, attributes[attribute], line, column, what)
        adjacency[source, target] = value
        if not table.directed:
            adjacency[target, source] = value
    return adjacency, weights


def _choose_weights(table: EdgeTable, weight: str) -> tuple[str, str]:
    """The attribute to read ("" for none), and how the weights are read in words."""
    edges = list(table.edges.values())
    if weight == "none":
        return "", "all 1"
    if having := sum(weight in edge.attributes for edge in edges):
        words = f"attribute {shown(weight)}" if table.named else "third column"
        lacking = f", and 1 for each edge without it ({len(edges) - having} of {len(edges)})"
        return weight, words + (lacking if having < len(edges) else "")
    known = list(dict.fromkeys(name for edge in edges for name in edge.attributes))
    if weight != "weight":
        rest = f"; {suggestion(weight, known)}" if known else ", and none has any other"
        raise refusal(table.path, f"no edge has the attribute {shown(weight)}{rest}; with 'none' all weigh 1")
    numeric = ", ".join(shown(name) for name in known if _is_numeric(edges, name))
    return "", "all 1" + (f" (no edge has the attribute 'weight'; to choose: {numeric})" if numeric else "")


def _is_numeric(edges: list[Edge], name: str) -> bool:
    try:
        for edge in edges:
            exact_number(edge.attributes.get(name, "1"))
    except ValueError:
        return False
    return True


def _matrix_as_adjacency(path: FilePath, matrix: np.ndarray, weight: str) -> tuple[np.ndarray, str]:
    """A square matrix as an adjacency, and how its weights were read."""
    rows, columns = matrix.shape
    if rows != columns:
        raise refusal(path, f"holds {rows} rows and {columns} columns, wanted a square matrix: a row and a "
                            "column for each node")
    if weight == "none":
        ones = zeros(path, rows, columns)
        ones[matrix != 0] = flint.fmpq(1)
        return ones, "all 1, one for each non-zero entry"
    if weight != "weight":
        raise refusal(path, f"holds a matrix, which has no attribute {shown(weight)}, wanted 'weight' "
                            "for the entries themselves, or 'none' for 1")
    binary = Path(path).suffix.lower() in (".npy", ".npz")
    return matrix, "matrix entries" + (", a float as the exact value of its binary digits" if binary else "")


def _is_symmetric(adjacency: np.ndarray) -> bool:
    return bool((adjacency == adjacency.T).all())


def _row_normalized(name: str, nodes: tuple[str, ...], adjacency: np.ndarray) -> np.ndarray:
    """Each row over its sum, exactly; a zero row stays zero."""
    normalized = adjacency.copy()
    for row, degree in enumerate(_degrees(name, nodes, adjacency)):
        if degree != 0:
            normalized[row] = adjacency[row] / degree
    return normalized


def _symmetrically_normalized(name: str, nodes: tuple[str, ...], adjacency: np.ndarray) -> np.ndarray:
    """A[i][j] / sqrt(d_i d_j) as float64, from balls of 128 bits; a zero row stays zero."""
    for i, j in zip(*np.nonzero(adjacency != adjacency.T), strict=True):
        one, other = shown(str(adjacency[i, j])), shown(str(adjacency[j, i]))
        raise ValueError(f"{name}: symmetric normalisation needs a symmetric adjacency, but node "
                         f"{shown(nodes[i])} reads {shown(nodes[j])} with the weight {one} and is read with "
                         f"{other}; choose the normalisation row or none")
    degrees = _degrees(name, nodes, adjacency)
    for node, degree in zip(nodes, degrees, strict=True):
        if degree < 0:
            raise ValueError(f"{name}: symmetric normalisation takes the square root of each row sum, but "
                             f"that of node {shown(node)} is {shown(str(degree))}; choose row or none")
    normalized = np.zeros(adjacency.shape)
    with flint.ctx.workprec(128):
        for i, j in zip(*np.nonzero(adjacency), strict=True):
            weight: Any = adjacency[i, j]
            normalized[i, j] = float(flint.arb(weight) / flint.arb(degrees[i] * degrees[j]).sqrt())
    if not np.isfinite(normalized).all():
        raise ValueError(f"{name}: symmetric normalisation leaves the range of float64; choose row or none")
    return normalized


def _degrees(name: str, nodes: tuple[str, ...], adjacency: np.ndarray) -> list[Any]:
    """The sum of each row; a sum that vanishes is refused unless its row is zero."""
    degrees = [sum(row, flint.fmpq(0)) for row in adjacency]
    for node, row, degree in zip(nodes, adjacency, degrees, strict=True):
        if degree == 0 and any(row):
            raise ValueError(f"{name}: normalisation divides each row by its sum, but the row of node "
                             f"{shown(node)} sums to 0 without being zero; choose the normalisation none")
    return degrees
