"""Named arrays that are no archive: `.npy` files under names, and arrays that are held already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gcnsim.errors import FileError
from gcnsim.graph.formats.arrays import npy_shape, read_npy, whole_row
from gcnsim.ids import AnyArray


@dataclass(frozen=True, slots=True)
class NpyFiles:
    """`.npy` files as `contents.ArraySource`. path: their folder; files: each by the name of its array."""

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
        """Bytes of the file; 0 when it is not there."""
        return self.files[key].stat().st_size if key in self.files and self.files[key].is_file() else 0

    def array(self, key: str) -> AnyArray:
        """The whole array, read-only. Raises FileError as `read_npy`."""
        return read_npy(self.files[key])

    def integers(self, key: str) -> AnyArray:
        """The array, refused unless it is a row of whole numbers."""
        return whole_row(self.where(key), self.array(key))

    def numbers(self, key: str, count: int) -> list[int]:
        """`count` integers, refused before they are read where there are more or fewer."""
        if self.shape(key) != (count,):
            raise FileError(f"{self.where(key)} has shape {list(self.shape(key))}; {count} integers are needed")
        return [int(number) for number in self.integers(key)]


@dataclass(frozen=True, slots=True)
class HeldArrays:
    """Arrays in memory as `contents.ArraySource`. path: of the file that they come from."""

    path: Path
    arrays: Mapping[str, AnyArray]

    def names(self) -> tuple[str, ...]:
        """The names of the arrays."""
        return tuple(self.arrays)

    def where(self, key: str) -> str:
        """How messages begin that are about the array."""
        return f"{self.path}: {key!r}"

    def shape(self, key: str) -> tuple[int, ...]:
        """The array's shape."""
        return self.arrays[key].shape

    def nbytes(self, key: str) -> int:
        """Bytes of the array; 0 when it is not there."""
        return self.arrays[key].nbytes if key in self.arrays else 0

    def array(self, key: str) -> AnyArray:
        """The array."""
        return self.arrays[key]

    def integers(self, key: str) -> AnyArray:
        """The array, refused unless it is a row of whole numbers."""
        return whole_row(self.where(key), self.arrays[key])

    def numbers(self, key: str, count: int) -> list[int]:
        """`count` integers, refused where there are more or fewer."""
        if self.shape(key) != (count,):
            raise FileError(f"{self.where(key)} has shape {list(self.shape(key))}; {count} integers are needed")
        return [int(number) for number in self.integers(key)]
