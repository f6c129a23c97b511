"""One run at a time per folder: its writer holds a lock, which ends with the process.

Results without a chosen name get a free one, so that measurements are never overwritten.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path

from filelock import lock_descriptor

from gcnsim.core.errors import FileError


def free_path(path: Path, taken: Callable[[Path], bool]) -> Path:
    """`path`, or with a number after its stem (`run-2`, `profile-2.json`) the first path that is not taken."""
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return path if not taken(path) else next(item for item in numbered if not taken(item))


def lock_folder(folder: str | Path) -> int | None:
    """Lock `folder` (created if needed) until the returned handle is closed or this process ends.

    None if folders cannot be locked. Raises FileError that names the process holding it.
    """
    path = Path(folder)
    try:
        path.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise FileError(f"{folder}: cannot be written: {error.strerror}") from None
    try:
        locked = lock_descriptor(handle, blocking=False)
    except OSError:
        os.close(handle)
        return None
    if not locked:
        holder = writer(path) or "another run"
        os.close(handle)
        raise FileError(f"{folder}: is being written by {holder}; allowed: another folder, or when it has ended")
    return handle


def writer(folder: str | Path) -> str | None:
    """The process that has locked `folder`, from Linux's list of locks, without a lock of its own; None if none has."""
    try:
        inode = os.stat(folder).st_ino
        with open("/proc/locks", encoding="ascii") as file:
            rows = [line.split() for line in file]
    except OSError:
        return None
    # "1: FLOCK ADVISORY WRITE 4711 08:01:131089 0 EOF"
    found = [row[4] for row in rows if len(row) > 5 and row[1] == "FLOCK" and row[5].rpartition(":")[2] == str(inode)]
    return None if not found else f"process {found[0]}" if int(found[0]) > 0 else "another run"
