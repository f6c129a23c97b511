"""Graphs in named arrays, of a NumPy archive or of a folder: compressed rows, edge tables, SciPy's matrices.

Which array is what follows from its name (`contents`). Only the structure is read in full. Feature arrays can be a
hundred times larger, so of those just the header is parsed; no object array is ever opened, since that would run a
pickle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.csr import Graph, build_csr, from_csr
from gcnsim.graph.formats.arrays import class_count, npy_shape, opened, read_npy, whole_numbers
from gcnsim.graph.formats.contents import SIDES_FIRST, ArraySource, Contents, Edges, contents_of, plain
from gcnsim.graph.formats.node_arrays import feature_shape, labels_of, skipped, stated_rows
from gcnsim.graph.formats.source import GraphSize

MOST_WIDTH = 2**31 - 1
"""Of features: columns are counted in 32 bits."""

MOST_CLASSES = 1_000_000
"""Of labels: a class of a higher number is not a class."""

NPY = b"\x93NUMPY"
"""How every `.npy` file begins."""

LOOKED_FOR = "indptr with indices, edge_index, edges, adj_indptr with adj_indices, row with col"


def read_npz(path: Path, name: str) -> Graph:
    """The graph in the archive at `path`, as `graph_of_arrays`; FileError too when the archive is damaged."""
    with opened(path) as archive:
        return graph_of_arrays(archive, name)


def read_edge_table(path: Path, name: str) -> Graph:
    """The graph of the one array in the `.npy` file at `path`, a table as of `both_ends`; ids are node numbers."""
    first, second = both_ends(str(path), path.stem, read_npy(path))
    nodes, unused = counted_nodes(str(path), first, second)
    return replace(build_csr(first, second, nodes, name, where=str(path)), unused_ids=unused)


def edge_table_size(path: Path) -> GraphSize:
    """What `read_edge_table` holds, from the header: at most two nodes an edge."""
    shape = npy_shape(path)
    count = math.prod(shape)
    return GraphSize(count, count, path.stat().st_size)


def graph_of_arrays(source: ArraySource, name: str) -> Graph:
    """The graph in `source`, with the widths of its features and labels; `cleaning` names what is not used.

    Edges: compressed rows (integers[N + 1], integers[nnz]), a table [2, E] or [E, 2], sources and targets, or what
    `scipy.sparse.save_npz` writes (csr, csc, coo); every stored entry is an edge. Raises FileError when there is none,
    or an array has a wrong shape or type; GraphError as `build_csr` does.
    """
    held = contents_of(source)
    structure = _structure(source, held)
    nodes, where = structure.nodes, str(source.path)
    widths = widths_of(source, nodes)
    options: dict[str, Any] = {"features": widths.features, "classes": widths.classes, "where": where}
    options["ignored"] = (*(("weights",) if structure.weights else ()), *widths.unused)
    if structure.rows:
        return from_csr(structure.first, structure.second, name, **options)
    graph = build_csr(structure.first, structure.second, nodes, name, **options)
    return replace(graph, unused_ids=structure.unused)


@dataclass(frozen=True, slots=True)
class Widths:
    """What the node arrays say about the graph: F and C, None if unknown; and the unused arrays."""

    features: int | None
    classes: int | None
    unused: tuple[str, ...]


def widths_of(source: ArraySource, nodes: int) -> Widths:
    """The widths of features and labels in `source`. Raises FileError for shapes that do not fit `nodes` nodes."""
    held = contents_of(source)
    return Widths(_features(source, held, nodes), _classes(source, held, nodes), skipped(source, held, nodes))


def stored_size(source: ArraySource, *, features: bool = False) -> GraphSize:
    """What `graph_of_arrays` reads and, with `features`, the node arrays too; from headers alone."""
    held = contents_of(source)
    edges = _edges(source, held)
    wide = [held.features, *(name for part, name in held.sparse.items() if part != "shape")] if features else []
    if edges.form == "scipy":
        entries = 2 * source.shape("row")[0] if "row" in source.names() else source.shape("indices")[0]
        nodes, weights = source.numbers("shape", 2)[0], "data"
    else:
        count = math.prod(source.shape(edges.names[-1]))
        entries = {"rows": count, "table": count, "ends": 2 * count}[edges.form]
        nodes = source.shape(edges.names[0])[0] - 1 if edges.form == "rows" else stated_rows(source, held) or entries
        weights = edges.weights or ""
    loaded = [held.labels, *(weights and [weights]), *wide]
    return GraphSize(nodes, entries, sum(source.nbytes(key) for key in loaded if key is not None))


@dataclass(frozen=True, slots=True)
class _Found:
    """first, second: with `rows` where the rows begin and their columns, else the rows and columns of the entries."""

    first: AnyArray
    second: AnyArray
    nodes: int
    rows: bool = False
    weights: bool = False
    unused: int = 0


def _edges(source: ArraySource, held: Contents) -> Edges:
    """Raises FileError, saying what was looked for and what is there, where no array names edges."""
    if held.edges is not None:
        return held.edges
    names = source.names()
    half = next((name for name in names if plain(name) in ("indptr", "indices")), None)
    if half is not None:
        source.shape("indices" if plain(half) == "indptr" else "indptr")  # says which one is missing
    if any(name.endswith("data.pkl") for name in names):
        raise FileError(
            f"{source.path}: a file of PyTorch, a pickle, which runs code when it is read and is never opened; "
            "convert it to .npz as docs/files.md shows"
        )
    if any("/" in name for name in names):
        raise FileError(f"{source.path}: a zipped folder (it holds {_some(names)}); unpack it and give the folder")
    raise FileError(f"{source.path}: no edges; looked for: {LOOKED_FOR}; found: {_some(names)}")


def _some(names: tuple[str, ...]) -> str:
    most = 12
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return (", ".join(sorted(names)[:most]) or "nothing") + more


def _structure(source: ArraySource, held: Contents) -> _Found:
    edges = _edges(source, held)
    if edges.form == "scipy":
        return _scipy_matrix(source)
    weights = edges.weights is not None and bool(np.any(source.array(edges.weights) != 1))
    shape = None if edges.shape is None else source.numbers(edges.shape, 2)
    if shape is not None and shape[0] != shape[1]:
        raise FileError(f"{source.path}: an adjacency matrix must be square, not {' x '.join(map(str, shape))}")
    if edges.form == "rows":
        indptr, columns = (source.integers(name) for name in edges.names)
        if shape is not None and indptr.size != shape[0] + 1:
            raise FileError(f"{source.path}: indptr has {indptr.size} values; {shape[0]} rows need {shape[0] + 1}")
        return _Found(indptr, columns, max(indptr.size - 1, 0), rows=True, weights=weights)
    if edges.form == "table":
        first, second = both_ends(source.where(edges.names[0]), edges.names[0], source.array(edges.names[0]))
    else:
        first, second = (source.integers(name) for name in edges.names)
    nodes = shape[0] if shape is not None else stated_rows(source, held)
    if nodes is not None:
        return _Found(first, second, nodes, weights=weights)
    nodes, unused = counted_nodes(source.where(edges.names[0]), first, second)
    return _Found(first, second, nodes, weights=weights, unused=unused)


def both_ends(where: str, name: str, table: AnyArray) -> tuple[AnyArray, AnyArray]:
    """Sources and targets of a table [2, E] or [E, 2]; where it is 2 x 2, the name has to say which.

    Raises FileError for other shapes, a 2 x 2 whose name does not say, and values that are not whole numbers.
    """
    if table.ndim != 2 or 2 not in table.shape:
        if not table.size:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        raise FileError(f"{where} is {table.dtype}{list(table.shape)}; edges are integers [2, E] or [E, 2]")
    if table.shape == (2, 2) and plain(name) not in map(plain, SIDES_FIRST):
        raise FileError(f"{where} is 2 x 2, which can be read either way; store it [2, E] as edge_index")
    ends = whole_numbers(where, table)
    return (ends[0], ends[1]) if table.shape[0] == 2 else (ends[:, 0], ends[:, 1])


def counted_nodes(where: str, first: AnyArray, second: AnyArray) -> tuple[int, int]:
    """One more than the largest id, and how many numbers below it no edge has. Raises FileError for ids below 0."""
    if not first.size or not second.size:
        return 0, 0
    if min(first.min(), second.min()) < 0:
        raise FileError(f"{where}: node id {min(first.min(), second.min())} is out of range; ids begin at 0")
    nodes = int(max(first.max(), second.max())) + 1
    return nodes, nodes - np.unique(np.concatenate([np.unique(first), np.unique(second)])).size


def _features(source: ArraySource, held: Contents, nodes: int) -> int | None:
    shape = feature_shape(source, held)
    if shape is None:
        return None
    if len(shape) != 2 or shape[0] != nodes or not 0 <= shape[1] <= MOST_WIDTH:
        needed = f"[{nodes}, width] is needed, width 0 to {MOST_WIDTH:,}"
        raise FileError(f"{source.path}: features have shape {list(shape)}; {needed}")
    return int(shape[1])


def _classes(source: ArraySource, held: Contents, nodes: int) -> int | None:
    name = held.labels
    if name is None:
        return None
    shape = source.shape(name)
    if len(shape) not in (1, 2) or shape[0] != nodes:
        raise FileError(f"{source.path}: labels have shape {list(shape)}; [{nodes}] or [{nodes}, classes] is needed")
    if len(shape) == 2 and shape[1] > 1:
        return int(shape[1])
    known = class_count(labels_of(source, name)[0])
    if known is not None and known > MOST_CLASSES:
        raise FileError(f"{source.path}: {name!r} run up to {known - 1}; at most {MOST_CLASSES} classes are allowed")
    return known


def _scipy_matrix(source: ArraySource) -> _Found:
    if math.prod(source.shape("format")) != 1:
        raise FileError(f"{source.path}: 'format' has shape {list(source.shape('format'))}; one name is needed")
    layout = source.array("format").item()
    layout = layout.decode("ascii") if isinstance(layout, bytes) else str(layout)
    shape = source.numbers("shape", 2)
    if shape[0] != shape[1]:
        raise FileError(f"{source.path}: an adjacency matrix must be square, not {' x '.join(map(str, shape))}")
    weights = "data" in source.names() and bool(np.any(source.array("data") != 1))
    if layout == "coo":
        return _Found(source.integers("row"), source.integers("col"), shape[0], weights=weights)
    if layout not in ("csr", "csc"):
        raise FileError(f"{source.path}: unknown sparse format {layout!r}; supported: csr, csc, coo")
    indptr = source.integers("indptr")
    if indptr.size != shape[0] + 1:
        raise FileError(f"{source.path}: indptr has {indptr.size} values; {shape[0]} rows need {shape[0] + 1}")
    # A column-compressed matrix is its transpose's rows, and the graph has both directions anyway.
    return _Found(indptr, source.integers("indices"), shape[0], rows=True, weights=weights)
