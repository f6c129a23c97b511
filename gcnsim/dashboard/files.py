"""Files that pages read: uploads, under generated names, and files of the server's folder.

The name of an upload is never used as a path: it only selects the reader.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path, PureWindowsPath
from threading import Lock
from typing import Final

from gcnsim.core import clock
from gcnsim.core.errors import FileError
from gcnsim.report.answer.rows import plain

SUFFIXES: Final = (".profile", ".npz", ".npy", ".csv", ".tsv", ".txt", ".mtx", ".el", ".json", ".yaml", ".yml")
MOST_UPLOADS: Final = 16
UPLOAD: Final = "upload:"
"""The prefix of the key of an upload, in a field that also takes paths."""

DEEPEST, MOST_VISITED = 4, 5_000
"""How far below the folder, and how many entries, are looked at for lists; others are given by their path."""

MOST_LISTED: Final = 200
MOST_READ: Final = 16_384
"""Characters of a file that are looked at for a list."""

FRESH_S: Final = 2.0
"""How long what was found below the folder is kept: a page has several lists."""


class Files:
    """uploads: the folder for uploads; root: the folder that contains all files pages may open."""

    def __init__(self, uploads: Path, root: Path) -> None:
        self._uploads, self._root = uploads, root.resolve()
        self._kept: OrderedDict[str, Path] = OrderedDict()
        self._names: dict[str, str] = {}
        self._walk: tuple[float, list[tuple[Path, list[str]]]] | None = None
        self._lock = Lock()

    def take(self, name: str, content: bytes) -> str:
        """Store an upload and return its text for `path`. Raises FileError for an unsupported name."""
        suffix = next((item for item in SUFFIXES if name.lower().endswith(item)), None)
        if suffix is None:
            raise FileError(f"upload: its name says no format; allowed: {', '.join(SUFFIXES)}")
        if not content:
            raise FileError("upload: the file is empty")
        key = UPLOAD + os.urandom(8).hex()
        path = self._uploads / (key.removeprefix(UPLOAD) + suffix)
        path.write_bytes(content)
        with self._lock:
            self._kept[key], self._names[key] = path, PureWindowsPath(plain(name)).name
            while len(self._kept) > MOST_UPLOADS:
                old, gone = self._kept.popitem(last=False)
                gone.unlink(missing_ok=True)
                del self._names[old]
        return key

    def name(self, text: str) -> str:
        """What a page's text is called where the file came from: of an upload the name that it had, without folders."""
        return self._names.get(text, text)

    def path(self, text: str) -> str | None:
        """The path of the text in a page's field; None for no text. Raises FileError."""
        if not text:
            return None
        if text.startswith(UPLOAD):
            upload = self._kept.get(text)
            if upload is None:
                raise FileError(f"{text}: this upload is no longer here; upload the file again")
            return str(upload)
        try:
            path = (self._root / text).resolve()
            exists = path.exists()
        except (OSError, RuntimeError, ValueError):  # too long, a loop of links, an impossible character
            raise FileError(
                f"{text[:40]}: cannot be a path; allowed: files below the folder of the dashboard"
            ) from None
        if not path.is_relative_to(self._root):
            raise FileError(f"{text}: is outside the folder of the dashboard (--files); allowed: files below it")
        if not exists:
            raise FileError(f"{text}: does not exist below the folder of the dashboard (--files)")
        return str(path)

    def below(self, text: str) -> str:
        """The path of a text, relative to the folder if it is below; empty for no text. Raises FileError."""
        return (self.path(text) or "").removeprefix(f"{self._root}{os.sep}")

    @property
    def folder(self) -> str:
        """The folder that contains all files pages may open."""
        return str(self._root)

    def listed(self, ends: Sequence[str], holds: str = "") -> list[str]:
        """Files below the folder whose name ends in one of `ends`, and folders that hold a file `NAME` of `NAME/`.

        holds: only files with a line that begins so. Hidden files, and links to what lies elsewhere, are left out.
        """
        inside = {end.removesuffix("/") for end in ends if end.endswith("/")}
        suffixes = tuple(end for end in ends if not end.endswith("/"))
        found: list[str] = []
        for place, names in self._walked():
            found += [str(place)] if inside & {*names} else []
            named = [place / name for name in names if suffixes and name.endswith(suffixes)]
            found += [str(path) for path in named if self._inside(path) and (not holds or self._has(path, holds))]
            if len(found) >= MOST_LISTED:
                break
        return found[:MOST_LISTED]

    def _walked(self) -> list[tuple[Path, list[str]]]:
        """The folders below this one with their files: one walk for all fields of a page."""
        now = clock.now()
        with self._lock:
            if self._walk is None or now - self._walk[0] > FRESH_S:
                self._walk = now, list(_walk(self._root))
            return self._walk[1]

    def _inside(self, path: Path) -> bool:
        whole = self._root / path
        return not whole.is_symlink() or whole.resolve().is_relative_to(self._root)

    def _has(self, path: Path, start: str) -> bool:
        """Whether a line at the beginning of a file begins so."""
        try:
            with open(self._root / path, encoding="utf-8", errors="replace") as file:
                return any(line.startswith(start) for line in file.read(MOST_READ).splitlines())
        except OSError:
            return False

    def shown(self, text: str) -> str:
        """A message without the paths of this machine."""
        for key, path in list(self._kept.items()):
            text = text.replace(str(path), key)
        return text.replace(f"{self._root}{os.sep}", "").replace(str(self._root), ".")


def _walk(root: Path) -> Iterator[tuple[Path, list[str]]]:
    """Folders, from `root` down, with the names of their files, until so many entries were looked at."""
    visited = 0
    for folder, folders, names in os.walk(root):
        place = Path(folder).relative_to(root)
        folders[:] = sorted(name for name in folders if name[0] not in "._") if len(place.parts) < DEEPEST else []
        yield place, sorted(name for name in names if name[0] != ".")
        visited += len(names) + len(folders)
        if visited > MOST_VISITED:
            return
