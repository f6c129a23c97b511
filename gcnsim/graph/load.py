"""Graphs from files and from objects of other libraries, and into files; the memory that loading one takes.

A file's content, or else its suffix, determines its format. Objects are recognised by their attributes: no library is
imported. `from_scipy` takes sparse matrices and arrays, `from_pyg` the `Data` of PyTorch Geometric, `from_dgl`
homogeneous graphs of DGL. Features and labels are read for their widths alone. A graph is written as a NumPy archive
with what its nodes carry, or as an edge list.
"""

from __future__ import annotations

import csv
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gcnsim.core.atomic import atomic_write
from gcnsim.core.container import MAGIC, kind_of
from gcnsim.core.errors import FileError, GraphError, nearest
from gcnsim.core.ids import AnyArray, IntArray
from gcnsim.core.units import format_bytes
from gcnsim.graph.csr import Graph, build_csr, from_csr
from gcnsim.graph.formats.arrays import opened
from gcnsim.graph.formats.edges import (
    IDS,
    NUMBERS,
    PARQUET_MAGIC,
    PARQUET_SUFFIXES,
    parquet_size,
    read_edges,
    read_parquet,
)
from gcnsim.graph.formats.foreign import refuse_foreign
from gcnsim.graph.formats.npz import NPY, edge_table_size, read_edge_table, read_npz, stored_size
from gcnsim.graph.formats.source import GraphSize, file_start, file_text, limits_named, text_size
from gcnsim.graph.formats.table import BANNER, read_matrix_market, read_metis

if TYPE_CHECKING:
    import networkx as nx

KNOWN = "a path, a gcnsim.Graph, or a graph of NetworkX, SciPy (sparse), PyTorch Geometric (Data) or DGL"


def from_object(graph: Any) -> Graph:
    """Convert a graph of any of these libraries, or of NetworkX. Raises GraphError for any other object."""
    if hasattr(graph, "tocsr") and hasattr(graph, "shape"):
        return from_scipy(graph)
    if hasattr(graph, "edge_index"):
        return from_pyg(graph)
    if hasattr(graph, "is_homogeneous") and hasattr(graph, "ndata"):
        return from_dgl(graph)
    if hasattr(graph, "is_directed") and hasattr(graph, "adj"):
        return from_networkx(graph)
    raise GraphError(f"graph: {type(graph).__name__!r} is not a graph that is known; allowed: {KNOWN}")


def from_scipy(matrix: Any, name: str = "scipy") -> Graph:
    """Convert a square SciPy sparse matrix or array; every stored entry is an edge, independent of its value.

    Raises GraphError if it is not square, or has no entry between two different nodes.

    >>> from scipy.sparse import eye_array
    >>> from_scipy(eye_array(3, k=1)).entries
    4
    """
    if len(matrix.shape) != 2 or matrix.shape[0] != matrix.shape[1]:
        shape = " x ".join(map(str, matrix.shape))
        raise GraphError(f"{name}: an adjacency matrix of {shape} is not square")
    rows = matrix.tocsr()
    ignored = ("weights",) if rows.nnz and np.any(rows.data != 1) else ()
    return from_csr(rows.indptr, rows.indices, name, ignored=ignored)


def from_pyg(data: Any, name: str = "pyg") -> Graph:
    """Convert a `torch_geometric.data.Data`: `edge_index` of shape [2, E] and `num_nodes`.

    The width of features and the number of classes come from `x` and `y`, if present. Raises GraphError for an object
    without edges.
    """
    if data.edge_index is None:
        raise GraphError(f"{name}: no edge_index: a Data with adj_t alone is not read; allowed: one with edge_index")
    ends = array_of(data.edge_index)
    if ends.ndim != 2 or ends.shape[0] != 2:
        raise GraphError(f"{name}: edge_index has shape {ends.shape}; allowed: [2, number of edges]")
    nodes = getattr(data, "num_nodes", None)
    if nodes is None:
        nodes = int(ends.max()) + 1 if ends.size else 0
    ignored = tuple(key for key in ("edge_weight", "edge_attr") if getattr(data, key, None) is not None)
    widths = _widths(getattr(data, "x", None), getattr(data, "y", None))
    return build_csr(ends[0], ends[1], int(nodes), name, ignored=ignored, **widths)


def from_dgl(graph: Any, name: str = "dgl") -> Graph:
    """Convert a homogeneous `dgl.DGLGraph`; widths come from its node data `feat` and `label`.

    Raises GraphError for a heterogeneous graph, whose nodes have no common numbering.
    """
    if not graph.is_homogeneous:
        raise GraphError(f"{name}: a heterogeneous graph; allowed: a homogeneous one (dgl.to_homogeneous)")
    rows, cols = (array_of(ends) for ends in graph.edges())
    held = dict(graph.ndata)
    ignored = tuple(getattr(graph, "edata", ()))
    widths = _widths(held.get("feat"), held.get("label"))
    return build_csr(rows, cols, int(graph.num_nodes()), name, ignored=ignored, **widths)


def array_of(values: Any) -> AnyArray:
    """A tensor of any library and device as an array."""
    found: AnyArray = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    return found


def _widths(features: Any, labels: Any) -> dict[str, Any]:
    """The width of the features, and the number of classes in the labels."""
    width = None if features is None or len(features.shape) != 2 else int(features.shape[1])
    if labels is None:
        return {"features": width, "classes": None}
    content = array_of(labels)
    if content.ndim == 2 and content.shape[1] > 1:
        return {"features": width, "classes": int(content.shape[1])}
    whole = content.dtype.kind in "iu" and content.size > 0
    return {"features": width, "classes": int(content.max()) + 1 if whole and content.max() >= 1 else None}


def from_networkx(graph: nx.Graph[Any], name: str = "networkx") -> Graph:
    """Convert a NetworkX graph, also directed graphs and multigraphs; `cleaning` names the omitted attributes.

    Node k is the k-th of `sorted(graph)` if the nodes can be compared, else the k-th in order of insertion. Raises
    GraphError if there is no edge between two different nodes.

    >>> import networkx as nx
    >>> from_networkx(nx.path_graph(3)).degrees.tolist()
    [1, 2, 1]
    """
    try:
        nodes = sorted(graph)
    except TypeError:
        nodes = list(graph)
    place = {node: k for k, node in enumerate(nodes)}
    ends = np.fromiter((place[node] for edge in graph.edges() for node in edge[:2]), dtype=np.int64)
    if not nodes:
        raise GraphError(f"{name}: empty graph: no nodes")
    rows, cols = ends[0::2], ends[1::2]
    if not graph.is_directed():
        # An undirected edge has both directions by definition, so its reverse does not count as cleaning.
        other = rows != cols
        rows, cols = np.concatenate([rows, cols[other]]), np.concatenate([cols, rows[other]])
    held = {str(key): None for _, _, attributes in graph.edges(data=True) for key in attributes}
    held |= {str(key): None for _, attributes in graph.nodes(data=True) for key in attributes}
    return build_csr(rows, cols, len(nodes), name, ignored=tuple(held))


_EDGE_LISTS = (".txt", ".tsv", ".csv", ".edges")
SUFFIXES = (".npz", ".npy", ".mtx", ".graph", *_EDGE_LISTS, *PARQUET_SUFFIXES)
"""The suffixes that `load_graph` reads; text formats also with `.gz`."""


def load_graph(path: str | Path, ids: str = NUMBERS, ends: Sequence[str] | None = None) -> Graph:
    """Load the graph in a file or folder; it is named after the path.

    Formats: `.npz` (NumPy or SciPy), `.npy` (edges), edge lists `.txt .tsv .csv .edges .parquet`, Matrix Market `.mtx`,
    METIS `.graph`; text may be compressed with gzip. A folder holds a dataset as it was published
    (`gcnsim.graph.formats.layouts`). `graph.cleaning` says what was changed.
    ids: how the ids of an edge list become node numbers: `numbers`, `compact` or `names`; `graph.original_ids` then has
    the old ids. ends: the two columns of an edge list that hold the ends of an edge, by name or number from 1; None:
    as the header says.
    Raises FileError or GraphError, starting with the path, for anything that is not a usable graph.
    """
    source = Path(path)
    if ids not in IDS:
        raise GraphError(f"ids: {ids!r} is not allowed; {nearest(ids, IDS)}")
    if ends is not None and len(ends) != 2:
        raise GraphError(f"ends: {','.join(ends)!r} is not allowed; two are needed, as in source,target")
    with limits_named(source):
        return _loaded(source, ids, ends)


def _loaded(source: Path, ids: str, ends: Sequence[str] | None) -> Graph:
    if source.is_dir():
        _refuse_ids(source, ids, ends)
        from gcnsim.graph.formats.layouts import layout_of  # only for folders

        return layout_of(source).graph(_folder_name(source))
    start = file_start(source, len(BANNER))
    plain = source.with_suffix("") if source.suffix.lower() == ".gz" else source
    name, suffix, where = plain.stem, plain.suffix.lower(), str(source)
    refuse_foreign(source, suffix, SUFFIXES)
    if suffix == ".npz" or start.startswith(b"PK"):
        _refuse_ids(source, ids, ends)
        return read_npz(source, name)
    if suffix == ".npy" or start.startswith(NPY):
        _refuse_ids(source, ids, ends)
        return read_edge_table(source, name)
    if suffix in PARQUET_SUFFIXES or start.startswith(PARQUET_MAGIC):
        return read_parquet(source, name, ids=ids, ends=ends)
    if suffix not in SUFFIXES and start != BANNER:
        what = (
            f"is a {kind_of(source)} file, not a graph"
            if start.startswith(MAGIC)
            else f"unknown graph format {plain.suffix!r}"
        )
        hint = "" if b"\0" in start else "; an edge list is read under a name that ends in .txt"
        raise FileError(f"{source}: {what}; known: {', '.join(sorted(SUFFIXES))}{hint}")
    text = file_text(source)
    matrix = suffix == ".mtx" or text.startswith(BANNER)
    if not matrix and suffix in _EDGE_LISTS:
        return read_edges(text, name, where=where, ids=ids, ends=ends)
    _refuse_ids(source, ids, ends)
    return read_matrix_market(text, name, where=where) if matrix else read_metis(text, name, where=where)


def _refuse_ids(source: Path, ids: str, ends: Sequence[str] | None) -> None:
    """Refuse options that only an edge list has."""
    lists = ", ".join((*_EDGE_LISTS, *PARQUET_SUFFIXES))
    if ids != NUMBERS:
        raise FileError(f"{source}: ids: {ids} is for edge lists ({lists}); allowed: {NUMBERS}")
    if ends is not None:
        raise FileError(f"{source}: ends: {','.join(ends)} is for edge lists ({lists}); allowed: none")


def _folder_name(folder: Path) -> str:
    """The folder's name; for `raw/`, the name of its parent."""
    whole = folder.resolve()
    return whole.parent.name if whole.name == "raw" else whole.name


ENTRY_BYTES, NODE_BYTES, FIXED_BYTES = 50, 100, 150_000_000
"""Peak memory per stored entry and per node, and of the interpreter with its libraries: measured, rounded up."""

METIS_BYTES, METIS_NODE_BYTES = 70, 300
"""Additional memory for partitioning, per stored entry and per node.

METIS works on several coarser copies of the graph, which shrink least without communities. Measured on R-MAT graphs of
3 to 16 million entries.
"""


def memory_to_load(path: str | Path, *, features: bool = False, partition: bool = False) -> int:
    """Peak resident bytes of loading the source at `path`, an upper estimate.

    features, partition: include features; include METIS. Text is counted line by line, which takes a fraction of the
    time of loading. Raises FileError if it is unreadable or of an unknown format.
    """
    size = _size(Path(path), features)
    return memory_of_sizes(size.nodes, size.entries, partition=partition) + 2 * size.loaded


def memory_of_sizes(nodes: int, entries: int, *, partition: bool = False) -> int:
    """Peak resident bytes with a graph of these sizes in memory, and while partitioning it: an upper estimate."""
    held = FIXED_BYTES + ENTRY_BYTES * entries + NODE_BYTES * nodes
    return held + (METIS_BYTES * entries + METIS_NODE_BYTES * nodes if partition else 0)


def check_memory(
    path: str | Path, max_memory: float | None, *, features: bool = False, partition: bool = False
) -> None:
    """Raise GraphError if loading would take more than `max_memory` bytes; None allows any."""
    if max_memory is None:
        return
    needed = memory_to_load(path, features=features, partition=partition)
    _refuse(path, "partitioning" if partition else "loading", needed, max_memory)


def check_partition_memory(name: str, nodes: int, entries: int, max_memory: float | None) -> None:
    """Raise GraphError if partitioning a graph of these sizes would take more than `max_memory` bytes."""
    if max_memory is not None:
        _refuse(name, "partitioning", memory_of_sizes(nodes, entries, partition=True), max_memory)


def _refuse(name: str | Path, what: str, needed: int, max_memory: float) -> None:
    if needed > max_memory:
        raise GraphError(
            f"{name}: {what} needs about {format_bytes(needed)} of memory; allowed: {format_bytes(max_memory)}"
        )


def _size(path: Path, features: bool) -> GraphSize:
    if path.is_dir():
        from gcnsim.graph.formats.layouts import layout_of

        return layout_of(path).size(features=features)
    start = file_start(path, len(NPY))
    if start == NPY:
        return edge_table_size(path)
    if start.startswith(PARQUET_MAGIC):
        return parquet_size(path)
    if start.startswith(b"PK"):
        with opened(path) as archive:
            return stored_size(archive, features=features)
    lines, loaded = text_size(path)
    # METIS has one line per node and both directions of an edge, at 2 bytes or more; the others one line per edge.
    return GraphSize(lines, loaded // 2 if ".graph" in path.suffixes else 2 * lines, loaded)


_ROWS = 2**16


def write_npz(path: str | Path, graph: Graph, arrays: Mapping[str, AnyArray] | None = None) -> None:
    """Write `indptr`, `indices` and `arrays` to `path`, atomically: the same graph, the same bytes.

    arrays: of the nodes, named as in `gcnsim.graph.formats.nodes`. Without features among them, `x_shape` says their
    width where it is known. The class count is not kept, for the format has it only as labels. Raises FileError when it
    cannot be written.
    """
    every: dict[str, AnyArray] = {"indptr": graph.indptr, "indices": graph.indices, **(arrays or {})}
    if graph.features is not None and "x" not in every and "x_shape" not in every:
        every["x_shape"] = np.array([graph.nodes, graph.features], np.int64)
    with atomic_write(path) as stream, zipfile.ZipFile(stream, "w", allowZip64=True) as archive:
        for key, array in every.items():
            # A ZipInfo of its own carries a fixed date, where a bare name would carry today's.
            with archive.open(zipfile.ZipInfo(f"{key}.npy"), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)


def write_ids(path: str | Path, ids: Sequence[str] | IntArray) -> None:
    """Write what each node was called, a CSV line `node,id` each, to `path`, atomically. Raises FileError."""
    with atomic_write(path, text=True) as stream:
        lines = csv.writer(stream, lineterminator="\n")
        lines.writerow(["node", "id"])
        lines.writerows(enumerate(ids.tolist() if isinstance(ids, np.ndarray) else ids))


def write_edges(path: str | Path, graph: Graph, *, separator: str = " ") -> None:
    """Write each edge once, smaller id first, a line each, to `path`, atomically.

    Where the last node has no edge it is written as a self-loop: dropped on loading, but the number of nodes stays.
    Raises FileError when it cannot be written.
    """
    from pyarrow import table
    from pyarrow.csv import WriteOptions, write_csv

    options = WriteOptions(include_header=False, delimiter=separator)
    last = np.array([graph.nodes - 1] * (not graph.degrees[-1]))
    with atomic_write(path) as stream:
        for begin in range(0, graph.nodes, _ROWS):
            end = min(begin + _ROWS, graph.nodes)
            rows = np.repeat(np.arange(begin, end), np.diff(graph.indptr[begin : end + 1]))
            columns = graph.indices[graph.indptr[begin] : graph.indptr[end]]
            once = rows < columns
            write_csv(table({"row": rows[once], "column": columns[once]}), stream, options)
        write_csv(table({"row": last, "column": last}), stream, options)
