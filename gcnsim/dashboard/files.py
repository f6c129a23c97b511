"""Files that pages read: uploads, under generated names, and files of the server's folder.

The name of an upload is never used as a path: it only selects the reader.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from pathlib import Path, PureWindowsPath
from threading import Lock
from typing import Final

from gcnsim.core.errors import FileError
from gcnsim.report.answer.rows import plain

SUFFIXES: Final = (".profile", ".npz", ".npy", ".csv", ".tsv", ".txt", ".mtx", ".el", ".json", ".yaml", ".yml")
MOST_UPLOADS: Final = 16
UPLOAD: Final = "upload:"
"""The prefix of the key of an upload, in a field that also takes paths."""

DEEPEST, MOST_VISITED = 4, 5_000
"""How far below the folder, and how many entries, are looked at for lists; others are given by their path."""

MOST_LISTED: Final = 200


class Files:
    """uploads: the folder for uploads; root: the folder that contains all files pages may open."""

    def __init__(self, uploads: Path, root: Path) -> None:
        self._uploads, self._root = uploads, root.resolve()
        self._kept: OrderedDict[str, Path] = OrderedDict()
        self._names: dict[str, str] = {}
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

    def listed(self, ends: Sequence[str]) -> list[str]:
        """Files below the folder whose name ends in one of `ends`, and folders that hold a file `NAME` of `NAME/`."""
        inside = {end.removesuffix("/") for end in ends if end.endswith("/")}
        suffixes = tuple(end for end in ends if not end.endswith("/"))
        found, visited = [], 0
        for folder, folders, names in os.walk(self._root):
            place = Path(folder).relative_to(self._root)
            folders[:] = sorted(name for name in folders if name[0] not in "._") if len(place.parts) < DEEPEST else []
            visited += len(names) + len(folders)
            if visited > MOST_VISITED:
                break
            found += [str(place)] if inside & {*names} else []
            found += [str(place / name) for name in sorted(names) if suffixes and name.endswith(suffixes)]
        return found[:MOST_LISTED]

    def shown(self, text: str) -> str:
        """A message without the paths of this machine."""
        for key, path in list(self._kept.items()):
            text = text.replace(str(path), key)
        return text.replace(f"{self._root}{os.sep}", "").replace(str(self._root), ".")
