"""The YAML that describes a data set of DGL, and how its keys are asked for."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcnsim.errors import FileError
from gcnsim.io.yaml_files import read_yaml


@dataclass(frozen=True, slots=True)
class Document:
    """A mapping of the YAML file at `path`; at: where it stands there, for messages."""

    path: Path
    held: dict[str, Any]
    at: str = ""

    @classmethod
    def read(cls, path: Path) -> Document:
        """The whole document. Raises FileError unless it is a mapping."""
        found = read_yaml(path)
        if not isinstance(found, dict):
            raise FileError(f"{path}: a mapping of keys is needed, not {type(found).__name__}")
        return cls(path, found)

    def inner(self, key: str) -> Document:
        """The mapping under `key`; an empty one where there is none."""
        value = self.held.get(key)
        if value is not None and not isinstance(value, dict):
            raise self.wrong(key, "a mapping")
        return Document(self.path, value or {}, f"{self.at}{key}.")

    def entries(self, key: str) -> Iterator[Document]:
        """The mappings in the list under `key`; none where there is no list."""
        value = self.held.get(key)
        if value is None:
            return
        if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
            raise self.wrong(key, "a list of mappings")
        for place, entry in enumerate(value):
            yield Document(self.path, entry, f"{self.at}{key}[{place}].")

    def text(self, key: str, default: str | None = None) -> str:
        """The text under `key`, or `default`."""
        value = self.held.get(key, default)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def count(self, key: str) -> int:
        """The whole number under `key`, from 0."""
        value = self.held.get(key)
        if type(value) is not int or value < 0:
            raise self.wrong(key, "a whole number from 0")
        return value

    def file(self, key: str) -> Path:
        """The file that `key` names, in the document's folder. Raises FileError where it is not there, or elsewhere."""
        name = self.text(key)
        path = self.path.parent / name
        if Path(name).is_absolute() or ".." in Path(name).parts or not name.isprintable():
            raise self.wrong(key, "a path inside the folder")
        # Not Path.is_file, which raises for a name that is too long for a file.
        if not os.path.isfile(path):
            raise FileError(f"{self.path}: {self.at}{key} names {name!r:.80}, which is not there")
        return path

    def wrong(self, key: str, needed: str) -> FileError:
        """What to raise for a value of another kind."""
        found = "missing" if key not in self.held else f"{self.held[key]!r:.60}"
        return FileError(f"{self.path}: {self.at}{key} is {found}; {needed} is needed")
