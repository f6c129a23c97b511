"""Owners in a folder of `dgl.distributed.partition_graph` or of DGL's distributed partitioning.

The JSON gives the owners in one of two ways. Older (nodes keep their numbers): `node_map` names a `.npy` of owners.
Newer: DGL numbers the nodes anew, part after part, and `node_map` gives the range of each part; `partN/orig_nids.dgl`,
where DGL's distributed partitioning wrote it, gives the number that each node had before.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.errors import FileError, plural
from gcnsim.graph import Graph, read_npy
from gcnsim.graph.formats.dgl_tensors import read_dgl_tensors
from gcnsim.ids import AnyArray, IntArray
from gcnsim.io.json_files import parse_json, read_text

ORIGINAL: Final = "orig_nids.dgl"
_MOST_BYTES: Final = 2**24
"""Of a JSON that is looked at: DGL's are a few kB."""

_WRITE: Final = (
    "nodes = dgl.distributed.partition_graph(..., return_mapping=True)[0]; "
    "owner = np.empty({nodes}, int); owner[nodes] = np.repeat(range({parts}), {sizes}); np.save('owner.npy', owner)"
)


def is_dgl_config(path: Path) -> bool:
    """Whether `path` is named as the JSON of a partition."""
    return path.suffix.lower() == ".json" and path.is_file()


def dgl_owners(path: Path, graph: Graph) -> tuple[AnyArray, str]:
    """The part of each node, integers[N], and what was assumed to know it, empty where nothing was.

    path: the folder, or its JSON. Raises FileError when it is no such folder, its JSON contradicts itself, or it does
    not say which node of `graph` is in which part.
    """
    config, said = (path, _document(path)) if path.is_file() else _config_in(path)
    parts = said.get("num_parts")
    if type(parts) is not int or parts < 1:
        raise FileError(f"{config}: num_parts is {parts!r}; a whole number of at least 1 is needed")
    given = said.get("node_map")
    if isinstance(given, str):
        owner = read_npy(_beside(config, given))
        return owner, ""
    kind, ends = _ranges(config, given, parts)
    if ends[-1] != graph.nodes:
        raise FileError(f"{config}: node_map has {plural(ends[-1], 'node')}; {graph.name} has {graph.nodes:,}")
    sizes = np.array(ends, np.int64) - np.array([0, *ends[:-1]], np.int64)
    renumbered = np.repeat(np.arange(parts), sizes)
    original = _original(config, said, kind, sizes)
    if original is not None:
        owner = np.empty(graph.nodes, np.int64)
        owner[original] = renumbered
        return owner, ""
    return renumbered, _checked(config, said, graph, renumbered, parts)


def _config_in(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The JSON in `folder` that describes a partition."""
    for path in sorted(folder.glob("*.json")):
        if path.is_file() and path.stat().st_size <= _MOST_BYTES:
            said = parse_json(read_text(path), path)
            if isinstance(said, dict) and "num_parts" in said and "node_map" in said:
                return path, said
    raise FileError(f"{folder}: not a partition folder of DGL; it has no JSON with num_parts and node_map")


def _document(path: Path) -> dict[str, Any]:
    if path.stat().st_size > _MOST_BYTES:
        raise FileError(f"{path}: {path.stat().st_size:,} bytes; the JSON of a partition has at most {_MOST_BYTES:,}")
    said = parse_json(read_text(path), path)
    if not isinstance(said, dict) or "num_parts" not in said or "node_map" not in said:
        raise FileError(f"{path}: not the JSON of a DGL partition; num_parts and node_map are needed")
    return said


def _beside(config: Path, name: str) -> Path:
    """The file that the JSON names; DGL writes the path from where it ran, so its last part is tried too."""
    named = Path(name)
    tried = [config.parent / named.name]
    if not named.is_absolute() and ".." not in named.parts:
        tried.insert(0, config.parent / named)
    for path in tried:
        # Not Path.is_file, which raises for a name that no file can have.
        if os.path.isfile(path):
            return path
    raise FileError(f"{config}: node_map is {name!r}, which is not there; it is looked for in {config.parent}")


def _ranges(config: Path, given: object, parts: int) -> tuple[str | None, list[int]]:
    """The one node type, and the end of each part's range; the ranges must follow one another."""
    if isinstance(given, Mapping):
        several = [str(name) for name, ranges in given.items() if ranges]
        if len(several) != 1:
            raise FileError(f"{config}: node_map has node types {', '.join(several)}; graphs of one type are read")
        kind, ranges = several[0], given[several[0]]
    else:
        kind, ranges = None, given
    if not isinstance(ranges, list) or len(ranges) != parts:
        raise FileError(f"{config}: node_map does not give {plural(parts, 'part')} a range of nodes each")
    end, ends = 0, list[int]()
    for part, span in enumerate(ranges):
        if not isinstance(span, list) or [type(each) for each in span] != [int, int] or span[0] > span[1]:
            raise FileError(f"{config}: node_map: part {part} is {span!r:.60}; a range [first, end] is needed")
        if span[0] != end:
            raise FileError(f"{config}: node_map: part {part} begins at {span[0]}; {end} is needed")
        end = span[1]
        ends.append(end)
    return kind, ends


def _original(config: Path, said: Mapping[str, Any], kind: str | None, sizes: IntArray) -> IntArray | None:
    """The number that each node had before DGL numbered it anew, int64[N]; None where no part says it."""
    paths = [_part_folder(config, said, part) / ORIGINAL for part in range(sizes.size)]
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


def _part_folder(config: Path, said: Mapping[str, Any], part: int) -> Path:
    """Where the files of a part are: `partN/` beside the JSON, or the folder of the file that the JSON names."""
    files = said.get(f"part-{part}")
    name = files.get("part_graph") if isinstance(files, Mapping) else None
    if isinstance(name, str) and not Path(name).is_absolute() and ".." not in Path(name).parts:
        return config.parent / Path(name).parent
    return config.parent / f"part{part}"


def _checked(config: Path, said: Mapping[str, Any], graph: Graph, owner: IntArray, parts: int) -> str:
    """What is assumed of owners by DGL's own numbers. Raises FileError where `graph` is surely numbered otherwise."""
    counted = _edges_owned(said, graph, owner, parts)
    if counted is None:
        return (
            f"{config} gives parts by the numbers that DGL gave the nodes anew, which cannot be checked against "
            f"{graph.name}; for a graph with the numbers from before, write owners: "
            f"{_recipe(owner, parts)}"
        )
    expected, found = counted
    if list(expected) != list(found):
        part = next(place for place in range(parts) if expected[place] != found[place])
        raise FileError(
            f"{config}: DGL numbered the nodes anew, and {graph.name} has other numbers (part {part} owns "
            f"{expected[part]:,} edges, here {found[part]:,}); write owners by the numbers from before: "
            f"{_recipe(owner, parts)}"
        )
    return ""


def _recipe(owner: IntArray, parts: int) -> str:
    sizes = np.bincount(owner, minlength=parts).tolist()
    shown = str(sizes) if parts <= 8 else "sizes"
    return _WRITE.format(nodes=owner.size, parts=parts, sizes=shown)


def _edges_owned(
    said: Mapping[str, Any], graph: Graph, owner: IntArray, parts: int
) -> tuple[Sequence[int], Sequence[int]] | None:
    """Edges owned by each part by the JSON, and as `graph` has them; None where the two cannot be compared.

    An edge is owned by the part of its destination, and DGL stores both directions, with or without self-loops.
    """
    edges, given = said.get("num_edges"), said.get("edge_map")
    every = list(given.values()) if isinstance(given, Mapping) else [given]
    loops = {graph.entries: 0, graph.entries + graph.nodes: 1}.get(edges) if type(edges) is int else None
    if loops is None:
        return None
    expected = [0] * parts
    for ranges in every:
        if not isinstance(ranges, list) or len(ranges) != parts:
            return None
        for part, span in enumerate(ranges):
            if not isinstance(span, list) or [type(each) for each in span] != [int, int]:
                return None
            expected[part] += span[1] - span[0]
    found = np.bincount(owner, weights=graph.degrees + loops, minlength=parts)
    return expected, [int(count) for count in found]
