"""Read edge lists and GML files as nodes, edges and the texts of their attributes.

What an edge weighs is judged elsewhere, by the text of the attribute that the user selects.

* `.edgelist`, `.edges`, `.txt`: one edge a line, `source target` or `source target weight`, between white
  space; `#` starts a comment, and so does `%` at the start of a line. The edges are directed, unless the
  first word of a comment before the first edge is "undirected". Labels that are all whole numbers are put in
  numerical order, other labels in the order of their first appearance.
* `.gml`: the nodes and edges of one graph, in the order of the file, named by their labels if every node has
  one and no two are the same, and by their ids otherwise.

Each pair of nodes has at most one edge (in an undirected graph, in either direction): parallel edges are
refused, since some programs add their weights and others keep the last. A self-loop is kept, once.
"""

import html
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from iha_theory.files import FilePath, read_text, refusal, refuse_large, shown, text_lines

MAX_EDGES = 1_000_000
MAX_GML_TEXTS = 5_000_000

_WHOLE = re.compile(r"0|-?[1-9][0-9]{0,17}")
_GML_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_GML_TOKEN = re.compile(r'\s+|#[^\n]*|(?P<string>"[^"]*")|(?P<word>[\[\]]|[^\s\[\]"#]+)')


class Edge(NamedTuple):
    """An edge between two rows, the texts of its attributes, and the line of the file that declares it."""

    source: int
    target: int
    attributes: Mapping[str, str]
    line: int


@dataclass
class EdgeTable:
    """The nodes and the edges of a file; in an edge list, the attribute is not `named`."""

    path: FilePath
    directed: bool
    named: bool = True
    nodes: dict[str, int] = field(default_factory=dict)
    edges: dict[tuple[int, int], Edge] = field(default_factory=dict)

    def refuse_many_edges(self, number: int, line: int) -> None:
        """Refuse a graph of more than `MAX_EDGES` edges."""
        if number > MAX_EDGES:
            raise refusal(self.path, f"has more than {MAX_EDGES} edges, the limit; take a smaller one", line)

    def add_node(self, label: str, line: int) -> int:
        """The row of a new node."""
        if label in self.nodes:
            raise refusal(self.path, f"found the node {shown(label)} a second time, wanted each once", line)
        refuse_large(self.path, len(self.nodes) + 1, len(self.nodes) + 1)
        return self.nodes.setdefault(label, len(self.nodes))

    def add_edge(self, source: str, target: str, attributes: Mapping[str, str], line: int) -> None:
        """Enter an edge between two declared nodes."""
        for label in (source, target):
            if label not in self.nodes:
                raise refusal(self.path, f"found an edge of {shown(label)}, wanted a declared node", line)
        ends = self.nodes[source], self.nodes[target]
        pair = ends if self.directed else (min(ends), max(ends))
        if pair in self.edges:
            raise refusal(self.path, f"found the edge {shown(source)} -> {shown(target)} again after line "
                                     f"{self.edges[pair].line}, wanted it once: merge parallel edges", line)
        self.edges[pair] = Edge(*ends, attributes, line)


def read_edge_list(path: FilePath) -> EdgeTable:
    """The nodes and edges of an edge list; `ValueError` if it is refused."""
    table, found = EdgeTable(path, directed=True, named=False), []
    for line, text in text_lines(read_text(path)):
        content, _, comment = text.partition("#") if not text.startswith("%") else ("", "", text[1:])
        words, remark = content.split(maxsplit=4), re.findall(r"\w+", comment[:80].lower())
        if not words:
            if not found and remark[:1] in (["directed"], ["undirected"]):
                table.directed = remark[0] == "directed"
            continue
        if len(words) not in (2, 3):
            hint = "; networkx writes it with write_weighted_edgelist" if "{" in content else ""
            raise refusal(path, f"found {shown(content.strip())}, wanted 'source target' or 'source target "
                                f"weight' with white space between{hint}", line)
        found.append((line, words))
        table.refuse_many_edges(len(found), line)
    labels = list(dict.fromkeys(label for _, words in found for label in words[:2]))
    for label in sorted(labels, key=int) if all(map(_WHOLE.fullmatch, labels)) else labels:
        table.add_node(label, 0)
    for line, (source, target, *weight) in found:
        table.add_edge(source, target, {"weight": weight[0]} if weight else {}, line)
    return table


@dataclass
class _Block:
    """What stands between two brackets of a GML file: keys with a text or a block, and the line of each."""

    path: FilePath
    line: int
    entries: list[tuple[str, "str | _Block", int]] = field(default_factory=list)

    def blocks(self, key: str) -> list["_Block"]:
        """The blocks of a key, in order."""
        found = []
        for name, value, line in self.entries:
            if name == key:
                if isinstance(value, str):
                    raise refusal(self.path, f"found {key} {shown(value)}, wanted {key} [ ... ]", line)
                found.append(value)
        return found

    def texts(self) -> dict[str, str]:
        """The texts of all keys that have one; no key may have two."""
        found: dict[str, str] = {}
        for name, value, line in self.entries:
            if isinstance(value, str):
                if name in found:
                    raise refusal(self.path, f"found {shown(name)} a second time, wanted one value", line)
                found[name] = value
        return found

    def text(self, key: str) -> str:
        """The text of a key that must be there."""
        texts = self.texts()
        if key not in texts:
            raise refusal(self.path, f"found no {key} between these brackets, wanted one", self.line)
        return texts[key]


def read_gml(path: FilePath) -> EdgeTable:
    """The nodes and edges of a GML file; `ValueError` if it is refused."""
    graphs = _parse_gml(path, read_text(path)).blocks("graph")
    if len(graphs) != 1:
        raise refusal(path, f"holds {len(graphs)} graphs, wanted exactly one")
    directed = graphs[0].texts().get("directed", "0")
    if directed not in ("0", "1"):
        raise refusal(path, f"found directed {shown(directed)}, wanted 0 or 1", graphs[0].line)
    table, nodes = EdgeTable(path, directed == "1"), graphs[0].blocks("node")
    for node in nodes:
        table.add_node(node.text("id"), node.line)
    for edge in graphs[0].blocks("edge"):
        table.refuse_many_edges(len(table.edges) + 1, edge.line)
        source, target, attributes = edge.text("source"), edge.text("target"), edge.texts()
        del attributes["source"], attributes["target"]
        table.add_edge(source, target, attributes, edge.line)
    labels = dict.fromkeys(node.texts().get("label", "") for node in nodes)
    if len(labels) == len(nodes) and "" not in labels:
        table.nodes = {label: row for row, label in enumerate(labels)}
    return table


def _parse_gml(path: FilePath, text: str) -> _Block:
    root = _Block(path, 1)
    around, key, line, position, count = [root], "", 1, 0, 0
    while position < len(text):
        token = _GML_TOKEN.match(text, position)
        if token is None:
            raise refusal(path, "found a string without its closing quotation mark", line)
        word, string = token["word"], token["string"]
        if word == "]" and not key and len(around) > 1:
            around.pop()
        elif word and not key and _GML_KEY.fullmatch(word):
            key = word
        elif word == "[" and key:
            around.append(_Block(path, line))
            around[-2].entries.append((key, around[-1], line))
            key = ""
        elif key and word != "]" and (word or string):
            around[-1].entries.append((key, word or html.unescape(string[1:-1]), line))
            key, count = "", count + 1
        elif word or string:
            wanted = f"a value of {shown(key)}" if key else "a key or ]" if len(around) > 1 else "a key"
            raise refusal(path, f"found {shown(word or string)}, wanted {wanted}", line)
        if count > MAX_GML_TEXTS:
            raise refusal(path, f"has more than {MAX_GML_TEXTS} entries, the limit; take a smaller one", line)
        position, line = token.end(), line + text.count("\n", position, token.end())
    if key or len(around) > 1:
        raise refusal(path, "ends too early, wanted a value for each key and ] for each [", line)
    return root
