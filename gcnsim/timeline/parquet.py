"""Spans as a Parquet file, for analysis in a data frame, and back into a timeline."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError, nearest
from gcnsim.core.ids import AnyArray, frozen
from gcnsim.core.parquet import read_parquet_table
from gcnsim.timeline.span import KINDS, Direction, Timeline

_KINDS: Final = tuple(str(kind) for kind in KINDS)
_DIRECTIONS: Final = tuple(item.name.lower() for item in Direction)

_NUMBERS: Final[dict[str, tuple[str, int]]] = {
    "worker": ("int32", 0),
    "iteration": ("int32", 0),
    "layer": ("int32", -1),
    "peer": ("int32", -1),
    "start_ps": ("int64", 0),
    "end_ps": ("int64", 0),
    "nbytes": ("float64", 0),
}
"""Columns of numbers: their type and least value."""


def write_spans(path: str | Path, timeline: Timeline, about: dict[str, str]) -> None:
    """Write one row per span: kind, worker, stream, iteration, layer, direction, peer, start_ps, end_ps, nbytes.

    about: text for the file's metadata (scenario hash, seed, version). Raises FileError if the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    def words(codes: Any, names: Sequence[str]) -> Any:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(names, pa.string()))

    table = pa.table(
        {
            "kind": words(timeline.kind, _KINDS),
            "worker": timeline.worker,
            "stream": words(timeline.stream, timeline.streams),
            "iteration": timeline.iteration,
            "layer": timeline.layer,
            "direction": words(timeline.direction, _DIRECTIONS),
            "peer": timeline.peer,
            "start_ps": timeline.start_ps,
            "end_ps": timeline.end_ps,
            "nbytes": timeline.nbytes,
        }
    ).replace_schema_metadata(about)
    with atomic_write(path) as file:
        pq.write_table(table, file, write_page_checksum=True)


def read_spans(path: str | Path) -> Timeline:
    """The timeline in a file that `write_spans` wrote; all arrays read-only.

    A file without rows has no streams. Raises FileError when the file is missing, damaged or no Parquet, lacks a
    column, or holds an unknown kind or direction, an empty or impossible value, or rows not ordered by their start.
    """
    table = _table(Path(path))
    double = sorted({name for name in table.column_names if table.column_names.count(name) > 1})
    if double:
        raise FileError(f"{path}: has column {double[0]!r} more than once; not a file of spans")
    missing = [name for name in ("kind", "stream", "direction", *_NUMBERS) if name not in table.column_names]
    if missing:
        raise FileError(f"{path}: has no column {missing[0]!r}; not a file of spans")
    empty = [name for name in table.column_names if table[name].null_count]
    if empty:
        raise FileError(f"{path}: column {empty[0]!r} has empty values")
    columns = {name: _numbers(path, table, name) for name in _NUMBERS}
    kind, kinds = _words(path, table, "kind")
    direction, directions = _words(path, table, "direction")
    columns["stream"], streams = _words(path, table, "stream")
    columns["kind"] = _codes(path, "kind", kind, kinds, _KINDS)
    columns["direction"] = _codes(path, "direction", direction, directions, _DIRECTIONS)
    _check_times(path, columns["start_ps"], columns["end_ps"])
    return Timeline(**{name: frozen(column) for name, column in columns.items()}, streams=streams)


def _table(path: Path) -> Any:
    import pyarrow as pa

    try:
        table = read_parquet_table(path)
        table.column_names  # noqa: B018 - decodes them, which fails where they are not UTF-8
        return table
    except (pa.ArrowException, UnicodeDecodeError, MemoryError, OverflowError) as error:
        raise FileError(f"{path}: not a Parquet file, or a damaged one: {_line(error)}") from None
    except OSError as error:
        if error.errno is None:  # Arrow reports a failed checksum or a truncated page as a bare OSError
            raise FileError(f"{path}: a damaged Parquet file: {_line(error)}") from None
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _numbers(path: str | Path, table: Any, name: str) -> AnyArray:
    import pyarrow as pa

    kind, least = _NUMBERS[name]
    try:
        column = table[name].cast(kind).to_numpy()
    except pa.ArrowException as error:
        raise FileError(f"{path}: column {name!r} is {table[name].type}, wanted {kind}: {_line(error)}") from None
    values: AnyArray = column.astype(np.dtype(kind))
    wrong = np.flatnonzero(~(np.isfinite(values) & (values >= least)))
    if wrong.size:
        raise FileError(f"{path}: row {wrong[0]}: {name} is {values[wrong[0]]}; allowed: {least} or more")
    return values


def _words(path: str | Path, table: Any, name: str) -> tuple[AnyArray, tuple[str, ...]]:
    """The codes int32[rows] of a column of words, and the words, in the file's own order."""
    import pyarrow as pa

    try:
        column = table[name]
        if not pa.types.is_dictionary(column.type):
            column = column.cast(pa.string()).dictionary_encode()
        column = column.unify_dictionaries()
        if column.num_chunks == 0:
            return np.zeros(0, np.int32), ()
        words = tuple(column.chunk(0).dictionary.cast(pa.string()).to_pylist())
    except pa.ArrowException as error:
        raise FileError(f"{path}: column {name!r} is {table[name].type}, wanted words: {_line(error)}") from None
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in column.chunks])
    return codes.astype(np.int32), words


def _codes(path: str | Path, name: str, codes: AnyArray, words: tuple[str, ...], known: tuple[str, ...]) -> AnyArray:
    """The same words as positions in `known`, uint8[rows]."""
    strange = [words[code] for code in np.unique(codes) if words[code] not in known]
    if strange:
        raise FileError(f"{path}: unknown {name} {strange[0]!r}; {nearest(strange[0], known)}")
    ours = np.array([known.index(word) if word in known else 0 for word in words], dtype=np.uint8)
    return ours[codes]


def _check_times(path: str | Path, starts: AnyArray, ends: AnyArray) -> None:
    backwards = np.flatnonzero(ends < starts)
    if backwards.size:
        row = backwards[0]
        raise FileError(f"{path}: row {row}: ends at {ends[row]} ps, before its start at {starts[row]} ps")
    late = np.flatnonzero(starts[1:] < starts[:-1])
    if late.size:
        raise FileError(f"{path}: row {late[0] + 1} starts before the row above it; spans are ordered by their start")
