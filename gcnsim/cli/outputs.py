"""Where a command will write, looked at before it works: a long answer must not be lost to a wrong path."""

from __future__ import annotations

import os

from gcnsim.errors import FileError
from gcnsim.sections import writable


def check_outputs(**paths: str | None) -> None:
    """Refuse paths that cannot be written, and two options that name one file.

    paths: by option name, None where it was not given. Raises FileError.
    """
    taken: dict[str, str] = {}
    for option, path in paths.items():
        if path is None:
            continue
        if writable(path):
            place = os.path.realpath(path)
            if place in taken:
                raise FileError(f"{path}: given to both --{taken[place]} and --{option}; allowed: a file each")
            taken[place] = option
