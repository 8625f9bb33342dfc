"""A graph in a file is read with all it says, in its order, or refused by one line with the place."""

from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from flint import fmpq

from iha_theory.edge_files import MAX_EDGES, MAX_GML_TEXTS
from iha_theory.graphs import load_graph
from tests.refusals import refusal_of, texts, written

KEY = '<key id="w" for="edge" attr.name="weight" attr.type="double"/>'
NODES = '<node id="a"/><node id="b"/><node id="c"/>'


def graphml(body: str) -> str:
    """A GraphML document."""
    return f'<graphml xmlns="http://graphml.graphdrawing.org/xmlns">{body}</graphml>'


def graph_of(body: str, before: str = "", default: str = "directed") -> str:
    """A GraphML document with one graph of three nodes, and with its edges on a second line."""
    return graphml(f'{before}<graph edgedefault="{default}">{NODES}\n{body}</graph>')


def edge(source: str, target: str, weight: str = "") -> str:
    """An edge of a GraphML document."""
    data = f'<data key="w">{weight}</data>' if weight else ""
    return f'<edge source="{source}" target="{target}">{data}</edge>'


@pytest.mark.parametrize(("name", "content"), [
    ("a.edges", "a b 2\nb c 3 # a remark\n\n% a remark\nc a 0.5\n"),
    ("a.txt", "# Directed graph\na\tb\t2\nb  c  3\nc a 1/2\n"),
    ("a.graphml", graph_of(edge("a", "b", "2") + edge("b", "c", " 3.0\n") + edge("c", "a", "5e-1"), KEY)),
    ("a.graphml", graphml(KEY + '<graph edgedefault="directed">' + edge("c", "a", "0.5") + edge("b", "c", "3")
                          + edge("a", "b", "2").replace(">", ' directed="true">', 1) + NODES + "</graph>")),
    ("a.gml", 'Creator "x" graph [ directed 1 node [ id 4 label "a" ] node [ id 5 label "b" ]\n'
              'node [ id 3 label "c" ] # a remark\nedge [ source 4 target 5 weight 2 ]\n'
              'edge [ source 5 target 3 weight 3.0 graphics [ x 1 ] ]\n'
              'edge [ source 3 target 4 weight "0.5" ] ]'),
])
def test_every_format_reads_the_same_triangle(tmp_path, name, content):
    graph = load_graph(written(tmp_path, name, content))
    assert texts(graph.adjacency) == [["0", "2", "0"], ["0", "0", "3"], ["1/2", "0", "0"]]
    assert graph.nodes == ("a", "b", "c")
    assert graph.directed


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize(("suffix", "write"), [
    ("graphml", nx.write_graphml), ("gml", nx.write_gml), ("edgelist", nx.write_weighted_edgelist)])
def test_what_networkx_writes_is_read_back(tmp_path, kind, suffix, write):
    original, path = kind(), tmp_path / f"a.{suffix}"
    edges = [("n3", "n1", 0.1), ("n1", "n4", -2), ("n4", "n4", 7), ("n2", "n1", 1e-05)]
    original.add_weighted_edges_from(edges)
    write(original, path)
    if suffix == "edgelist" and kind is nx.Graph:
        path.write_text("# Undirected graph\n" + path.read_text())
    graph = load_graph(path)
    weights = {0.1: fmpq(1, 10), -2: fmpq(-2), 7: fmpq(7), 1e-05: fmpq(1, 100000)}
    assert graph.nodes == ("n3", "n1", "n4", "n2")
    assert graph.directed == original.is_directed()
    for i, u in enumerate(graph.nodes):
        for j, v in enumerate(graph.nodes):
            expected = weights[original[u][v]["weight"]] if original.has_edge(u, v) else fmpq(0)
            assert graph.adjacency[i, j] == expected


@pytest.mark.parametrize(("comment", "directed"), [
    ("# undirected", False), ("% Undirected graph: each edge once", False), ("# directed", True),
    ("# names", True), ("# an undirected graph", True), ("0 1\n# undirected", True), ("", True)])
def test_the_comment_of_an_edge_list_says_whether_it_is_directed(tmp_path, comment, directed):
    graph = load_graph(written(tmp_path, "a.txt", f"{comment}\n1 2\n"))
    i, j = graph.nodes.index("1"), graph.nodes.index("2")
    assert graph.directed == directed
    assert graph.adjacency[i, j] == 1
    assert graph.adjacency[j, i] == (0 if directed else 1)


@pytest.mark.parametrize(("content", "nodes"), [
    ("10 9\n-1 2\n", ("-1", "2", "9", "10")), ("10 9\nx 2\n", ("10", "9", "x", "2")),
    ("10 09\n1 2\n", ("10", "09", "1", "2"))])
def test_whole_numbers_are_put_in_order_and_other_labels_as_they_appear(tmp_path, content, nodes):
    assert load_graph(written(tmp_path, "a.txt", content)).nodes == nodes


def test_a_self_loop_is_kept_once(tmp_path):
    graph = load_graph(written(tmp_path, "a.txt", "# undirected\n0 0 5\n0 1\n"))
    assert texts(graph.adjacency) == [["5", "1"], ["1", "0"]]


@pytest.mark.parametrize(("first", "second", "nodes"), [
    ("id 7 label x", "id 8 label x", ("7", "8")), ("id 7 label x", "id 8", ("7", "8")),
    ('id 7 label "&#233;&amp;"', 'id 8 label "x y"', ("\u00e9&", "x y"))])
def test_gml_names_nodes_by_ids_unless_labels_tell_them_apart(tmp_path, first, second, nodes):
    content = f"graph [ node [ {first} ] node [ {second} ] edge [ source 7 target 8 ] ]"
    graph = load_graph(written(tmp_path, "a.gml", content))
    assert graph.nodes == nodes
    assert texts(graph.adjacency) == [["0", "1"], ["1", "0"]]
    assert graph.weights == "all 1"


def test_a_graphml_attribute_has_a_default_and_drawing_data_are_passed_over(tmp_path):
    keys = ('<key id="w" attr.name="weight"><default>7</default></key>'
            '<key id="n" for="node" attr.name="weight"><default>9</default></key><key id="g" for="edge"/>')
    drawn = ('<edge source="a" target="b"><data key="g"><y:Line xmlns:y="y"><data key="w">8</data></y:Line>'
             '</data><port name="p"/></edge>')
    stray = '<node id="d"><edge><data key="w">8</data></edge></node>stray'
    graph = load_graph(written(tmp_path, "a.graphml", graph_of(drawn + edge("b", "c", "2") + stray, keys)))
    assert texts(graph.adjacency[:3]) == [["0", "7", "0", "0"], ["0", "0", "2", "0"], ["0", "0", "0", "0"]]
    assert graph.weights == "attribute 'weight'"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "iso-8859-1"])
def test_graphml_is_read_in_the_encoding_that_it_declares(tmp_path, encoding):
    body = graphml('<graph edgedefault="directed"><node id="\u00e9"/></graph>')
    text = f'<?xml version="1.0" encoding="{encoding}"?>{body}'
    assert load_graph(written(tmp_path, "a.graphml", text.encode(encoding))).nodes == ("\u00e9",)


def refused_with(path: Path, place: str, reason: str) -> None:
    """Check that the refusal of a file names the place and the reason."""
    message = refusal_of(load_graph, path)
    assert message.startswith(f"{path}{place}: ")
    assert reason in message


@pytest.mark.parametrize(("content", "place", "reason"), [
    ("# nothing\n", "", "holds no node, wanted at least one"),
    ("0\n", ", line 1", "found '0', wanted 'source target' or 'source target weight'"),
    ("0 1\n0 1 2 3\n", ", line 2", "found '0 1 2 3', wanted 'source target'"),
    ("0 1 {'weight': 2}\n", ", line 1", "between; networkx writes it with write_weighted_edgelist"),
    ("0 # alone\n", ", line 1", "found '0', wanted"),
    ("0 1\n1 2 x\n", ", line 2, column 3", "found 'x', which is not a number"),
    ("0,1,2\n", ", line 1", "found '0,1,2', wanted 'source target'"),
    ("0 1\n1 0\n0 1\n", ", line 3", "the edge '0' -> '1' again after line 1, wanted it once: merge parallel"),
    ("# undirected\n0 1\n1 0\n", ", line 3", "found the edge '1' -> '0' again after line 2"),
    (b"\xff\xfe0\x00", "", "is not UTF-8 text"),
])
def test_an_edge_list_is_refused_with_its_place(tmp_path, content, place, reason):
    refused_with(written(tmp_path, "a.txt", content), place, reason)


@pytest.mark.parametrize(("content", "place", "reason"), [
    ('graph [ node [ id 1 label "x ] ]\n', ", line 1", "found a string without its closing quotation mark"),
    ("graph [\nnode [ id 1 ]\n", ", line 3", "ends too early"),
    ("graph", ", line 1", "ends too early"),
    ("graph [ ] ]", ", line 1", "found ']', wanted a key"),
    ("graph [ [ ] ]", ", line 1", "found '[', wanted a key or ]"),
    ("graph [\n5 5 ]", ", line 2", "found '5', wanted a key or ]"),
    ("graph [ directed ]", ", line 1", "found ']', wanted a value of 'directed'"),
    ('graph [ "directed" 1 ]', ", line 1", "found '\"directed\"', wanted a key or ]"),
    ("graph [ ]", "", "holds no node, wanted at least one"),
    ("graph 5", ", line 1", "found graph '5', wanted graph [ ... ]"),
    ("version 2", "", "holds 0 graphs, wanted exactly one"),
    ("graph [ ] graph [ ]", "", "holds 2 graphs, wanted exactly one"),
    ("\ngraph [ directed 2 ]", ", line 2", "found directed '2', wanted 0 or 1"),
    ("graph [\nnode [ label 1 ] ]", ", line 2", "found no id between these brackets"),
    ("graph [\nnode [ id 1 id 2 ] ]", ", line 2", "found 'id' a second time"),
    ("graph [ node [ id 1 ]\nnode [ id 1 ] ]", ", line 2", "found the node '1' a second time"),
    ("graph [ node [ id 1 ]\nedge [ source 1 target 2 ] ]", ", line 2", "found an edge of '2', wanted a"),
    ("graph [ node [ id 1 ]\nedge [ source 1 ] ]", ", line 2", "found no target between these brackets"),
    ("graph [ node [ id 1 ]\nedge [ source 1 target 1 weight x ] ]", ", line 2",
     "the attribute 'weight' of an edge: found 'x', which is not a number"),
    ("graph [ node [ id 1 ] edge [ source 1 target 1 ]\nedge [ source 1 target 1 ] ]", ", line 2",
     "the edge '1' -> '1' again after line 1"),
])
def test_a_gml_file_is_refused_with_its_place(tmp_path, content, place, reason):
    refused_with(written(tmp_path, "a.gml", content), place, reason)


@pytest.mark.parametrize(("content", "place", "reason"), [
    ("<gexf/>", ", line 1", "found the document element 'gexf', wanted 'graphml'"),
    (graphml(""), "", "holds no graph, wanted one"),
    (graphml('<graph edgedefault="directed"/>'), "", "holds no node, wanted at least one"),
    (graphml("\n<graph/>"), ", line 2", "found <graph> without the attribute edgedefault"),
    (graphml('\n<graph edgedefault="both"/>'), ", line 2", "found edgedefault 'both', wanted 'directed'"),
    (graphml('<graph edgedefault="directed"/>\n<graph edgedefault="directed"/>'), ", line 2", "second or"),
    (graphml('<x><graph edgedefault="directed"/></x>'), ", line 1", "found a second or an inner graph"),
    (graph_of('<node id="d"><graph edgedefault="directed"/></node>'), ", line 2", "an inner graph"),
    (graphml(f"\n{KEY.replace('id=', 'it=')}"), ", line 2", "found <key> without the attribute id"),
    (graph_of("<node/>"), ", line 2", "found <node> without the attribute id"),
    (graph_of('<node id="b"/>'), ", line 2", "found the node 'b' a second time"),
    (graph_of('<edge source="a"/>'), ", line 2", "found <edge> without the attribute target"),
    (graph_of(edge("a", "d")), ", line 2", "found an edge of 'd', wanted a declared node"),
    (graph_of(edge("a", "b") + "\n" + edge("a", "b")), ", line 3", "the edge 'a' -> 'b' again after line 2"),
    (graph_of(edge("a", "b") + "\n" + edge("b", "a"), default="undirected"), ", line 3",
     "found the edge 'b' -> 'a' again after line 2, wanted it once: merge"),
    (graph_of('<edge source="a" target="b" directed="true"/>', default="undirected"), ", line 2",
     "found an edge with directed='true', wanted all as edgedefault says"),
    (graph_of("<hyperedge/>"), ", line 2", "found a hyperedge, wanted edges between two nodes"),
    (graph_of(edge("a", "b", "1")), ", line 2", "found data of 'w', wanted a key declared for edges"),
    (graph_of(edge("a", "b", "1"), KEY.replace("edge", "node")), ", line 2", "found data of 'w'"),
    (graph_of(edge("a", "b", '1</data><data key="w">2'), KEY), ", line 2", "found a second value"),
    (graph_of(edge("a", "b", "1e"), KEY), ", line 2", "the attribute 'weight' of an edge: found '1e', which"),
    (graph_of(edge("a", "b", "1<x>2</x>3"), KEY), ", line 2", "found '1<x>23', which is not a number"),
    (graph_of(edge("a", "b", "&nbsp;"), KEY), ", line 2, column 43", "is not well-formed XML (undefined"),
    ('<?xml version="1.0" encoding="utf-7"?>' + graphml(""), ", line 1", "is encoded in 'utf-7', wanted"),
    ("<!DOCTYPE graphml>" + graph_of(""), ", line 1", "holds a document type declaration"),
    ('<!DOCTYPE g SYSTEM "file:///etc/hostname">' + graph_of(""), ", line 1", "document type declaration"),
    ('\n<!DOCTYPE g[<!ENTITY a SYSTEM "file:///etc/issue">]>' + graph_of("&a;"), ", line 2", "declaration"),
])
def test_a_graphml_file_is_refused_with_its_place(tmp_path, content, place, reason):
    refused_with(written(tmp_path, "a.graphml", content), place, reason)


@pytest.mark.parametrize(("name", "few", "many"), [
    ("a.txt", "0 1\n1 2\n", "0 1\n1 2\n2 0\n"),
    ("a.graphml", graph_of(edge("a", "b") + edge("b", "c")),
     graph_of(edge("a", "b") + edge("b", "c") + edge("c", "a"))),
    ("a.gml", "graph [ node [ id 1 ] node [ id 2 ] edge [ source 1 target 1 ] edge [ source 2 target 2 ] ]",
     "graph [ node [ id 1 ] node [ id 2 ] " + "edge [ source 1 target 2 ] edge [ source 2 target 2 ] "
     "edge [ source 1 target 1 ] ]"),
])
def test_too_many_edges_are_refused(tmp_path, monkeypatch, name, few, many):
    monkeypatch.setattr("iha_theory.edge_files.MAX_EDGES", 2)
    assert np.count_nonzero(load_graph(written(tmp_path, name, few)).adjacency) == 2
    assert "has more than 2 edges, the limit" in refusal_of(load_graph, written(tmp_path, name, many))
    assert (MAX_EDGES, MAX_GML_TEXTS) == (1_000_000, 5_000_000)


def test_a_gml_file_of_too_many_entries_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("iha_theory.edge_files.MAX_GML_TEXTS", 9)
    assert "holds 0 graphs" in refusal_of(load_graph, written(tmp_path, "a.gml", "a 1 " * 9))
    assert "more than 9 entries" in refusal_of(load_graph, written(tmp_path, "a.gml", "a 1 " * 10))


def test_a_refusal_says_no_more_than_is_so(tmp_path):
    path = written(tmp_path, "a.txt", "0 1 2 3\n")
    assert refusal_of(load_graph, path).endswith("'source target weight' with white space between")
    assert refusal_of(load_graph, written(tmp_path, "a.gml", "]")).endswith("found ']', wanted a key")


def test_a_graph_too_large_is_refused_before_its_matrix_is_allocated(tmp_path):
    nodes = "".join(f'<node id="{number}"/>' for number in range(3350))
    path = written(tmp_path, "a.graphml", graphml(f'<graph edgedefault="directed">{nodes}</graph>'))
    assert "3345 rows and 3345 columns of exact numbers need about 0.5002 GiB" in refusal_of(load_graph, path)
