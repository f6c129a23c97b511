"""What loading a graph takes, estimated from above before it is loaded."""

from __future__ import annotations

from pathlib import Path

from gcnsim.errors import GraphError
from gcnsim.graph.arrays import opened
from gcnsim.graph.layouts import layout_of
from gcnsim.graph.npz import stored_size
from gcnsim.graph.size import Size, text_size
from gcnsim.graph.source import file_start
from gcnsim.units import format_bytes

ENTRY_BYTES, NODE_BYTES, FIXED_BYTES = 50, 100, 150_000_000
"""Peak memory per stored entry and per node, and of the interpreter with its libraries: measured, rounded up."""

METIS_BYTES = 20
"""Of partitioning, per stored entry, on top: METIS works on several coarser copies of the graph."""


def memory_to_load(path: str | Path, *, features: bool = False, partition: bool = False) -> int:
    """Peak resident bytes of loading the source at `path`: an estimate from above.

    features, partition: its features too; METIS too. Text is counted line by line, so this takes a fraction of the time
    of loading it. Raises FileError when it cannot be read or is no known format.
    """
    size = _size(Path(path), features)
    per_entry = ENTRY_BYTES + (METIS_BYTES if partition else 0)
    return FIXED_BYTES + per_entry * size.entries + NODE_BYTES * size.nodes + 2 * size.loaded


def check_memory(
    path: str | Path, max_memory: float | None, *, features: bool = False, partition: bool = False
) -> None:
    """Raises GraphError when loading would take more than `max_memory` bytes; None allows any."""
    if max_memory is None:
        return
    needed = memory_to_load(path, features=features, partition=partition)
    if needed > max_memory:
        raise GraphError(
            f"{path}: loading needs about {format_bytes(needed)} of memory; allowed: {format_bytes(max_memory)}"
        )


def _size(path: Path, features: bool) -> Size:
    if path.is_dir():
        return layout_of(path).size(features=features)
    if file_start(path, 2) == b"PK":
        with opened(path) as archive:
            return stored_size(archive, features=features)
    lines, loaded = text_size(path)
    # METIS has a line a node and both directions of an edge, at 2 bytes or more; the others a line an edge.
    return Size(lines, loaded // 2 if ".graph" in path.suffixes else 2 * lines, loaded)
