"""Stamps of files: whether a file that was read is still the same."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Final

READ: Final = ("graph", "measured_compute", "calibration")
"""Options of a row that name a file or a folder."""

Stamp = tuple[int, int]


def stamps_of(options: Mapping[str, Any]) -> dict[str, Stamp]:
    """When the files that these options name were last written, in nanoseconds, and their sizes; by path.

    Missing files, and options that name none, are left out.
    """
    found = {}
    for name in READ:
        path = options.get(name)
        if isinstance(path, str):
            try:
                status = os.stat(path)
            except (OSError, ValueError):
                continue
            found[path] = status.st_mtime_ns, status.st_size
    return found
