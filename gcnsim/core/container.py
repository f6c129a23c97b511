"""One container format for all binary files: a JSON header, then aligned arrays with a checksum each.

Layout (little-endian): magic `GCNSIM\\0\\1`, 8 bytes header length, the header (JSON, UTF-8), zero padding to 64,
then each section at a multiple of 64 bytes. The header has `kind`, `version`, `meta` and, per section, dtype, shape,
offset (from the end of the padded header), bytes and SHA-256. The header's SHA-256 follows the magic, so an altered
header is detected too. There is no pickle; arrays are memory-mapped on reading. Files are written atomically.
"""

from __future__ import annotations

import hashlib
import json
import math
import mmap
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as shown
from typing import TYPE_CHECKING, Any

import numpy as np

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, frozen

if TYPE_CHECKING:
    import pyarrow as pa

MAGIC = b"GCNSIM\x00\x01"
ALIGN = 64
_ALLOWED = frozenset({"|u1", "<u4", "<u8", "<i4", "<i8", "<f4", "<f8"})
_MOST_DIMENSIONS = 8
_PREFIX = len(MAGIC) + 8 + 32
_NOUNS = {str: "text", int: "a whole number", dict: "an object"}


@dataclass(frozen=True, slots=True)
class Sections:
    """A file's header facts and its arrays (read-only, memory-mapped)."""

    kind: str
    version: int
    meta: Mapping[str, Any]
    arrays: Mapping[str, AnyArray]
    content_hash: str
    """SHA-256 of the header, which holds every section's own hash: the identity of the content."""


def write_sections(
    path: str | Path, *, kind: str, version: int, meta: Mapping[str, Any], arrays: Mapping[str, AnyArray]
) -> str:
    """Write `arrays` and `meta` to `path` atomically; return the content hash.

    Raises FileError when the file cannot be written; ValueError for a dtype the format does not have.
    """
    entries: dict[str, dict[str, Any]] = {}
    payload: list[AnyArray] = []
    offset = 0
    for name, array in arrays.items():
        flat = np.ascontiguousarray(array)
        flat = flat.astype(flat.dtype.newbyteorder("<"), copy=False)
        if flat.dtype.str not in _ALLOWED:
            raise ValueError(f"section {name!r}: dtype {flat.dtype} is not one of {sorted(_ALLOWED)}")
        entries[name] = {
            "dtype": flat.dtype.str,
            "shape": list(flat.shape),
            "offset": offset,
            "bytes": flat.nbytes,
            "sha256": hashlib.sha256(flat.data.cast("B") if flat.size else b"").hexdigest(),
        }
        payload.append(flat)
        offset += -(-flat.nbytes // ALIGN) * ALIGN
    header = json.dumps(
        {"kind": kind, "version": version, "meta": meta, "sections": entries}, sort_keys=True, allow_nan=False
    ).encode()
    digest = hashlib.sha256(header)
    with atomic_write(path) as file:
        file.write(MAGIC + len(header).to_bytes(8, "little") + digest.digest() + header)
        file.write(b"\x00" * (-(_PREFIX + len(header)) % ALIGN))
        for flat in payload:
            file.write(flat.data.cast("B") if flat.size else b"")
            file.write(b"\x00" * (-flat.nbytes % ALIGN))
    return digest.hexdigest()


def read_sections(path: str | Path, *, kind: str, version: int | tuple[int, ...]) -> Sections:
    """The file at `path`, every checksum verified. version: the one that is read, or all that are, ascending.

    Raises FileError when it is missing, not ours, of another kind or version, truncated, or altered.
    """
    source = Path(path)
    try:
        with open(source, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if size else b""
    except OSError as error:
        raise FileError(f"{source}: cannot be read: {error.strerror}") from None
    header, raw, start = _header(source, data)
    if header["kind"] != kind:
        raise FileError(f"{source}: is a {header['kind']} file, wanted a {kind} file")
    known = (version,) if isinstance(version, int) else version
    if header["version"] not in known:
        read = " and ".join(map(str, known))
        raise FileError(f"{source}: {kind} version {header['version']}, this gcnsim reads version {read}")
    arrays = {name: _section(source, data, start, name, entry) for name, entry in header["sections"].items()}
    _check_padding(source, data, start, _PREFIX + len(raw), header["sections"])
    return Sections(kind, header["version"], header["meta"], arrays, hashlib.sha256(raw).hexdigest())


def section_of(
    path: str | Path, stored: Sections, name: str, dtype: str, ndim: int, shape: tuple[int, ...] | None = None
) -> AnyArray:
    """The section `name` of what the file at `path` holds. shape: None where any of `ndim` dimensions will do.

    Raises FileError when it is missing, or of another type or shape.
    """
    array = stored.arrays.get(name)
    if array is None:
        raise FileError(f"{path}: section {name!r} is missing")
    if array.dtype != np.dtype(dtype) or array.ndim != ndim or (shape is not None and array.shape != shape):
        raise FileError(
            f"{path}: section {name!r} is {array.dtype} {array.shape}, wanted {dtype} {shape or ''}".rstrip()
        )
    return array


def kind_of(path: str | Path) -> str:
    """The kind of the file at `path`, by its header alone. Raises FileError when it is missing or not ours."""
    source = Path(path)
    try:
        with open(source, "rb") as file:
            data = file.read(_PREFIX)
            if data[: len(MAGIC)] == MAGIC:
                length = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
                data += file.read(min(length, os.fstat(file.fileno()).st_size))
    except OSError as error:
        raise FileError(f"{source}: cannot be read: {error.strerror}") from None
    return str(_header(source, data)[0]["kind"])


def fits_memory(shape: Sequence[int], itemsize: int) -> bool:
    """Whether an array of this shape can be addressed; NumPy counts an axis without elements as one of 1."""
    # One axis at a time: the product of many long numbers would be longer still.
    size = itemsize
    for length in shape:
        size *= max(length, 1)
        if size > sys.maxsize:
            return False
    return True


def _header(source: Path, data: bytes | mmap.mmap) -> tuple[dict[str, Any], bytes, int]:
    if len(data) < _PREFIX or data[: len(MAGIC)] != MAGIC:
        raise FileError(f"{source}: is not a gcnsim file (or is truncated before its header)")
    length = int.from_bytes(data[len(MAGIC) : len(MAGIC) + 8], "little")
    raw = bytes(data[_PREFIX : _PREFIX + length])
    if len(raw) != length:
        raise FileError(f"{source}: truncated: header of {length} bytes, {len(raw)} present")
    if hashlib.sha256(raw).digest() != data[len(MAGIC) + 8 : _PREFIX]:
        raise FileError(f"{source}: altered: the header does not match its checksum")
    return _parsed(source, raw), raw, -(-(_PREFIX + length) // ALIGN) * ALIGN


def _parsed(source: Path, raw: bytes) -> dict[str, Any]:
    """The header, every field of its type and every section of a size that its dtype and shape give."""
    try:
        header: Any = json.loads(raw, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise FileError(f"{source}: the header is not JSON: {' '.join(str(error).split())}") from None
    if not isinstance(header, dict):
        raise FileError(f"{source}: the header is a {type(header).__name__}; allowed: an object")
    for field, kind in (("kind", str), ("version", int), ("meta", dict), ("sections", dict)):
        if type(header.get(field)) is not kind:
            raise FileError(f"{source}: header: {field} is {shown(header.get(field))}; allowed: {_NOUNS[kind]}")
    for name, entry in header["sections"].items():
        wrong = _wrong(entry)
        if wrong:
            raise FileError(f"{source}: header: section {shown(name)}: {wrong}")
    return header


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")


def _wrong(entry: Any) -> str | None:
    """What is wrong with what the header says of a section; None when nothing is."""
    if not isinstance(entry, dict):
        return f"{shown(entry)}; allowed: an object"
    dtype, shape, sha = (entry.get(key) for key in ("dtype", "shape", "sha256"))
    if not isinstance(dtype, str) or dtype not in _ALLOWED:
        return f"dtype is {shown(dtype)}; allowed: {', '.join(sorted(_ALLOWED))}"
    if not isinstance(shape, list) or not all(type(size) is int and size >= 0 for size in shape):
        return f"shape is {shown(shape)}; allowed: a list of whole numbers from 0"
    if len(shape) > _MOST_DIMENSIONS:
        return f"shape has {len(shape)} dimensions; at most {_MOST_DIMENSIONS} are allowed"
    if not fits_memory(shape, np.dtype(dtype).itemsize):
        return f"shape is {shown(shape)}, more than an array of {dtype} can have"
    needed = math.prod(shape) * np.dtype(dtype).itemsize
    if type(entry.get("bytes")) is not int or entry["bytes"] != needed:
        return f"bytes is {shown(entry.get('bytes'))}; shape {shown(shape)} of {dtype} has {needed}"
    if type(entry.get("offset")) is not int or entry["offset"] < 0 or entry["offset"] % ALIGN:
        return f"offset is {shown(entry.get('offset'))}; allowed: multiples of {ALIGN} from 0"
    return None if isinstance(sha, str) else f"sha256 is {shown(sha)}; allowed: text"


def _section(source: Path, data: bytes | mmap.mmap, start: int, name: str, entry: Mapping[str, Any]) -> AnyArray:
    begin, count = start + int(entry["offset"]), int(entry["bytes"])
    if begin + count > len(data):
        raise FileError(f"{source}: truncated: section {name!r} needs {begin + count} bytes, the file has {len(data)}")
    if hashlib.sha256(memoryview(data)[begin : begin + count]).hexdigest() != entry["sha256"]:
        raise FileError(f"{source}: altered: section {name!r} does not match its checksum")
    dtype = np.dtype(entry["dtype"])
    array = np.frombuffer(data, dtype=dtype, count=count // dtype.itemsize, offset=begin)
    return frozen(array.reshape(entry["shape"]))


def _check_padding(
    source: Path, data: bytes | mmap.mmap, start: int, header_end: int, entries: Mapping[str, Mapping[str, Any]]
) -> None:
    """Every byte that no checksum covers is zero, and nothing follows the last section."""
    gaps = [(header_end, start)]
    for entry in entries.values():
        end = start + int(entry["offset"]) + int(entry["bytes"])
        gaps.append((end, -(-(end - start) // ALIGN) * ALIGN + start))
    last = max(end for _, end in gaps)
    if len(data) < last:
        raise FileError(f"{source}: truncated: {last} bytes expected, the file has {len(data)}")
    if len(data) > last:
        raise FileError(f"{source}: altered: {len(data) - last} bytes follow the last section")
    if any(any(data[begin:end]) for begin, end in gaps):
        raise FileError(f"{source}: altered: padding between sections is not zero")


def read_parquet_table(path: str | Path) -> pa.Table:
    """Read all rows of the file. Raises OSError, pyarrow.ArrowException, MemoryError or OverflowError for damage.

    Arrow's threads are not used: a thread that holds a Python file while the interpreter ends aborts the process
    ("terminate called without an active exception", Arrow issues 34314 and 45017).
    """
    import pyarrow.parquet as pq

    with open(path, "rb") as file:
        table = pq.ParquetFile(file, page_checksum_verification=True, pre_buffer=False).read(use_threads=False)
    table.validate(full=True)
    return table
