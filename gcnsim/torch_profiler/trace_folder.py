"""Which files of a folder are traces of the profiler: others lie beside them, such as a run's configuration."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from gcnsim.errors import FileError
from gcnsim.torch_profiler.trace_events import EVENTS
from gcnsim.torch_profiler.trace_text import unpacked

SUFFIXES: Final = (".json", ".json.gz")
EXPORTED: Final = (".pt.trace.json", ".pt.trace.json.gz")
"""As `torch.profiler.tensorboard_trace_handler` names files."""

OURS: Final = ("run.json", "result.json")
"""Names by which folders of ours are known, where the file says that it is ours."""

_SCHEMA: Final = re.compile(rb'"schema"\s*:\s*"gcnsim\.')

PIECE: Final = 1 << 20
"""Bytes looked through at a time."""


def is_profiler_trace(path: str | Path) -> bool:
    """Whether the file at `path`, or a file in the folder there, looks like what `torch.profiler` exports."""
    place = Path(path)
    if place.is_dir():
        return _is_folder_of_traces(place)
    if not place.name.lower().endswith(SUFFIXES) or not place.is_file():
        return False
    try:
        return _has_events(place)
    except OSError:
        return False


def _is_folder_of_traces(folder: Path) -> bool:
    """Whether JSON files are there, and no run or result of ours; another program's `run.json` is one beside traces."""
    files = _candidates(folder)
    named = [path for path in files if path.name in OURS]
    try:
        ours = any(_SCHEMA.search(path.read_bytes()) for path in named)
        return bool(files) and not ours and (not named or any(_has_events(path) for path in files if path not in named))
    except OSError:
        return not named


def trace_files(folder: Path) -> tuple[list[Path], list[str]]:
    """Files of a folder that are traces, in the order of their names, and the names of other JSON files.

    Where files have the profiler's own kind of name, those are the traces; else what has events is one, and what is
    empty, as a recording that was cut off is.
    Raises FileError where the folder or a file cannot be read.
    """
    files = _candidates(folder)
    traces = [path for path in files if path.name.endswith(EXPORTED)]
    try:
        traces = traces or [path for path in files if _is_blank(path) or _has_events(path)]
    except OSError as error:
        raise FileError(f"{error.filename or folder}: cannot be read: {error.strerror}") from None
    return traces, [path.name for path in files if path not in traces]


def _candidates(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_file() and path.name.lower().endswith(SUFFIXES))
    except OSError as error:
        raise FileError(f"{folder}: cannot be read: {error.strerror}") from None


def _is_blank(path: Path) -> bool:
    return path.stat().st_size < PIECE and not path.read_bytes().strip()


def _has_events(path: Path) -> bool:
    """Whether a file has the key of a trace's events, or begins as a list of events; a damaged gzip file counts."""
    # In UTF-16 too, so that reading it says what is wrong.
    wanted = tuple(f'"{EVENTS}"'.encode(coding) for coding in ("utf-8", "utf-16-le", "utf-16-be"))
    before, first = b"", True
    with open(path, "rb") as file:
        read = unpacked(file)
        while True:
            piece, fault = read(PIECE)
            if not piece:
                return bool(fault)
            if any(key in before + piece for key in wanted):
                return True
            if first and piece.lstrip()[:1] == b"[" and b'"ph"' in piece:
                return True
            before, first = piece[-len(wanted[-1]) :], False
