"""Files that pages read: uploads, under generated names, and files of the server's folder.

The name of an upload is never used as a path: it only selects the reader.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock
from typing import Final

from gcnsim.errors import FileError

SUFFIXES: Final = (".profile", ".npz", ".npy", ".csv", ".tsv", ".txt", ".mtx", ".el", ".json", ".yaml", ".yml")
MOST_UPLOADS: Final = 16
UPLOAD: Final = "upload:"
"""The prefix of the key of an upload, in a field that also takes paths."""


class Files:
    """uploads: the folder for uploads; root: the folder that contains all files pages may open."""

    def __init__(self, uploads: Path, root: Path) -> None:
        self._uploads, self._root = uploads, root.resolve()
        self._kept: OrderedDict[str, Path] = OrderedDict()
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
            self._kept[key] = path
            while len(self._kept) > MOST_UPLOADS:
                self._kept.popitem(last=False)[1].unlink(missing_ok=True)
        return key

    def path(self, text: str) -> str | None:
        """The path of the text in a page's field; None for no text. Raises FileError."""
        if not text:
            return None
        if text.startswith(UPLOAD):
            upload = self._kept.get(text)
            if upload is None:
                raise FileError(f"{text}: this upload is no longer here; upload the file again")
            return str(upload)
        path = (self._root / text).resolve()
        if not path.is_relative_to(self._root):
            raise FileError(f"{text}: is outside the folder of the dashboard (--files); allowed: files below it")
        if not path.exists():
            raise FileError(f"{text}: does not exist below the folder of the dashboard (--files)")
        return str(path)

    def shown(self, text: str) -> str:
        """A message without the paths of this machine."""
        for key, path in list(self._kept.items()):
            text = text.replace(str(path), key)
        return text.replace(f"{self._root}{os.sep}", "").replace(str(self._root), ".")
