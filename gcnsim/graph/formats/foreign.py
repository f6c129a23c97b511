"""Files of other tools that are not read: named by their content or suffix, each with what to do instead."""

from __future__ import annotations

import struct
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import Final, NoReturn

from gcnsim.core.errors import FileError
from gcnsim.graph.formats.source import file_start, plain_bytes

_DGL: Final = struct.pack("<Q", 0xDD2E4FF046B4A13F)
"""How a file of `dgl.save_graphs` begins."""

_PACKED: Final = {b"BZh": "bzip2 -dk", b"\xfd7zXZ": "xz -dk", b"\x28\xb5\x2f\xfd": "zstd -d", b"7z\xbc\xaf": "7z x"}
"""How compressed files begin, with the program that unpacks them."""

_NETWORKX: Final = {".graphml": "read_graphml", ".gml": "read_gml", ".gexf": "read_gexf", ".net": "read_pajek"}
_PICKLES: Final = (".pkl", ".pickle", ".pt", ".pth", ".gpickle")
_MOST_LISTED: Final = 5
_MOST_MEMBERS: Final = 50
"""Members of a tar archive looked at: finding the next one unpacks the one before."""

_BLOCK: Final = 512
"""Bytes of the head of a tar archive's first member."""


def refuse_foreign(path: Path, suffix: str, known: Sequence[str]) -> None:
    """Raise FileError for a file of another tool, if its content or `suffix` says so. known: suffixes that are read.

    A zip archive is refused if none of its members is an array.
    """
    start = file_start(path, 16)
    if start.startswith(_DGL):
        raise FileError(f"{path}: graphs of dgl.save_graphs, which only DGL reads; convert them as docs/files.md shows")
    program = next((program for magic, program in _PACKED.items() if start.startswith(magic)), None)
    if program is not None:
        raise FileError(f"{path}: compressed; unpack it first ({program} {path.name}) and give what it holds")
    members = _members(path)
    if members and not any(name.endswith((".npy", ".pkl")) for name in members):
        _refuse_archive(path, members, known, "zipfile" if start.startswith(b"PK") else "tarfile")
    reader = _NETWORKX.get(suffix)
    if reader is not None and (suffix != ".net" or start.startswith(b"*")):
        raise FileError(
            f"{path}: {suffix} is not read; networkx.write_edgelist(networkx.{reader}(FILE), 'edges.txt', data=False) "
            "converts it, and Python takes the graph itself"
        )
    if suffix in _PICKLES and not start.startswith(b"PK"):
        raise FileError(
            f"{path}: a pickle, which runs code when it is read and is never opened; convert it to .npz as "
            "docs/files.md shows"
        )


def _members(path: Path) -> list[str]:
    """The names of the files in a zip or tar archive, packed by gzip or not; empty for other files."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return [name for name in archive.namelist() if not name.endswith("/")]
        with plain_bytes(path) as file:
            if file.read(_BLOCK)[257:262] != b"ustar":
                return []
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r|") as packed:
                return [member.name for member in islice(packed, _MOST_MEMBERS) if member.isfile()]
    except (zipfile.BadZipFile, tarfile.TarError, OSError, EOFError, zlib.error, ValueError, FileError):
        return []  # its own reader says what is wrong


def _refuse_archive(path: Path, members: Sequence[str], known: Sequence[str], module: str) -> NoReturn:
    """Raise FileError with how to unpack the archive, and which member to give."""
    edges = [name for name in members if Path(name).name.startswith(("edge", "out.")) or name.endswith((*known, ".gz"))]
    best = min(edges, key=lambda name: not Path(name).name.startswith(("edge", "out.")), default=members[0])
    more = f" and {len(members) - _MOST_LISTED} more" if len(members) > _MOST_LISTED else ""
    how = f"python -m {module} -e {path.name} ."
    ending = "" if best.endswith((*known, ".gz")) else ", renamed to end in .txt"
    given = f"the folder {best.partition('/raw/')[0]}" if "/raw/" in best else f"{best}{ending}"
    listed = ", ".join(members[:_MOST_LISTED])
    raise FileError(f"{path}: an archive of {listed}{more}; unpack it first ({how}) and give {given}")
