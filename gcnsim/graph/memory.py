"""An upper estimate of the memory for loading a graph, before it is loaded."""

from __future__ import annotations

from pathlib import Path

from gcnsim.core.errors import GraphError
from gcnsim.core.units import format_bytes
from gcnsim.graph.formats.arrays import opened
from gcnsim.graph.formats.layouts import layout_of
from gcnsim.graph.formats.npz import NPY, edge_table_size, stored_size
from gcnsim.graph.formats.parquet import MAGIC, parquet_size
from gcnsim.graph.formats.source import GraphSize, file_start, text_size

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
        return layout_of(path).size(features=features)
    start = file_start(path, len(NPY))
    if start == NPY:
        return edge_table_size(path)
    if start.startswith(MAGIC):
        return parquet_size(path)
    if start.startswith(b"PK"):
        with opened(path) as archive:
            return stored_size(archive, features=features)
    lines, loaded = text_size(path)
    # METIS has one line per node and both directions of an edge, at 2 bytes or more; the others one line per edge.
    return GraphSize(lines, loaded // 2 if ".graph" in path.suffixes else 2 * lines, loaded)
