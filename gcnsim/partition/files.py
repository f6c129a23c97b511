"""Partition files: the owners and where they come from, tied to the graph by its content hash."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from gcnsim.errors import FileError, plural
from gcnsim.graph import Graph
from gcnsim.ids import Int32Array
from gcnsim.io.container import read_sections, write_sections
from gcnsim.partition.parts import Partitioning

KIND = "partition"
VERSION = 1
_META = {"parts": int, "method": str, "seed": int, "graph_name": str, "graph_hash": str}


def write_partition(path: str | Path, partitioning: Partitioning) -> str:
    """Write the partition to `path`, atomically; return the file's content hash. Raises FileError when it cannot."""
    meta = {field: getattr(partitioning, field) for field in _META}
    return write_sections(path, kind=KIND, version=VERSION, meta=meta, arrays={"owner": partitioning.owner})


def read_partition(path: str | Path, graph: Graph | None = None) -> Partitioning:
    """The partition in the file at `path`.

    Raises FileError when it is missing, altered or no partition file, its owners are out of range or leave a part
    empty, and, given `graph`, when it was made for another one.
    """
    found = read_sections(path, kind=KIND, version=VERSION)
    for field, kind in _META.items():
        if type(found.meta.get(field)) is not kind:
            raise FileError(f"{path}: {field} is {found.meta.get(field)!r}; a {kind.__name__} is needed")
    owner = found.arrays.get("owner")
    if owner is None or owner.dtype != np.int32 or owner.ndim != 1 or not owner.size:
        raise FileError(f"{path}: the section 'owner' is not a row of int32")
    result = Partitioning(owner=owner, **{field: found.meta[field] for field in _META})
    _check_owners(path, owner, result.parts)
    if graph is not None and result.graph_hash != graph.content_hash():
        raise FileError(
            f"{path}: made for {result.graph_name!r} (hash {result.graph_hash[:12]}), "
            f"which is not the graph {graph.name!r} (hash {graph.content_hash()[:12]})"
        )
    return result


def _check_owners(path: str | Path, owner: Int32Array, parts: int) -> None:
    if parts < 1 or owner.min() < 0 or owner.max() >= parts:
        allowed = f"with {plural(parts, 'part')} 0 to {parts - 1} are allowed"
        raise FileError(f"{path}: owners run from {owner.min()} to {owner.max()}; {allowed}")
    # Parts are counted only where there are not more than nodes: an owner may be any int32.
    if parts > owner.size or (np.bincount(owner, minlength=parts) == 0).any():
        raise FileError(f"{path}: {plural(parts, 'part')} for {owner.size} nodes, but some parts are empty")
