"""Graphs keep their orientation and weights, are normalised as stated, or are refused by one line."""

import math
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from flint import fmpq, fmpq_mat

from iha_theory.graphs import NAMED_GRAPHS, Graph, load_graph
from tests.refusals import refusal_of, texts, written

CASES = Path(__file__).parent / "cases"
READ_BY_SOURCE = [["0", "2", "0"], ["0", "0", "3"], ["1/2", "0", "0"]]
READ_BY_TARGET = [["0", "0", "1/2"], ["2", "0", "0"], ["0", "3", "0"]]
REFUSED = [
    ("empty.csv", "", "is empty"),
    ("entity.graphml", ", line 1", "holds a document type declaration"),
    ("infinite.csv", ", line 1, column 2", "found 'inf', which is not finite"),
    ("not_a_number.csv", ", line 2, column 1", "found 'nan', which is not finite"),
    ("not_square.csv", "", "holds 2 rows and 3 columns, wanted a square matrix"),
    ("ragged.csv", ", line 2", "found 1 entries in a row, wanted 2 as in line 1"),
    ("truncated.graphml", ", line 1, column 75", "is not well-formed XML (unclosed token)"),
    ("words.csv", ", line 1, column 2", "found 'one', which is not a number"),
]


def test_the_directed_triangle_keeps_orientation_and_weights():
    path = CASES / "graphs" / "directed_triangle.edgelist"
    graph, other = load_graph(path), load_graph(path, orientation="target-reads-source")
    assert texts(graph.adjacency) == READ_BY_SOURCE
    assert texts(other.adjacency) == READ_BY_TARGET
    assert graph.nodes == other.nodes == ("0", "1", "2")
    assert graph.describe() == (
        "directed_triangle.edgelist: 3 nodes, 3 non-zero entries, directed, source-reads-target (an edge "
        "u -> v means that u reads from v); weights: third column; normalisation: none, exact")
    assert "target-reads-source (an edge u -> v means that v reads from u)" in other.describe()


def test_two_components_keep_the_isolated_node_and_the_edge_without_a_weight():
    graph = load_graph(CASES / "graphs" / "two_components.graphml")
    assert texts(graph.adjacency) == [
        ["0", "2", "0", "0"], ["2", "0", "1", "0"], ["0", "1", "0", "0"], ["0", "0", "0", "0"]]
    assert graph.nodes == ("a", "b", "c", "alone")
    assert graph.weights == "attribute 'weight', and 1 for each edge without it (1 of 2)"
    assert "undirected (each end of an edge reads from the other)" in graph.describe()


def test_the_pattern_is_the_undirected_path():
    graph = load_graph(CASES / "graphs" / "pattern.mtx")
    assert texts(graph.adjacency) == [
        ["0", "1", "0", "0"], ["1", "0", "1", "0"], ["0", "1", "0", "1"], ["0", "0", "1", "0"]]
    assert (graph.name, graph.weights, graph.directed) == ("pattern.mtx", "matrix entries", False)


@pytest.mark.parametrize(("name", "place", "reason"), REFUSED)
def test_every_refused_case_is_refused_with_its_place(name, place, reason):
    path = CASES / "refused" / name
    message = refusal_of(load_graph, path)
    assert message.startswith(f"{path}{place}: ")
    assert reason in message


def test_no_case_is_left_out():
    assert sorted(path.name for path in (CASES / "refused").iterdir()) == [name for name, _, _ in REFUSED]
    assert sorted(path.name for path in (CASES / "graphs").iterdir()) == [
        "directed_triangle.edgelist", "pattern.mtx", "two_components.graphml"]


@pytest.mark.parametrize(("name", "original", "nodes", "edges"), [
    ("karate", nx.karate_club_graph, 34, 78), ("les-miserables", nx.les_miserables_graph, 77, 254),
    ("florentine", nx.florentine_families_graph, 15, 20), ("davis", nx.davis_southern_women_graph, 32, 89)])
class TestNamedGraphs:
    def test_the_weights_are_those_of_the_edges(self, name, original, nodes, edges):
        graph, expected, seen = load_graph(name), original(), 0
        assert graph.nodes == tuple(str(node) for node in expected)
        for u, v, attributes in expected.edges(data=True):
            i, j = graph.nodes.index(str(u)), graph.nodes.index(str(v))
            assert graph.adjacency[i, j] == graph.adjacency[j, i] == attributes.get("weight", 1)
            seen += 1
        assert seen == edges
        assert np.count_nonzero(graph.adjacency) == 2 * edges
        assert graph.weights == ("attribute 'weight'" if name in ("karate", "les-miserables") else "all 1")

    def test_powers_of_the_unweighted_adjacency_count_walks(self, name, original, nodes, edges):
        graph, expected = load_graph(name, weight="none"), original()
        power, walks = fmpq_mat(graph.adjacency.tolist()) ** 5, nx.number_of_walks(expected, 5)
        assert [[int(entry) for entry in row] for row in power.tolist()] == [
            [walks[u][v] for v in expected] for u in expected]
        assert graph.describe() == (
            f"{name}: {nodes} nodes, {2 * edges} non-zero entries, undirected (each end of an edge reads "
            "from the other); weights: all 1; normalisation: none, exact")


def test_the_karate_club_weighs_what_zachary_counted():
    assert sum(load_graph("karate").adjacency.flat) == 2 * 231
    assert sorted(NAMED_GRAPHS) == ["davis", "florentine", "karate", "les-miserables"]


def test_an_adjacency_is_not_changed_by_accident():
    graph = load_graph("florentine")
    with pytest.raises(ValueError, match="read-only"):
        graph.adjacency[0, 0] = fmpq(1)
    with pytest.raises(FrozenInstanceError):
        graph.__setattr__("name", "karate")
    assert len({graph, graph, load_graph("florentine")}) == 2


def test_an_adjacency_of_another_shape_is_refused():
    reason = "Graph g: the adjacency has the shape (2, 3), wanted (2, 2): one row and one column"
    record = ("g", ("a", "b"), np.full((2, 3), fmpq(0)), False, "source-reads-target", "all 1", "none")
    assert reason in refusal_of(Graph, *record)


def test_orientation_transposes_a_matrix(tmp_path):
    path = written(tmp_path, "a.csv", "0,2,0\n0,0,3\n0.5,0,0\n")
    graph, other = load_graph(path), load_graph(path, orientation="target-reads-source")
    assert texts(graph.adjacency) == READ_BY_SOURCE
    assert texts(other.adjacency) == READ_BY_TARGET
    assert graph.directed
    assert (graph.orientation, other.orientation) == ("source-reads-target", "target-reads-source")


def test_no_weight_is_guessed_from_another_attribute(tmp_path):
    path = written(tmp_path, "a.gml", "graph [ directed 1 node [ id 1 ] node [ id 2 ]\n"
                                      "edge [ source 1 target 2 capacity 5 note x ] ]")
    graph, chosen = load_graph(path), load_graph(path, weight="capacity")
    assert texts(graph.adjacency) == [["0", "1"], ["0", "0"]]
    assert graph.weights == "all 1 (no edge has the attribute 'weight'; to choose: 'capacity')"
    assert texts(chosen.adjacency) == [["0", "5"], ["0", "0"]]
    assert chosen.weights == "attribute 'capacity'"
    assert load_graph(path, weight="none").weights == "all 1"
    assert refusal_of(load_graph, path, weight="capasity") == (
        f"{path}: no edge has the attribute 'capasity'; did you mean 'capacity'? known: capacity, note; with "
        "'none' all weigh 1")
    assert refusal_of(load_graph, path, weight="note") == (
        f"{path}, line 2: the attribute 'note' of an edge: found 'x', which is not a number; wanted a finite "
        "number such as 2, -0.5, 1e-3 or 1/3")


def test_weights_are_all_1_on_demand(tmp_path):
    edges, matrix = written(tmp_path, "a.txt", "0 1 5\n1 0 x\n"), written(tmp_path, "a.csv", "0,-5\n0.5,0\n")
    assert texts(load_graph(edges, weight="none").adjacency) == [["0", "1"], ["1", "0"]]
    graph = load_graph(matrix, weight="none")
    assert texts(graph.adjacency) == [["0", "1"], ["1", "0"]]
    assert graph.weights == "all 1, one for each non-zero entry"
    assert (graph.directed, load_graph(matrix).directed) == (False, True)


def test_a_third_column_may_be_left_out(tmp_path):
    graph = load_graph(written(tmp_path, "a.txt", "0 1 5\n1 0\n"))
    assert texts(graph.adjacency) == [["0", "5"], ["1", "0"]]
    assert graph.weights == "third column, and 1 for each edge without it (1 of 2)"


def test_the_weights_of_an_array_say_what_a_float_stands_for(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[0, 0.1], [0.1, 0]]))
    graph = load_graph((tmp_path / "a.npy").rename(tmp_path / "a.NPY"))
    assert graph.weights == "matrix entries, a float as the exact value of its binary digits"
    assert graph.adjacency[0, 1] == fmpq(*(0.1).as_integer_ratio()) != fmpq(1, 10)


def test_rows_are_normalised_exactly_and_a_zero_row_stays_zero(tmp_path):
    graph = load_graph(written(tmp_path, "a.csv", "0,1,2\n0,0,0\n-0.1,-0.3,0\n"), normalize="row")
    assert texts(graph.adjacency) == [["0", "1/3", "2/3"], ["0", "0", "0"], ["1/4", "3/4", "0"]]
    assert graph.describe().endswith("normalisation: row, exact")


def test_a_graph_is_oriented_before_it_is_normalised(tmp_path):
    path = written(tmp_path, "a.csv", "0,1\n3,1\n")
    graph = load_graph(path, orientation="target-reads-source", normalize="row")
    assert texts(graph.adjacency) == [["0", "1"], ["1/2", "1/2"]]


@pytest.mark.parametrize("name", ["karate", "florentine"])
def test_symmetric_normalisation_is_right_to_one_unit_in_the_last_place(name):
    exact, graph = load_graph(name).adjacency, load_graph(name, normalize="sym")
    degrees = [sum(row) for row in exact]
    assert not graph.is_exact
    assert graph.describe().endswith("normalisation: sym, float64 because of square roots")
    for (i, j), entry in np.ndenumerate(graph.adjacency):
        square = exact[i, j] ** 2 / (degrees[i] * degrees[j])
        below, above = (fmpq(*math.nextafter(entry, to).as_integer_ratio()) for to in (0, math.inf))
        assert below**2 < square < above**2 if square else entry == 0


@pytest.mark.parametrize(("content", "expected"), [
    ("5e-400,0,-1e-400\n0,0,0\n-1e-400,0,5e-400\n", [[1.25, 0, -0.25], [0, 0, 0], [-0.25, 0, 1.25]]),
    ("1e1000,0\n0,1e-1000\n", [[1, 0], [0, 1]])])
def test_symmetric_normalisation_keeps_signs_zero_rows_and_large_numbers(tmp_path, content, expected):
    graph = load_graph(written(tmp_path, "a.csv", content), normalize="sym")
    assert graph.adjacency.tolist() == expected


@pytest.mark.parametrize(("content", "normalize", "reason"), [
    ("0,1\n2,0\n", "sym", "node '0' reads '1' with the weight '1' and is read with '2'; choose"),
    ("0,-3\n-3,0\n", "sym", "takes the square root of each row sum, but that of node '0' is '-3'"),
    ("1,-1\n-1,1\n", "sym", "the row of node '0' sums to 0 without being zero"),
    ("1,1\n1,-1\n", "row", "the row of node '1' sums to 0 without being zero"),
    ("-1e999,1e999,1\n1e999,-1e999,1\n1,1,0\n", "sym", "leaves the range of float64"),
])
def test_a_normalisation_that_does_not_exist_is_refused(tmp_path, content, normalize, reason):
    message = refusal_of(load_graph, written(tmp_path, "a.csv", content), normalize=normalize)
    assert message.startswith("a.csv: ")
    assert reason in message


def test_a_file_that_cannot_be_a_graph_is_refused(tmp_path):
    for suffix in ("graphml", "gml", "txt", "csv", "npz"):
        path = tmp_path / f"missing.{suffix}"
        assert refusal_of(load_graph, path).startswith(f"{path}: cannot be read (No such file or directory)")
    assert refusal_of(load_graph, tmp_path) == f"{tmp_path}: is a directory; wanted the path of a file"
    assert "the suffix '.xml' names no format" in refusal_of(load_graph, tmp_path / "a.xml")
    assert "the suffix '' names no format" in refusal_of(load_graph, tmp_path / "graph")
    assert "did you mean '.graphml'" in refusal_of(load_graph, "a.grafml")


def test_a_name_is_a_file_if_there_is_one_and_prints_on_one_line(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "karat", "0 1\n")
    assert refusal_of(load_graph, "karat").startswith("karat: the suffix '' names no format")
    written(tmp_path, "karate", "0 1\n")
    assert load_graph("karate").describe().startswith("karate: 34 nodes, ")
    graph = load_graph(written(tmp_path, "a\n.csv", "0,0\n1,0\n"))
    assert graph.describe().startswith("'a\\n.csv': 2 nodes, 1 non-zero")


def test_an_unknown_name_or_option_is_refused_with_the_nearest(tmp_path):
    assert refusal_of(load_graph, "karat") == (
        "unknown graph 'karat'; did you mean 'karate'? known: karate, les-miserables, florentine, davis; or "
        "a file that ends in .graphml, .gml, .edgelist, .edges, .txt, .csv, .mtx, .npy, .npz")
    assert "did you mean 'les-miserables'?" in refusal_of(load_graph, "les_miserables")
    assert refusal_of(load_graph, "karate", orientation="source-read-target") == (
        "unknown orientation 'source-read-target'; did you mean 'source-reads-target'? known: "
        "source-reads-target, target-reads-source")
    assert refusal_of(load_graph, "karate", normalize="rows") == (
        "unknown normalisation 'rows'; did you mean 'row'? known: none, sym, row")
    assert refusal_of(load_graph, "davis", weight="weigth") == (
        "davis: no edge has the attribute 'weigth', and none has any other; with 'none' all weigh 1")
    matrix = written(tmp_path, "a.csv", "1\n")
    assert refusal_of(load_graph, matrix, weight="capacity") == (
        f"{matrix}: holds a matrix, which has no attribute 'capacity', wanted 'weight' for the entries "
        "themselves, or 'none' for 1")


def test_the_import_is_quick_and_graphs_are_loaded_when_asked_for():
    script = ("import sys, iha_theory.graphs as graphs\n"
              "slow = {'networkx', 'scipy', 'defusedxml', 'torch', 'sympy'}\n"
              "print(*sorted(slow & set(sys.modules)), sep=',')\n"
              "graphs.load_graph('karate')\n"
              "print(*sorted(slow & set(sys.modules)), sep=',')\n")
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    before, after = run.stdout.splitlines()
    assert before == ""
    assert "networkx" in after
