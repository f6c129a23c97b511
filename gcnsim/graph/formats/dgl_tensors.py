"""Arrays in the files of `dgl.data.utils.save_tensors`, as DGL's partitions hold them (`orig_nids.dgl`).

Layout, little-endian (DGL, src/graph/serialize/tensor_serialize.cc and include/dgl/runtime/ndarray.h): magic number,
count, count again; then each array: the length of its name, the name, magic number, 8 bytes unused, device type and
number, dimensions, type (code, bits, lanes), shape, bytes, data. It is plain data: nothing of it is run.
"""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, frozen
from gcnsim.graph.formats.source import file_start

FILE_MAGIC: Final = 0xDD5A9FBE3FA2443F
ARRAY_MAGIC: Final = 0xDD5E40F096B4A13F

_HEAD: Final = struct.Struct("<QQQ")
_ARRAY: Final = struct.Struct("<QQiiiBBH")
_MOST_ARRAYS: Final = 10_000
_MOST_DIMENSIONS: Final = 8
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
