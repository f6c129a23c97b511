"""Stamps of files: whether a file that was read is still the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

READ: Final = ("graph", "measured_compute", "calibration")
"""Options of a row that name a file or a folder."""

Stamp = tuple[int, ...]
"""When a file was last written, in nanoseconds, its place on the disk and its size; empty: there is none."""


def stamp_of(path: str | None) -> Stamp:
    """The stamp of the file or folder at `path`; a missing one is reported when it is read."""
    try:
        status = os.stat(path or "")
    except (OSError, ValueError):
        return ()
    return status.st_mtime_ns, status.st_ino, status.st_size


def stamps_of(options: Mapping[str, Any]) -> dict[str, Stamp]:
    """The stamps of the files that these options name, by path; missing ones are left out."""
    paths = [path for name in READ if isinstance(path := options.get(name), str)]
    return {path: stamp for path in paths if (stamp := stamp_of(path))}
