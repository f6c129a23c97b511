"""Where a command will write, looked at before it works: a long answer must not be lost to a wrong path."""

from __future__ import annotations

import os
from pathlib import Path

from gcnsim.errors import FileError
from gcnsim.sections import writable


def check_folder(option: str, path: str | None, *files: tuple[str, str | None]) -> None:
    """Refuse a folder that can neither be used nor made; files: options and paths of files that are written beside it.

    Such a file may lie in the folder before it is made. Raises FileError.
    """
    beside = dict(files)
    if path is None:
        check_outputs(**beside)
        return
    folder = Path(os.path.realpath(path))
    if not path or folder.exists() or folder.is_symlink():
        if not folder.is_dir():
            raise FileError(f"{path or 'an empty path'}: cannot be made: not a folder; allowed: a new folder, or one")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise FileError(f"{path}: cannot be written in: Permission denied")
    else:
        writable(folder)
    for name, file in files:
        if file is not None and Path(os.path.realpath(file)) == folder:
            raise FileError(f"{file}: given to both --{option} and --{name}; allowed: a place each")
    inside = {name for name, file in files if file and not folder.exists() and _parent(file) == folder}
    check_outputs(**{name: file for name, file in files if name not in inside})


def _parent(file: str) -> Path:
    return Path(os.path.realpath(file)).parent


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
