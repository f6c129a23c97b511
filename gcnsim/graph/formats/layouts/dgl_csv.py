"""DGL's CSV dataset: `meta.yaml`, a CSV of the edges and one of the nodes.

`meta.yaml` names the files (`edge_data`, `node_data`), the columns of ids (by default `src_id`, `dst_id`, `node_id`)
and the separator. Other columns are data; comma-separated numbers in a cell are a row of an array. Nodes are numbered
in the order of their ids. Format: "Loading data from CSV files" of DGL's user guide, `CSVDataset`.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, frozen
from gcnsim.graph.csr import Graph, build_csr
from gcnsim.graph.formats.arrays import HeldArrays
from gcnsim.graph.formats.layouts.layout import Document, refuse_kinds
from gcnsim.graph.formats.node_arrays import Found, node_arrays
from gcnsim.graph.formats.npz import widths_of
from gcnsim.graph.formats.source import GraphSize, text_size

_GRAPH = "graph_id"


@dataclass(frozen=True, slots=True)
class DglCsvFolder:
    """A DGL CSV dataset. document: the contents of `meta.yaml`."""

    document: Document

    @classmethod
    def found(cls, folder: Path) -> DglCsvFolder | None:
        """The layout in `folder`; None when it is another."""
        path = folder / "meta.yaml"
        if not path.is_file():
            return None
        document = Document.read(path)
        return cls(document) if "edge_data" in document.held else None

    def graph(self, name: str) -> Graph:
        """The graph, with the widths of features and labels."""
        edges, nodes = self._files()
        columns = self._columns(edges)
        ends = [edges.text(f"{side}_id_field", f"{side}_id") for side in ("src", "dst")]
        sources, targets = (self._column(edges, columns, end) for end in ends)
        ids, held = self._node_columns(nodes)
        places = [_places(str(edges.file("file_name")), end, ids) for end in (sources, targets)]
        widths = widths_of(held, ids.size)
        unused = (*widths.unused, *(f"edge column {column}" for column in columns if column not in (*ends, _GRAPH)))
        where = str(edges.file("file_name"))
        graph = build_csr(places[0], places[1], ids.size, name, ignored=unused, where=where)
        numbered = ids.dtype.kind in "iu" and np.array_equal(ids, np.arange(ids.size))
        original = None if numbered else frozen(ids) if ids.dtype.kind in "iu" else tuple(map(str, ids))
        return replace(graph, features=widths.features, classes=widths.classes, original_ids=original)

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, labels and masks, if there are such columns."""
        return node_arrays(self._node_columns(self._files()[1])[1], nodes, wanted)

    def size(self, *, features: bool) -> GraphSize:
        """By counting lines; the text of the nodes is read in full."""
        edges, nodes = (text_size(document.file("file_name")) for document in self._files())
        return GraphSize(nodes[0], 2 * edges[0], edges[1] + nodes[1] * (2 if features else 1))

    def _files(self) -> tuple[Document, Document]:
        """The entries of `meta.yaml` for edges and for nodes. Raises FileError for several kinds of either."""
        edges, nodes = (list(self.document.entries(key)) for key in ("edge_data", "node_data"))
        if len(nodes) > 1:
            refuse_kinds(
                str(self.document.path), "a CSV dataset of DGL", [str(kind.held.get("ntype")) for kind in nodes]
            )
        if len(edges) != 1 or len(nodes) != 1:
            counts = f"edge_data has {len(edges)} entries and node_data {len(nodes)}"
            raise FileError(f"{self.document.path}: {counts}; 1 of each is allowed (kinds of edges, kinds of nodes)")
        return edges[0], nodes[0]

    def _columns(self, document: Document) -> dict[str, AnyArray]:
        file = document.file("file_name")
        columns = read_columns(file, self.document.text("separator", ","))
        graphs = columns.get(document.text("graph_id_field", _GRAPH))
        if graphs is not None and np.unique(graphs).size > 1:
            raise FileError(f"{file}: {np.unique(graphs).size} graphs by {_GRAPH}; 1 is allowed")
        return columns

    def _column(self, document: Document, columns: dict[str, AnyArray], name: str) -> AnyArray:
        if name not in columns:
            file = document.file("file_name")
            raise FileError(f"{file}: column {name!r} is missing (found: {', '.join(columns)})")
        return columns[name]

    def _node_columns(self, document: Document) -> tuple[AnyArray, HeldArrays]:
        """The ids, ascending, and the other columns in that order, with lists of numbers as arrays."""
        file, columns = document.file("file_name"), self._columns(document)
        field = document.text("node_id_field", "node_id")
        ids, order, counts = np.unique(self._column(document, columns, field), return_index=True, return_counts=True)
        if (counts > 1).any():
            raise FileError(f"{file}: {field} {ids[counts > 1][0]} stands on {counts.max()} lines; 1 is allowed")
        others = {name: column for name, column in columns.items() if name not in (field, _GRAPH)}
        arrays = {name: _array(f"{file}: {name!r}", column[order]) for name, column in others.items()}
        return ids, HeldArrays(file, arrays)


def read_columns(file: Path, separator: str) -> dict[str, AnyArray]:
    """The columns of a CSV with a header, by name: numbers, truth values or texts.

    Raises FileError for damage, a separator of more than one character, columns of one name, and lines that lack a
    value.
    """
    from pyarrow import ArrowException, csv

    if len(separator) != 1:
        raise FileError(f"{file}: separator {separator!r}; one character is allowed")
    try:
        table = csv.read_csv(file, parse_options=csv.ParseOptions(delimiter=separator))
        names, columns = table.column_names, [column.to_numpy() for column in table.columns]
    except UnicodeDecodeError as error:
        raise FileError(f"{file}: not UTF-8 text (byte {error.start} of a value)") from None
    except (ArrowException, OSError, ValueError) as error:
        raise FileError(f"{file}: {' '.join(str(error).split())}") from None
    if len(set(names)) < len(names):
        raise FileError(f"{file}: two columns of one name; each name is allowed once")
    for name, column in zip(names, table.columns, strict=True):
        if str(column.type) == "binary":
            raise FileError(f"{file}: {name!r}: not UTF-8 text")
        if column.null_count and str(column.type) != "double":
            raise FileError(f"{file}: {name!r}: {column.null_count} lines have no value; each needs one")
    return {name: _plain(values) for name, values in zip(names, columns, strict=True)}


def _plain(values: AnyArray) -> AnyArray:
    return values.astype(np.str_) if values.dtype.kind == "O" else values


def _array(where: str, column: AnyArray) -> AnyArray:
    """The column, or [N, width] for texts of equally many comma-separated numbers; other texts stay texts."""
    if column.dtype.kind != "U" or not column.size:
        return column
    rows = [text.strip("[]() ") for text in column.tolist()]
    width = rows[0].count(",") + 1
    if width == 1:
        return column
    if any(row.count(",") + 1 != width for row in rows):
        raise FileError(f"{where}: rows of different lengths; each needs {width} numbers, as the first has")
    try:
        return np.array(",".join(rows).split(","), np.float64).reshape(len(rows), width)
    except ValueError as error:
        raise FileError(f"{where}: {' '.join(str(error).split())}") from None


def _places(where: str, ends: AnyArray, ids: AnyArray) -> AnyArray:
    """The position of each of `ends` among the ascending `ids`. Raises FileError for an unknown id."""
    if ends.dtype.kind != ids.dtype.kind:
        ends, ids = ends.astype(np.str_), ids.astype(np.str_)
        order = np.argsort(ids)
        return order[_places(where, ends, ids[order])]
    places = np.searchsorted(ids, ends)
    wrong = (places == ids.size) | (ids[np.minimum(places, ids.size - 1)] != ends)
    if wrong.any():
        raise FileError(f"{where}: {ends[wrong][0]} is not a node id; each end of an edge must be in the nodes' file")
    return places
