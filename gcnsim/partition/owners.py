"""Partitions that others made: an array of owners, METIS's text, a partition folder of DGL; and ours, by one reader.

What simulates and what trains ask here, so that both take the same files.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.errors import FileError, plural
from gcnsim.graph import Graph, read_npy
from gcnsim.graph.formats.arrays import whole_numbers
from gcnsim.graph.formats.source import file_start, file_text
from gcnsim.ids import AnyArray, frozen
from gcnsim.io.container import MAGIC
from gcnsim.partition.dgl_folder import dgl_owners, is_dgl_config
from gcnsim.partition.files import read_partition
from gcnsim.partition.parts import FROM_FILE, Partitioning

_NUMPY: Final = b"\x93NUMPY"
_ZIP: Final = b"PK\x03\x04"
_PICKLE: Final = b"\x80"
_LINE: Final = re.compile(rb"[ \t]*[+-]?[0-9]{1,18}[ \t]*")
_LINES: Final = re.compile(rb"(?:[ \t]*[+-]?[0-9]{1,18}[ \t]*(?:\n|\Z))+")
_COMMENT: Final = (b"%", b"#")

KNOWN: Final = (
    "a file of gcnsim graph partition --out, an array of owners (.npy), METIS's text (a number a line), "
    "or a partition folder of DGL"
)
"""What is read, in words."""


def open_partition(path: str | Path, graph: Graph) -> Partitioning:
    """The partition of `graph` at `path`, whatever wrote it.

    Read are: a file of `write_partition`; a `.npy` of integers[N], the part of each node; a text of one number a line,
    as METIS writes `graph.part.N`; a folder of `dgl.distributed.partition_graph`, or its JSON. Raises FileError when it
    is missing, damaged or of another kind, made for another graph, or its parts are not 0 to P - 1, each with a node.
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
    """The partition that the array `owner` gives, the part of each node; `path` is where it stood, for messages.

    A column [N, 1] or a table of one row is taken as a row, whole floats as integers; a mask of truth values is no
    partition. note: what its reader assumed. Raises FileError as `open_partition`.
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
    """A number a line, int64; comments, and empty lines at the end, are passed over."""
    data = file_text(source).replace(b"\r\n", b"\n").replace(b"\r", b"\n").rstrip()
    if not data:
        raise FileError(f"{source}: is empty; the number of its part is needed for each node, one a line")
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
