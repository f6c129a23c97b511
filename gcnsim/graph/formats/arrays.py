"""Named arrays in NumPy archives and `.npy` files, read as untrusted data.

Every array is checked against its header, and arrays of an archive also against the zip's checksums. Object arrays are
never opened, because that would run a pickle. Named arrays may also be `.npy` files in a folder (`NpyFiles`).
"""

from __future__ import annotations

import lzma
import math
import struct
import tokenize
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, TypeAlias

import numpy as np

from gcnsim.core.container import fits_memory
from gcnsim.core.errors import FileError
from gcnsim.core.ids import AnyArray, frozen
from gcnsim.graph.formats.source import file_start, limits_named

if TYPE_CHECKING:
    from gcnsim.graph.formats.contents import ArraySource

_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    tokenize.TokenError,
    OSError,
    EOFError,
    SyntaxError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    RuntimeError,
)
"""Exceptions of zipfile and of the .npy header parser for damaged files."""

_CHUNK = 2**24
"""Bytes processed at a time: a multiple of the size of every number."""

_HEADER = 10_000
"""The most bytes of a header, which is also NumPy's limit."""

_UNPACKED = 2**18
"""Bytes unpacked at a time, so that they stay in the cache."""

_MOST_WHOLE = 2.0**53

_Header: TypeAlias = tuple[tuple[int, ...], bool, np.dtype[np.generic]]


def npy_shape(path: Path) -> tuple[int, ...]:
    """The shape in the header of the `.npy` file at `path`. Raises FileError as in `read_npy`."""
    file_start(path)
    with _damage_named(path), open(path, "rb") as file:
        return _header(str(path), file)[0]


def read_npy(path: str | Path) -> AnyArray:
    """The array in the `.npy` file at `path`, read-only.

    Raises FileError, starting with the path, if it is unreadable, damaged or an object array.
    """
    source = Path(path)
    file_start(source)
    with _damage_named(source), open(source, "rb") as file:
        return _parsed(str(source), file, source.stat().st_size)


class WholeNumbers:
    """Rows of whole numbers of an `ArraySource`."""

    __slots__ = ()

    def integers(self: ArraySource, key: str) -> AnyArray:
        """The array, refused unless it is a row of whole numbers; floats that are whole come as int64."""
        return whole_row(self.where(key), self.array(key))

    def numbers(self: ArraySource, key: str, count: int) -> list[int]:
        """`count` integers; another number of them is refused before reading."""
        if self.shape(key) != (count,):
            raise FileError(f"{self.where(key)} has shape {list(self.shape(key))}; {count} integers are needed")
        return [int(integer) for integer in self.integers(key)]


@dataclass(frozen=True, slots=True)
class Archive(WholeNumbers):
    """An open .npz; its methods read one array each, checked against the zip's checksum."""

    path: Path
    zip: zipfile.ZipFile

    def __contains__(self, key: str) -> bool:
        return f"{key}.npy" in self.zip.namelist()

    def names(self) -> tuple[str, ...]:
        """The names of all arrays; a member that is not a `.npy` keeps its whole name."""
        return tuple(item.removesuffix(".npy") for item in self.zip.namelist())

    def where(self, key: str) -> str:
        """The start of messages about the array."""
        return f"{self.path}: {key!r}"

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape in the array's header; the data stays unread."""
        self._need(key)
        with self.zip.open(f"{key}.npy") as file:
            return _header(self.where(key), file)[0]

    def nbytes(self, key: str) -> int:
        """Bytes of the array, from the zip's directory; 0 if it does not exist."""
        return self.zip.getinfo(f"{key}.npy").file_size if key in self else 0

    def array(self, key: str) -> AnyArray:
        """The whole array, read-only; unpacked in chunks into its own memory, so that it exists once."""
        self._need(key)
        with self.zip.open(f"{key}.npy") as file:
            return _parsed(self.where(key), file, self.nbytes(key))

    def check_finite(self, key: str) -> None:
        """Read the array in chunks, without storing it. Raises FileError unless all numbers are finite in float32."""
        self._need(key)
        where = self.where(key)
        with self.zip.open(f"{key}.npy") as file:
            shape, _, dtype = _header(where, file)
            if dtype.kind not in "fiub":
                raise FileError(f"{where} is {dtype}{list(shape)}; numbers are needed")
            left = math.prod(shape) * dtype.itemsize
            while left and (chunk := file.read(min(left, _CHUNK))):
                left -= len(chunk)
                values = np.frombuffer(chunk, dtype, len(chunk) // dtype.itemsize)
                with np.errstate(over="ignore"):  # reported as not finite
                    if not np.isfinite(values.astype(np.float32, copy=False)).all():
                        raise FileError(f"{where} holds values that are not finite in float32; finite ones are needed")
            if left or file.read(1):
                raise FileError(f"{where}: truncated or altered: its bytes are not {dtype}{list(shape)}")

    def _need(self, key: str) -> None:
        if key not in self:
            found = ", ".join(sorted(item.removesuffix(".npy") for item in self.zip.namelist())) or "nothing"
            raise FileError(f"{self.path}: key {key!r} is missing (found: {found})")


def _filled(file: IO[bytes], into: memoryview) -> int:
    """Read `file` into `into` until that is full; returns the number of bytes."""
    filled = 0
    while filled < len(into) and (chunk := file.read(min(len(into) - filled, _UNPACKED))):
        into[filled : filled + len(chunk)] = chunk
        filled += len(chunk)
    return filled


@contextmanager
def opened(path: Path) -> Iterator[Archive]:
    """The archive at `path`; damage found while it is open is a FileError."""
    with _damage_named(path), zipfile.ZipFile(path) as archive:
        yield Archive(path, archive)


@contextmanager
def _damage_named(path: Path) -> Iterator[None]:
    try:
        with limits_named(path):
            yield
    except _DAMAGE as error:
        why = " ".join(str(error).split()) or type(error).__name__
        raise FileError(f"{path}: truncated or altered: {why}") from None


def _parsed(where: str, file: IO[bytes], stored: int) -> AnyArray:
    """The array in an open `.npy` file of `stored` bytes, read-only; memory is reserved for a size that fits alone."""
    shape, fortran, dtype = _header(where, file)
    size, held = math.prod(shape) * dtype.itemsize, stored - file.tell()
    raw = np.empty(size if size == held else 0, np.uint8)
    if size != held or _filled(file, raw.data) != size or file.read(1):
        raise FileError(f"{where}: truncated or altered: {held} bytes are not {dtype}{list(shape)}")
    return frozen(np.ndarray(shape, dtype, raw, order="F" if fortran else "C"))


def _header(where: str, file: IO[bytes]) -> _Header:
    version = np.lib.format.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise FileError(f"{where}: unsupported .npy version {version}; supported: 1.0, 2.0")
    length = file.read(2 if version == (1, 0) else 4)
    header_length = int.from_bytes(length, "little")
    if header_length > _HEADER:
        raise FileError(
            f"{where}: truncated or altered: a header of {header_length:,} bytes; at most {_HEADER:,} are allowed"
        )
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    with warnings.catch_warnings():
        # A user cannot act on a warning about a Python 2 header or an old type name.
        warnings.simplefilter("ignore")
        shape, fortran, dtype = read(BytesIO(length + file.read(header_length)))
    if dtype.hasobject:
        raise FileError(f"{where} is an object array (a pickle), which is never opened")
    if min(shape, default=0) < 0 or not fits_memory(shape, dtype.itemsize):
        raise FileError(f"{where}: truncated or altered: no array can have the shape {list(shape)} of {dtype}")
    return shape, fortran, dtype


def whole_row(where: str, array: AnyArray) -> AnyArray:
    """A row of whole numbers, as in `whole_numbers`; a column [K, 1] is a row. Raises FileError for other shapes."""
    row = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
    if row.ndim != 1:
        raise FileError(f"{where} is {array.dtype}{list(array.shape)}; a 1-D array of integers is needed")
    return whole_numbers(where, row)


def whole_numbers(where: str, array: AnyArray) -> AnyArray:
    """The array as integers: booleans as 0 and 1, floats as int64 if all are whole.

    Raises FileError for any other type or value.
    """
    if array.dtype.kind in "iu":
        return array
    if array.dtype.kind == "b":
        return frozen(array.astype(np.int8))
    if array.dtype.kind != "f":
        raise FileError(f"{where} is {array.dtype}{list(array.shape)}; integers are needed")
    # Beyond 2^53, floats skip whole numbers, so the intended value is unknown.
    wrong = ~(np.abs(array) <= _MOST_WHOLE) | (array != np.floor(array))
    if wrong.any():
        found = array[wrong].flat[0]
        raise FileError(f"{where} is {array.dtype}{list(array.shape)} with the value {found}; integers are needed")
    return frozen(array.astype(np.int64))


def class_count(labels: AnyArray) -> int | None:
    """The number of classes in labels [N] or [N, C]: C, or the largest label plus one; None if no label is known."""
    if labels.ndim == 2:
        return int(labels.shape[1])
    # `initial=-1` is impossible for unsigned integers.
    known = int(labels.max()) + 1 if labels.size else 0
    return known if known > 0 else None


@dataclass(frozen=True, slots=True)
class NpyFiles(WholeNumbers):
    """`.npy` files as `contents.ArraySource`. path: their folder; files: by the name of the array."""

    path: Path
    files: Mapping[str, Path]

    @classmethod
    def in_folder(cls, folder: Path) -> NpyFiles:
        """All `.npy` files in `folder`, each by its name without the suffix."""
        return cls(folder, {item.stem: item for item in sorted(folder.glob("*.npy")) if item.is_file()})

    def names(self) -> tuple[str, ...]:
        """The names of the arrays."""
        return tuple(self.files)

    def where(self, key: str) -> str:
        """The file's path."""
        return str(self.files[key])

    def shape(self, key: str) -> tuple[int, ...]:
        """The shape in the file's header; the data stays unread."""
        return npy_shape(self.files[key])

    def nbytes(self, key: str) -> int:
        """Bytes of the file; 0 if it does not exist."""
        return self.files[key].stat().st_size if key in self.files and self.files[key].is_file() else 0

    def array(self, key: str) -> AnyArray:
        """The whole array, read-only. Raises FileError as `read_npy`."""
        return read_npy(self.files[key])
