"""A graph partitioned by DGL: `NAME.json` and, for each part, `graph.dgl`, `node_feats.dgl`, `edge_feats.dgl`.

The JSON says how many nodes and edges each part owns. Which edges cross is in the `.dgl` files alone, an undocumented
binary of DGL's own, so the graph itself is not read. Newer releases write `fused_csc_sampling_graph.pt`, a pickle, in
place of `graph.dgl` or beside it. Format: `dgl.distributed.partition_graph`.

Arrays in the files of `dgl.data.utils.save_tensors` are read (`orig_nids.dgl`). Layout, little-endian (DGL,
src/graph/serialize/tensor_serialize.cc and include/dgl/runtime/ndarray.h): magic number, count, count again; then each
array: the length of its name, the name, magic number, 8 bytes unused, device type and number, dimensions, type (code,
bits, lanes), shape, bytes, data. It is plain data: nothing of it is run.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, frozen
from gcnsim.graph.csr import Graph
from gcnsim.graph.formats.node_arrays import Found
from gcnsim.graph.formats.source import GraphSize, file_start, file_text

FILE_MAGIC: Final = 0xDD5A9FBE3FA2443F
ARRAY_MAGIC: Final = 0xDD5E40F096B4A13F

_HEAD: Final = struct.Struct("<QQQ")
_ARRAY: Final = struct.Struct("<QQiiiBBH")
_MOST_ARRAYS: Final = 10_000
_MOST_DIMENSIONS: Final = 8
BINARY: Final = "a binary that only DGL reads"
PICKLE: Final = "a pickle, which runs code when it is read and is never opened"
_KINDS: Final = {0: "i", 1: "u", 2: "f"}
"""Type codes of DLPack that NumPy has too."""


def read_dgl_tensors(path: str | Path) -> dict[str, AnyArray]:
    """The arrays in the file at `path` by name, read-only.

    Raises FileError, the path first, when it cannot be read, is not such a file, is damaged, or holds a type that NumPy
    does not have.
    """
    source = Path(path)
    file_start(source)
    data = source.read_bytes()
    try:
        magic, count, again = _HEAD.unpack_from(data)
        if magic != FILE_MAGIC:
            raise FileError(f"{path}: not a file of dgl.data.utils.save_tensors")
        if count != again or count > _MOST_ARRAYS:
            raise FileError(f"{path}: truncated or altered: {count} and {again} arrays; at most {_MOST_ARRAYS:,}")
        place, found = _HEAD.size, {}
        for _ in range(count):
            name, array, place = _named_array(str(path), data, place)
            found[name] = array
    except (struct.error, UnicodeDecodeError):
        raise FileError(f"{path}: truncated or altered: it ends within an array") from None
    if place != len(data):
        raise FileError(f"{path}: truncated or altered: {len(data) - place} bytes follow the last array")
    return found


def _named_array(path: str, data: bytes, place: int) -> tuple[str, AnyArray, int]:
    """The array that begins at `place`, its name, and where it ends."""
    (length,) = struct.unpack_from("<Q", data, place)
    if length > len(data):
        raise FileError(f"{path}: truncated or altered: a name of {length:,} bytes")
    name, place = data[place + 8 : place + 8 + length].decode(), place + 8 + length
    magic, _, _, _, dimensions, code, bits, lanes = _ARRAY.unpack_from(data, place)
    place += _ARRAY.size
    if magic != ARRAY_MAGIC or not 0 <= dimensions <= _MOST_DIMENSIONS:
        raise FileError(f"{path}: truncated or altered: no array begins at byte {place - _ARRAY.size}")
    shape = struct.unpack_from(f"<{dimensions}q", data, place)
    (stored,) = struct.unpack_from("<q", data, place + 8 * dimensions)
    place += 8 * dimensions + 8
    if code not in _KINDS or bits not in (8, 16, 32, 64) or lanes != 1:
        raise FileError(f"{path}: {name!r} has type {code}, {bits} bits, {lanes} lanes; integers and floats are read")
    dtype = np.dtype(f"<{_KINDS[code]}{bits // 8}")
    if min(shape, default=0) < 0 or stored != math.prod(shape) * dtype.itemsize or place + stored > len(data):
        raise FileError(f"{path}: truncated or altered: {name!r}: {stored} bytes are not {dtype}{list(shape)}")
    array = np.frombuffer(data, dtype, math.prod(shape), place).reshape(shape)
    return name, frozen(array), place + stored


_MOST_BYTES = 2**24
"""The largest JSON that is read; DGL's have a few kB."""


_EDGE_FILES: Final = ("part_graph", "part_graph_graphbolt")
"""Keys of a part, the second by newer releases."""

_MOST_NAME = 4096
"""The most characters of a path in Linux."""


@dataclass(frozen=True, slots=True)
class DglFacts:
    """The contents of the JSON. inner_nodes, inner_edges: owned by each part; None if a separate file has them."""

    name: str
    method: str
    parts: int
    halo_hops: int
    nodes: int
    edges: int
    inner_nodes: tuple[int, ...] | None
    inner_edges: tuple[int, ...] | None
    missing: tuple[str, ...]
    """Files named in the JSON that do not exist."""

    edges_in: str
    """The name of a part's file of edges, and what it is."""


@dataclass(frozen=True, slots=True)
class DglFolder:
    """A folder of a DGL partition. config: the JSON; partition: its content."""

    config: Path
    partition: dict[str, Any]

    @classmethod
    def found(cls, folder: Path) -> DglFolder | None:
        """The layout in `folder`; None when it is another."""
        for path in sorted(folder.glob("*.json")):
            # A broken link, or a folder of such a name, is not DGL's JSON.
            if not path.is_file() or path.stat().st_size > _MOST_BYTES:
                continue
            try:
                partition = json.loads(file_text(path))
            except (ValueError, RecursionError) as error:
                if (folder / "part0").is_dir():
                    why = " ".join(str(error).split())
                    raise FileError(f"{path}: truncated or altered: {why}") from None
                continue
            if isinstance(partition, dict) and "num_parts" in partition and "part-0" in partition:
                return cls(path, partition)
        return None

    def facts(self) -> DglFacts:
        """The JSON, checked. Raises FileError naming the key that is missing or wrong."""
        parts = self._count("num_parts")
        if parts > len(self.partition):
            raise FileError(f"{self.config}: num_parts is {parts}, but not all of part-0 to part-{parts - 1} are there")
        nodes, edges = self._count("num_nodes"), self._count("num_edges")
        # Path.is_file raises for a name that is too long for a file, so it is not used below.
        names = [self._edge_file(part) for part in range(parts)]
        return DglFacts(
            name=self._text("graph_name"),
            method=self._text("part_method"),
            parts=parts,
            halo_hops=self._count("halo_hops", least=0),
            nodes=nodes,
            edges=edges,
            inner_nodes=self._owned("node_map", parts, nodes),
            inner_edges=self._owned("edge_map", parts, edges),
            missing=tuple(name for name in names if not os.path.isfile(self.config.parent / name)),
            edges_in=f"part*/{Path(names[0]).name}, {PICKLE if names[0].endswith('.pt') else BINARY}",
        )

    def graph(self, name: str) -> Graph:
        """Always raises FileError with the missing requirements."""
        raise FileError(
            f"{self.config}: the edges are in {self.facts().edges_in}; convert it with DGL as docs/files.md shows "
            "(gcnsim graph info prints what the JSON says)"
        )

    def arrays(self, nodes: int, wanted: Collection[str]) -> Found:
        """As `graph`."""
        self.graph(self.config.stem)
        return Found({})

    def size(self, *, features: bool) -> GraphSize:
        """As `graph`."""
        self.graph(self.config.stem)
        return GraphSize(0, 0, 0)

    def _count(self, key: str, least: int = 1) -> int:
        value = self.partition.get(key)
        if type(value) is not int or value < least:
            raise FileError(f"{self.config}: {key} is {value!r}; a whole number of at least {least} is needed")
        return value

    def _text(self, key: str) -> str:
        value = self.partition.get(key)
        if type(value) is not str or not value.isprintable():
            raise FileError(f"{self.config}: {key} is {value!r}; a name is needed")
        return value

    def _owned(self, key: str, parts: int, total: int) -> tuple[int, ...] | None:
        """Sizes of each part's ranges over all types of `key`; None if it is the name of a file."""
        value = self.partition.get(key)
        if isinstance(value, str):
            return None
        owned, wrong = [0] * parts, FileError(f"{self.config}: {key} does not give {parts} parts ranges of {total} ids")
        spans: list[tuple[int, int]] = []
        ranges = list(value.values()) if isinstance(value, dict) else [None]
        for item in ranges:
            if not isinstance(item, list) or len(item) != parts:
                raise wrong
            for part, span in enumerate(item):
                if not isinstance(span, list) or [type(end) for end in span] != [int, int] or span[0] > span[1]:
                    raise wrong
                owned[part] += span[1] - span[0]
                spans.append((span[0], span[1]))
        if sum(owned) != total:
            raise wrong
        end = 0
        for first, beyond in sorted(spans):
            if first < beyond and first != end:
                raise FileError(f"{self.config}: {key}: range [{first}, {beyond}] begins at {first}; {end} is needed")
            end = max(end, beyond)
        return tuple(owned)

    def _edge_file(self, part: int) -> str:
        """The file of a part's edges by the JSON; `graph.dgl` where both forms are there."""
        files = self.partition.get(f"part-{part}")
        named = [files[key] for key in _EDGE_FILES if key in files] if isinstance(files, dict) else []
        if not named:
            raise FileError(f"{self.config}: part-{part} names no file of its edges; allowed: {', '.join(_EDGE_FILES)}")
        name = named[0]
        if not isinstance(name, str) or not name.isprintable() or len(name) > _MOST_NAME:
            raise FileError(f"{self.config}: part-{part}: {name!r:.40}; the name of a file is needed")
        return name
