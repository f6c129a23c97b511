"""Read partitions made elsewhere (an array of owners, METIS text, a DGL partition folder) and gcnsim's partition files.

Simulator and runtime both use this module, so they accept the same files.

The JSON of `dgl.distributed.partition_graph` or of DGL's distributed partitioning gives the owners in one of two ways.
Older files keep node numbers, and `node_map` names a `.npy` of owners. In newer files DGL renumbers the nodes, part
after part, and `node_map` gives the range of each part. `partN/orig_nids.dgl`, if DGL's distributed partitioning wrote
it, gives each node's earlier number.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.container import MAGIC, read_sections, write_sections
from gcnsim.core.errors import FileError, plural
from gcnsim.core.ids import AnyArray, Int32Array, IntArray, frozen
from gcnsim.core.json_files import parse_json, read_text
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.arrays import read_npy, whole_numbers
from gcnsim.graph.formats.layouts.dgl import read_dgl_tensors
from gcnsim.graph.formats.source import file_start, file_text
from gcnsim.graph.parts import FROM_FILE, Partitioning

_NUMPY: Final = b"\x93NUMPY"
_ZIP: Final = b"PK\x03\x04"
_PICKLE: Final = b"\x80"
_LINE: Final = re.compile(rb"[ \t]*[+-]?[0-9]{1,18}[ \t]*")
_LINES: Final = re.compile(rb"(?:[ \t]*[+-]?[0-9]{1,18}[ \t]*(?:\n|\Z))+")
_COMMENT: Final = (b"%", b"#")

KNOWN: Final = (
    "a file of gcnsim graph partition --out, an array of owners (.npy), METIS's text (one number per line), "
    "or a partition folder of DGL"
)
"""The supported formats, in words."""


def open_partition(path: str | Path, graph: Graph) -> Partitioning:
    """The partition of `graph` at `path`, in any supported format.

    Formats: a file of `write_partition`; a `.npy` of integers[N], the part of each node; text with one number per line,
    as METIS writes `graph.part.N`; a folder of `dgl.distributed.partition_graph`, or its JSON. Raises FileError if it
    is missing, damaged, of another kind, or made for another graph, or if its parts are not 0 to P - 1 with at least
    one node each.
    """
    source = Path(path)
    if source.is_dir() or is_dgl_config(source):
        found, note = dgl_owners(source, graph)
        return owners_of(path, found, graph, note)
    start = file_start(source)
    if start[: len(MAGIC) - 2] == MAGIC[:-2]:
        return read_partition(source, graph)
    if start.startswith(_NUMPY):
        return owners_of(path, read_npy(source), graph)
    for begins, what in ((_ZIP, "an archive"), (_PICKLE, "a pickle, which is never opened")):
        if start.startswith(begins):
            raise FileError(f"{path}: {what}; write its owners with np.save('owner.npy', ...) and give that file")
    return owners_of(path, _numbers(source), graph)


def owners_of(path: str | Path, owner: AnyArray, graph: Graph, note: str = "") -> Partitioning:
    """The partition in the array `owner` (the part of each node); `path` is its source, for messages.

    A column [N, 1] or a table of one row is treated as a row, and whole floats as integers; a boolean mask is refused.
    note: an assumption of its reader. Raises FileError as in `open_partition`.
    """
    row = owner.reshape(-1) if owner.ndim == 2 and 1 in owner.shape else owner
    if row.dtype.kind not in "iuf" or row.ndim != 1:
        raise FileError(f"{path}: {owner.dtype}{list(owner.shape)}; a row of integers, each node's part, is needed")
    row = whole_numbers(str(path), row)
    if row.size != graph.nodes:
        raise FileError(
            f"{path}: {plural(row.size, 'owner')} of {graph.nodes:,} nodes; "
            f"each node of {graph.name} needs the number of its part"
        )
    low, high = int(row.min()), int(row.max())
    if low < 0:
        raise FileError(f"{path}: part {low} is not allowed; parts are numbered from 0")
    if low > 0:
        hint = "; subtract 1 from each" if low == 1 else ""
        raise FileError(f"{path}: parts {low:,} to {high:,}, not 0 to {high - low:,}{hint}")
    if high >= row.size:
        raise FileError(f"{path}: parts 0 to {high:,} of {row.size:,} nodes; each part needs a node")
    empty = np.flatnonzero(np.bincount(row.astype(np.int64), minlength=high + 1) == 0)
    if empty.size:
        raise FileError(f"{path}: part {empty[0]} of 0 to {high} has no node; each part needs one")
    owner32 = frozen(np.array(row, np.int32))
    return Partitioning(owner32, high + 1, FROM_FILE, 0, graph.name, graph.content_hash(), note)


def _numbers(source: Path) -> AnyArray:
    """One number per line, int64; comments, and empty lines at the end, are skipped."""
    data = file_text(source).replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip()
    if not data:
        raise FileError(f"{source}: is empty; each node needs the number of its part, one per line")
    if _LINES.fullmatch(data):
        return np.array(data.split()).astype(np.int64)
    found = []
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.lstrip().startswith(_COMMENT):
            continue
        if not _LINE.fullmatch(line):
            text = line.strip()[:40].decode("utf-8", "backslashreplace")
            raise FileError(f"{source}: line {number}: {text!r} is not the number of a part; read are: {KNOWN}")
        found.append(int(line))
    return np.array(found, np.int64)


ORIGINAL: Final = "orig_nids.dgl"
_MOST_BYTES: Final = 2**24
"""The largest JSON that is read; DGL's have a few kB."""

_WRITE: Final = (
    "nodes = dgl.distributed.partition_graph(..., return_mapping=True)[0]; "
    "owner = np.empty({nodes}, int); owner[nodes] = np.repeat(range({parts}), {sizes}); np.save('owner.npy', owner)"
)


def is_dgl_config(path: Path) -> bool:
    """Whether `path` is named as the JSON of a partition."""
    return path.suffix.lower() == ".json" and path.is_file()


def dgl_owners(path: Path, graph: Graph) -> tuple[AnyArray, str]:
    """The part of each node, integers[N], and the assumption behind it, if any.

    path: the folder, or its JSON. Raises FileError if it is not such a folder, if its JSON contradicts itself, or if it
    does not give the part of each node of `graph`.
    """
    config, document = (path, _document(path)) if path.is_file() else _config_in(path)
    parts = document.get("num_parts")
    if type(parts) is not int or parts < 1:
        raise FileError(f"{config}: num_parts is {parts!r}; a whole number of at least 1 is needed")
    node_map = document.get("node_map")
    if isinstance(node_map, str):
        owner = read_npy(_beside(config, node_map))
        return owner, ""
    kind, ends = _ranges(config, node_map, parts)
    if ends[-1] != graph.nodes:
        raise FileError(f"{config}: node_map has {plural(ends[-1], 'node')}; {graph.name} has {graph.nodes:,}")
    sizes = np.array(ends, np.int64) - np.array([0, *ends[:-1]], np.int64)
    renumbered = np.repeat(np.arange(parts), sizes)
    original = _original(config, document, kind, sizes)
    if original is not None:
        owner = np.empty(graph.nodes, np.int64)
        owner[original] = renumbered
        return owner, ""
    return renumbered, _checked(config, document, graph, renumbered, parts)


def _config_in(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The JSON in `folder` that describes a partition."""
    for path in sorted(folder.glob("*.json")):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            document = parse_json(read_text(path), path)
            if isinstance(document, dict) and "num_parts" in document and "node_map" in document:
                return path, document
    raise FileError(f"{folder}: not a partition folder of DGL; it has no JSON with num_parts and node_map")


def _document(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_BYTES:
        raise FileError(f"{path}: {path.stat().st_size:,} bytes; the JSON of a partition has at most {_MOST_BYTES:,}")
    document = parse_json(read_text(path), path)
    if not isinstance(document, dict) or "num_parts" not in document or "node_map" not in document:
        raise FileError(f"{path}: not the JSON of a DGL partition; num_parts and node_map are needed")
    return document


def _beside(config: Path, name: str) -> Path:
    """The file that the JSON names; DGL writes paths relative to its working folder, so the last component is tried
    too.
    """
    named = Path(name)
    tried = [config.parent / named.name]
    if not named.is_absolute() and ".." not in named.parts:
        tried.insert(0, config.parent / named)
    for path in tried:
        # Path.is_file raises for an impossible file name, so it is not used.
        if os.path.isfile(path):
            return path
    raise FileError(f"{config}: node_map is {name!r}, which is not there; it is looked for in {config.parent}")


def _ranges(config: Path, value: object, parts: int) -> tuple[str | None, list[int]]:
    """The single node type, and the end of each part's range; the ranges must be consecutive."""
    if isinstance(value, Mapping):
        several = [str(name) for name, ranges in value.items() if ranges]
        if len(several) != 1:
            raise FileError(f"{config}: node_map has node types {', '.join(several)}; graphs of one type are read")
        kind, ranges = several[0], value[several[0]]
    else:
        kind, ranges = None, value
    if not isinstance(ranges, list) or len(ranges) != parts:
        raise FileError(f"{config}: node_map does not give {plural(parts, 'part')} a range of nodes each")
    end, ends = 0, list[int]()
    for part, span in enumerate(ranges):
        if not isinstance(span, list) or [type(item) for item in span] != [int, int] or span[0] > span[1]:
            raise FileError(f"{config}: node_map: part {part} is {span!r:.60}; a range [first, end] is needed")
        if span[0] != end:
            raise FileError(f"{config}: node_map: part {part} begins at {span[0]}; {end} is needed")
        end = span[1]
        ends.append(end)
    return kind, ends


def _original(config: Path, document: Mapping[str, Any], kind: str | None, sizes: IntArray) -> IntArray | None:
    """Each node's number before DGL renumbered it, int64[N]; None if no part has it."""
    paths = [_part_folder(config, document, part) / ORIGINAL for part in range(sizes.size)]
    there = [path for path in paths if os.path.isfile(path)]
    if not there:
        return None
    if len(there) < len(paths):
        missing = next(path for path in paths if path not in there)
        raise FileError(f"{missing}: is missing, though other parts have theirs; all or none are needed")
    found: list[AnyArray] = []
    for path, size in zip(paths, sizes.tolist(), strict=True):
        arrays = read_dgl_tensors(path)
        name = kind if kind in arrays else next(iter(arrays), "") if len(arrays) == 1 else None
        if name is None or name not in arrays:
            raise FileError(f"{path}: has no array {kind!r} (found: {', '.join(arrays) or 'nothing'})")
        array = arrays[name]
        if array.dtype.kind not in "iu" or array.shape != (size,):
            raise FileError(f"{path}: {name!r} is {array.dtype}{list(array.shape)}; {plural(size, 'node id')} needed")
        found.append(array)
    original = np.concatenate(found).astype(np.int64)
    if not np.array_equal(np.sort(original), np.arange(original.size)):
        raise FileError(f"{config}: the {ORIGINAL} of the parts do not have each node of 0 to {original.size - 1} once")
    return original


def _part_folder(config: Path, document: Mapping[str, Any], part: int) -> Path:
    """The folder with the files of a part: `partN/` next to the JSON, or the folder of the file that the JSON names."""
    files = document.get(f"part-{part}")
    name = files.get("part_graph") if isinstance(files, Mapping) else None
    if isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts:
        return config.parent / Path(name).parent
    return config.parent / f"part{part}"


def _checked(config: Path, document: Mapping[str, Any], graph: Graph, owner: IntArray, parts: int) -> str:
    """The assumption about owners by DGL's numbers. Raises FileError if `graph` certainly has another numbering."""
    counted = _edges_owned(document, graph, owner, parts)
    if counted is None:
        return (
            f"{config} uses DGL's new node ids, which cannot be checked against {graph.name}; for a graph with the "
            f"original ids, write owners: {_recipe(owner, parts)}"
        )
    expected, found = counted
    if list(expected) != list(found):
        part = next(index for index in range(parts) if expected[index] != found[index])
        raise FileError(
            f"{config}: uses DGL's new node ids, and {graph.name} has other ids (part {part} owns "
            f"{expected[part]:,} edges, here {found[part]:,}); write owners with the original ids: "
            f"{_recipe(owner, parts)}"
        )
    return ""


def _recipe(owner: IntArray, parts: int) -> str:
    sizes = np.bincount(owner, minlength=parts).tolist()
    shown = str(sizes) if parts <= 8 else "sizes"
    return _WRITE.format(nodes=owner.size, parts=parts, sizes=shown)


def _edges_owned(
    document: Mapping[str, Any], graph: Graph, owner: IntArray, parts: int
) -> tuple[Sequence[int], Sequence[int]] | None:
    """Edges owned by each part in the JSON, and in `graph`; None if the two are not comparable.

    An edge is owned by the part of its destination, and DGL stores both directions, with or without self-loops.
    """
    edges, edge_map = document.get("num_edges"), document.get("edge_map")
    every = list(edge_map.values()) if isinstance(edge_map, Mapping) else [edge_map]
    loops = {graph.entries: 0, graph.entries + graph.nodes: 1}.get(edges) if type(edges) is int else None
    if loops is None:
        return None
    expected = [0] * parts
    for ranges in every:
        if not isinstance(ranges, list) or len(ranges) != parts:
            return None
        for part, span in enumerate(ranges):
            if not isinstance(span, list) or [type(item) for item in span] != [int, int]:
                return None
            expected[part] += span[1] - span[0]
    found = np.bincount(owner, weights=graph.degrees + loops, minlength=parts)
    return expected, [int(count) for count in found]


KIND = "partition"
VERSION = 1
_META = {"parts": int, "method": str, "seed": int, "graph_name": str, "graph_hash": str}


def write_partition(path: str | Path, partitioning: Partitioning) -> str:
    """Write the partition to `path`, atomically; return the file's content hash. Raises FileError when it cannot."""
    meta = {field: getattr(partitioning, field) for field in _META}
    return write_sections(path, kind=KIND, version=VERSION, meta=meta, arrays={"owner": partitioning.owner})


def read_partition(path: str | Path, graph: Graph | None = None) -> Partitioning:
    """The partition in the file at `path`.

    Raises FileError if it is missing, altered or not a partition file, if its owners are out of range or leave a part
    empty, and, given `graph`, if it was made for another one.
    """
    sections = read_sections(path, kind=KIND, version=VERSION)
    for field, kind in _META.items():
        if type(sections.meta.get(field)) is not kind:
            raise FileError(f"{path}: {field} is {sections.meta.get(field)!r}; a {kind.__name__} is needed")
    owner = sections.arrays.get("owner")
    if owner is None or owner.dtype != np.int32 or owner.ndim != 1 or not owner.size:
        raise FileError(f"{path}: the section 'owner' is not a row of int32")
    result = Partitioning(owner=owner, **{field: sections.meta[field] for field in _META})
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
    # Count parts only if there are no more than nodes: an owner may be any int32.
    if parts > owner.size or (np.bincount(owner, minlength=parts) == 0).any():
        raise FileError(f"{path}: {plural(parts, 'part')} for {owner.size} nodes, but some parts are empty")
