"""Read a GraphML file as nodes, edges and the texts of their attributes.

The nodes and edges of one graph are kept in the order of the file, and the default value of an attribute
counts. Ports, positions and drawing data are passed over. Hyperedges, nested graphs and single edges that
differ from the graph's `edgedefault` are refused, and so is every document type declaration: no entity is
expanded and no other file is read.
"""

from collections.abc import Mapping
from typing import Any

from defusedxml.common import DefusedXmlException
from defusedxml.ElementTree import DefusedXMLParser, ParseError

from iha_theory.edge_files import EdgeTable
from iha_theory.files import FilePath, read_bytes, refusal, shown

_ENCODINGS = ("utf-8", "utf-16", "iso-8859-1", "us-ascii")  # those that the parser reads by itself


def read_graphml(path: FilePath) -> EdgeTable:
    """The nodes and edges of a GraphML file; `ValueError` if it is refused."""
    data, target = read_bytes(path), _Target(path)
    parser: Any = DefusedXMLParser(target=target, forbid_dtd=True)
    target.parser = parser.parser
    target.parser.XmlDeclHandler = target.declaration
    try:
        parser.feed(data)
        return parser.close()
    except ParseError as error:
        line, column = error.position
        reason = str(error).partition(": line")[0]
        raise refusal(path, f"is not well-formed XML ({reason}), wanted a complete GraphML document",
                      line, column + 1) from None
    except DefusedXmlException:
        raise refusal(path, "holds a document type declaration, which can define entities; wanted GraphML "
                            "without <!DOCTYPE ...>", target.parser.CurrentLineNumber) from None


class _Target:
    """Collects the nodes, the edges and their data as the parser meets them; nothing else is kept."""

    def __init__(self, path: FilePath) -> None:
        self.path = path
        self.parser: Any = None
        self.table: EdgeTable | None = None
        self.around: list[str] = []  # the elements that are open
        self.names: dict[str, str] = {}  # id of a key of edges -> name of the attribute
        self.defaults: dict[str, str] = {}  # id of a key -> default value
        self.edges: list[tuple[str, str, dict[str, str], int]] = []
        self.key = ""  # id of the key whose declaration or data was opened last
        self.text: list[str] = []

    def refused(self, problem: str) -> ValueError:
        """The error for the place where the parser is."""
        return refusal(self.path, problem, self.parser.CurrentLineNumber)

    def declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        """Judge the encoding that the document declares."""
        if encoding and encoding.lower() not in _ENCODINGS:
            raise self.refused(f"is encoded in {shown(encoding)}, wanted UTF-8")

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Enter an element; its tag comes as `{namespace}name`."""
        tag, within = tag.rpartition("}")[2], self.around[-1] if self.around else ""
        self.around.append(tag)
        if self.around[-3:] in (["graphml", "key", "default"], ["graph", "edge", "data"]):
            self.text.clear()
        else:
            self.text.append(f"<{tag}>")  # a value that holds an element is no number

        def value(name: str) -> str:
            if name not in attributes:
                raise self.refused(f"found <{tag}> without the attribute {name}, wanted a value for it")
            return attributes[name]

        match within, tag:
            case "", other if other != "graphml":
                raise self.refused(f"found the document element {shown(other)}, wanted 'graphml'")
            case "graphml", "key":
                self.key = value("id")
                if attributes.get("for", "all") in ("edge", "all"):
                    self.names[self.key] = attributes.get("attr.name", self.key)
            case _, "graph":
                if within != "graphml" or self.table:
                    raise self.refused("found a second or an inner graph, wanted one directly in <graphml>")
                if value("edgedefault") not in ("directed", "undirected"):
                    found = shown(value("edgedefault"))
                    raise self.refused(f"found edgedefault {found}, wanted 'directed' or 'undirected'")
                self.table = EdgeTable(self.path, value("edgedefault") == "directed")
            case "graph", "node" if self.table:
                self.table.add_node(value("id"), self.parser.CurrentLineNumber)
            case "graph", "edge" if self.table:
                default = "true" if self.table.directed else "false"
                if attributes.get("directed", default) != default:
                    found = shown(attributes["directed"])
                    raise self.refused(f"found an edge with directed={found}, wanted all as edgedefault says")
                self.table.refuse_many_edges(len(self.edges) + 1, self.parser.CurrentLineNumber)
                self.edges.append((value("source"), value("target"), {}, self.parser.CurrentLineNumber))
            case "graph", "hyperedge":
                raise self.refused("found a hyperedge, wanted edges between two nodes")
            case "edge", "data" if self.around[-3:-1] == ["graph", "edge"]:
                self.key = value("key")
                if self.key not in self.names:
                    raise self.refused(f"found data of {shown(self.key)}, wanted a key declared for edges")

    def data(self, text: str) -> None:
        """Take a piece of text."""
        self.text.append(text)

    def end(self, tag: str) -> None:
        """Leave an element, with its text if it holds the value or the default of an attribute."""
        place = self.around[-3:]
        self.around.pop()
        if place == ["graphml", "key", "default"]:
            self.defaults[self.key] = "".join(self.text).strip()
        elif place == ["graph", "edge", "data"]:
            name, values = self.names[self.key], self.edges[-1][2]
            if name in values:
                raise self.refused(f"found a second value of {shown(name)}, wanted one an edge")
            values[name] = "".join(self.text).strip()

    def close(self) -> EdgeTable:
        """The whole graph; only now are all of its nodes known."""
        if self.table is None:
            raise refusal(self.path, "holds no graph, wanted one")
        defaults = {self.names[key]: value for key, value in self.defaults.items() if key in self.names}
        for source, target, values, line in self.edges:
            self.table.add_edge(source, target, defaults | values, line)
        return self.table
