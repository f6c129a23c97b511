"""Datasets of DGL on disk: its CSV dataset, and GraphBolt's.

CSV: `meta.yaml` names the files (`edge_data`, `node_data`), the columns of ids (by default `src_id`, `dst_id`,
`node_id`) and the separator. Other columns are data; comma-separated numbers in a cell are a row of an array. Nodes are
numbered in the order of their ids. Format: "Loading data from CSV files" of DGL's user guide, `CSVDataset`.

GraphBolt: `metadata.yaml`, and the arrays that it names. `graph.nodes` has the number of nodes, `graph.edges` a file:
NumPy [2, E], or CSV without a header. `feature_data` names arrays of the nodes; a task has `train_set`,
`validation_set` and `test_set`, each with `seeds` (node numbers; older releases say `seed_nodes`) and `labels`. Format:
"YAML specification" of DGL's documentation of OnDiskDataset (2.x).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, frozen
from gcnsim.graph.csr import Graph, build_csr
from gcnsim.graph.formats.arrays import HeldArrays, NpyFiles, class_count, npy_shape, read_npy, whole_numbers, whole_row
from gcnsim.graph.formats.contents import PARTS, contents_of
from gcnsim.graph.formats.layouts.layout import Document, read_numbers, refuse_kinds
from gcnsim.graph.formats.node_arrays import Found, check_whole, mask_of, node_arrays
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


_SETS = {"train": "train_set", "val": "validation_set", "test": "test_set"}
_SEEDS = ("seeds", "seed_nodes", "nodes", "node_ids")
_NUMPY, _CSV = "numpy", "csv"


@dataclass(frozen=True, slots=True)
class _Sets:
    """The split.

    ids and labels of each part, as files; classes: from the task; unused: skipped contents of the tasks.
    """

    ids: dict[str, Path]
    labels: dict[str, Path]
    classes: int | None = None
    unused: tuple[str, ...] = ()
    note: str = ""


@dataclass(frozen=True, slots=True)
class GraphBoltFolder:
    """A GraphBolt dataset. document: the contents of `metadata.yaml`."""

    document: Document

    @classmethod
    def found(cls, folder: Path) -> GraphBoltFolder | None:
        """The layout in `folder`; None for another layout. Raises FileError for preprocessed GraphBolt data."""
        path = folder / "metadata.yaml"
        if not path.is_file():
            return None
        document = Document.read(path)
        if "graph_topology" in document.held:
            raise FileError(
                f"{path}: GraphBolt's preprocessed dataset, whose graph is a pickle of PyTorch, never opened; "
                "give the folder around it, which has the metadata.yaml that was preprocessed"
            )
        return cls(document)

    def graph(self, name: str) -> Graph:
        """The graph, with the widths of features and labels."""
        nodes, table = self._nodes(), self._table()
        features, sets = self._features(), self._sets()
        widths = widths_of(features, nodes)
        labels = self._labels(sets, nodes)
        classes = sets.classes or (widths.classes if labels is None else class_count(labels))
        twice = contents_of(features).labels if labels is not None else None
        unused = (*widths.unused, *([twice] if twice else ()), *self._unread(), *sets.unused)
        where = str(self._edges().file("path"))
        return build_csr(
            table[0], table[1], nodes, name, features=widths.features, classes=classes, ignored=unused, where=where
        )

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """Features, and the first task's labels and sets."""
        sets = self._sets()
        found = node_arrays(self._features(), nodes, [name for name in wanted if name not in ("train_mask",)])
        arrays = dict(found.arrays)
        labels = self._labels(sets, nodes) if "labels" in wanted else None
        if labels is not None:
            arrays["labels"] = labels
        for part, file in sets.ids.items():
            arrays[f"{part}_mask"] = mask_of(str(file), _ids(file), nodes)
        return Found(arrays, found.spelled, (*found.notes, *([sets.note] if sets.note else [])))

    def size(self, *, features: bool) -> GraphSize:
        """From headers, of CSV by counting lines."""
        edges, nodes, held = self._edges(), self._nodes(), self._features()
        file = edges.file("path")
        if edges.text("format") == _CSV:
            lines, loaded = text_size(file)
        else:
            lines, loaded = math.prod(npy_shape(file)) // 2, 0
        name = contents_of(held).features
        return GraphSize(nodes, 2 * lines, loaded + 8 * nodes + (held.nbytes(name) if features and name else 0))

    def _nodes(self) -> int:
        kinds = list(self.document.inner("graph").entries("nodes"))
        if len(kinds) > 1:
            names = [str(kind.held.get("type")) for kind in kinds]
            refuse_kinds(str(self.document.path), "a GraphBolt dataset", names)
        if not kinds:
            raise FileError(f"{self.document.path}: graph.nodes is missing; the number of nodes is needed")
        return kinds[0].count("num")

    def _edges(self) -> Document:
        kinds = list(self.document.inner("graph").entries("edges"))
        if len(kinds) != 1:
            raise FileError(
                f"{self.document.path}: graph.edges has {len(kinds)} entries (kinds of edges); 1 is allowed"
            )
        return kinds[0]

    def _table(self) -> AnyArray:
        """Sources and targets, [2, E]."""
        edges = self._edges()
        file, form = edges.file("path"), edges.text("format")
        if form == _CSV:
            table = read_numbers(file, np.int64).T
        elif form == _NUMPY:
            table = whole_numbers(str(file), read_npy(file))
        else:
            raise edges.wrong("format", f"{_NUMPY} or {_CSV}")
        if table.ndim != 2 or (table.size and table.shape[0] != 2):
            sides = list(table.shape if form == _NUMPY else table.T.shape)
            raise FileError(f"{file}: edges have shape {sides}; {'[2, E]' if form == _NUMPY else '[E, 2]'} is needed")
        return table if table.size else np.empty((2, 0), np.int64)

    def _entries(self) -> Iterator[Document]:
        yield from self.document.entries("feature_data")

    def _features(self) -> NpyFiles:
        """The arrays of the nodes, by their names in the document."""
        files = {
            entry.text("name"): entry.file("path")
            for entry in self._entries()
            if entry.held.get("domain") == "node" and entry.held.get("format") == _NUMPY
        }
        return NpyFiles(self.document.path.parent, files)

    def _unread(self) -> tuple[str, ...]:
        return tuple(
            f"{entry.held.get('domain')} {entry.held.get('name')} ({entry.held.get('format')})"
            for entry in self._entries()
            if entry.held.get("domain") != "node" or entry.held.get("format") != _NUMPY
        )

    def _sets(self) -> _Sets:
        tasks = list(self.document.entries("tasks"))
        if not tasks:
            return self._unnamed_sets()
        task, others = tasks[0], tuple(f"task {other.held.get('name')}" for other in tasks[1:])
        ids: dict[str, Path] = {}
        labels: dict[str, Path] = {}
        for part, key in _SETS.items():
            for entry in task.entries(key):
                for data in entry.entries("data"):
                    if data.text("format") != _NUMPY:
                        raise data.wrong("format", _NUMPY)
                    if data.held.get("name") in _SEEDS:
                        ids[part] = data.file("path")
                    elif data.held.get("name") in ("labels", "label"):
                        labels[part] = data.file("path")
        pairs = any(len(npy_shape(file)) != 1 for file in ids.values())
        if pairs or len(ids) < len(PARTS):
            return _Sets({}, {}, unused=(f"task {task.held.get('name')} (no node numbers in all three sets)", *others))
        classes = task.held.get("num_classes")
        return _Sets(ids, labels, classes if type(classes) is int and classes > 0 else None, others)

    def _unnamed_sets(self) -> _Sets:
        """The files of `set/` by their names, if the document names no task."""
        files = NpyFiles.in_folder(self.document.path.parent / "set")
        held = contents_of(files)
        split = held.split
        if not split:
            return _Sets({}, {})
        check_whole(files, held)
        ids = {part: files.files[found.name] for part, found in split.items()}
        spelled = {part: f"{found.name.split('_')[0]}_labels" for part, found in split.items()}
        labels = {part: files.files[name] for part, name in spelled.items() if name in files.files}
        note = "split and labels are the files in set/, which metadata.yaml does not name"
        return _Sets(ids, labels, note=note if labels else note.replace(" and labels are", " is"))

    def _labels(self, sets: _Sets, nodes: int) -> AnyArray | None:
        """int64[N], -1 if no set has a label; None if a set has no labels at all."""
        if set(sets.labels) != set(sets.ids) or not sets.ids:
            return None
        labels = np.full(nodes, -1, np.int64)
        for part, file in sets.labels.items():
            ids, values = _ids(sets.ids[part]), whole_row(str(file), read_npy(file))
            where = str(sets.ids[part])
            count = np.count_nonzero(mask_of(where, ids, nodes))
            if ids.dtype.kind == "b" and values.size == nodes:
                values = values[ids]
            if count != values.size:
                raise FileError(f"{file}: {values.size} labels for {count} nodes in {sets.ids[part].name}")
            labels[ids] = values
        return labels


def _ids(file: Path) -> AnyArray:
    """Node numbers, or a mask unchanged."""
    found = read_npy(file)
    if found.dtype.kind == "b" and found.ndim == 1:
        return found
    return whole_row(str(file), found if found.size else np.empty(0, np.int64))
