"""The file that a command writes its measurements to."""

from __future__ import annotations

import os
from pathlib import Path

from gcnsim.errors import FileError
from gcnsim.io.atomic import probe, writable
from runtime.record.held import free_path


def out_file(default: str, asked: str | None, *, overwrite: bool) -> str:
    """The file to write, which can be written and holds nothing, unless it may be replaced. Raises FileError.

    default: without `asked`; with a number behind its stem where it is taken.
    """
    usual = Path(default) if overwrite else free_path(Path(default), os.path.lexists)
    path = str(usual) if asked is None else asked
    try:
        if writable(path):
            probe(path)
    except FileError as error:
        raise FileError(f"--out: {error}") from None
    if not overwrite and os.path.isfile(path) and os.path.getsize(path):
        raise FileError(f"--out: {path}: is there already; allowed: another file, or --overwrite to replace it")
    return path
