"""Files of measured times, read: Parquet whose metadata says what was measured (docs/files.md)."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.container import read_parquet_table
from gcnsim.core.errors import FileError, nearest
from gcnsim.core.ids import AnyArray, BoolArray, FloatArray, frozen
from gcnsim.core.json_files import mistake, parse_json
from gcnsim.records.calibration import content_hash
from gcnsim.records.compute_facts import (
    LONGEST_S,
    Header,
    MeasuredCompute,
    MeasuredPart,
    MeasuredSetting,
    OpKey,
    PartHeader,
)
from gcnsim.timeline import KIND_CODE, Direction, OpKind
from gcnsim.workload import AGGREGATOR, wrong_aggregator

HINT: Final = "; python -m runtime.measure writes such a file"
KEY: Final = b"gcnsim"
"""The key of the Parquet metadata that holds what was measured."""

NUMBERS: Final = {"setting": "int32", "part": "int32", "iteration": "int32", "layer": "int32", "seconds": "float64"}
WORDS: Final = ("kind", "direction")
DIRECTIONS: Final = {"": Direction.NONE, "forward": Direction.FORWARD, "backward": Direction.BACKWARD}
KINDS: Final = {str(kind): code for kind, code in KIND_CODE.items()}
MOST_ROWS: Final = 50_000_000
MOST_VALUES: Final = 20_000_000
"""Of iterations times operations of a part."""


def measured_files(paths: Iterable[str | Path]) -> list[str]:
    """These files, and all Parquet files of those that are folders. Raises FileError for a folder without one."""
    found: list[str] = []
    for path in map(Path, paths):
        own = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not own:
            raise FileError(f"{path}: has no file of measured times (*.parquet){HINT}")
        found += map(str, own)
    return found


def measured_compute(path: str) -> MeasuredCompute:
    """What the file at `path` holds, read again only where it has changed. Raises FileError."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}{HINT}") from None
    return _read(path, (found.st_mtime_ns, found.st_ino, found.st_size))


@lru_cache(maxsize=8)
def _read(path: str, stamp: tuple[int, int, int]) -> MeasuredCompute:
    return read_measured_compute(path)


def read_measured_compute(path: str) -> MeasuredCompute:
    """What the file at `path` holds. Raises FileError, naming the file, what is wrong and what is allowed."""
    table = _table(path)
    header = _header(path, table)
    _check_columns(path, table)
    columns = {name: _numbers(path, table, name) for name in NUMBERS}
    columns["kind"] = _words(path, table, "kind", KINDS)
    columns["direction"] = _words(
        path, table, "direction", {word: int(direction) for word, direction in DIRECTIONS.items()}
    )
    _check_ranges(path, header, columns)
    return MeasuredCompute(
        path=path,
        sha256=content_hash(path),
        settings=tuple(_settings(path, header, columns)),
        graph=header["graph"],
        partition=header["partition"],
        model=header["model"],
        training=header["training"],
        device=header["device"],
        versions=header["versions"],
    )


def _table(path: str) -> Any:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        rows = pq.read_metadata(path).num_rows
        if rows > MOST_ROWS:
            raise FileError(f"{path}: has {rows} rows; allowed: at most {MOST_ROWS}")
        table = read_parquet_table(path)
        table.column_names  # noqa: B018 - decodes them, which fails where they are not UTF-8
    except (pa.ArrowException, UnicodeDecodeError, MemoryError, OverflowError) as error:
        raise FileError(f"{path}: not a Parquet file, or a damaged one: {_line(error)}{HINT}") from None
    except OSError as error:
        if error.errno is None:  # Arrow reports a failed checksum or a truncated page as a bare OSError
            raise FileError(f"{path}: a damaged Parquet file: {_line(error)}{HINT}") from None
        raise FileError(f"{path}: cannot be read: {error.strerror}{HINT}") from None
    return table


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]


def _header(path: str, table: Any) -> Header:
    raw = (table.schema.metadata or {}).get(KEY)
    if raw is None:
        raise FileError(f"{path}: its metadata has no key {KEY.decode()!r}; not a file of measured times{HINT}")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: metadata: not UTF-8 text (byte {error.start}){HINT}") from None
    header = parse_json(text, path)
    wrong = _former(header) or mistake(header, "measured_compute")
    if wrong is not None:
        raise FileError(f"{path}: metadata: {wrong}{HINT}")
    wrong = next(_contradictions(header), None)
    if wrong is not None:
        raise FileError(f"{path}: metadata: {wrong}")
    found: Header = header
    return found


def _former(header: Any) -> str | None:
    """Take out what files of earlier versions say in addition; returns what is wrong with it."""
    model = header.get("model") if isinstance(header, dict) else None
    if not isinstance(model, dict):
        return None
    wrong = wrong_aggregator(model)
    model.pop(AGGREGATOR, None)
    return wrong and f"model.{wrong}"


def _contradictions(header: Header) -> Iterator[str]:
    """What is wrong between the values of a header that keeps the schema."""
    numbers = [setting["setting"] for setting in header["settings"]]
    parts = header["partition"]["parts"]
    if len(set(numbers)) < len(numbers):
        yield "settings: a number twice"
    seen = set()
    for name in ("parts", "skipped"):
        for index, entry in enumerate(header[name]):
            where, key = f"{name}[{index}]", (entry["setting"], entry["part"])
            if entry["setting"] not in numbers:
                yield f"{where}.setting is {entry['setting']}, wanted one of settings"
            if entry["part"] >= parts:
                yield f"{where}.part is {entry['part']}, wanted less than partition.parts, {parts}"
            if key in seen:
                yield f"{where}: setting {key[0]}, part {key[1]} is there twice"
            seen.add(key)
    for number in numbers:
        missing = [part for part in range(parts) if (number, part) not in seen]
        if missing:
            yield f"setting {number} has no part {missing[0]}, neither in parts nor in skipped"


def _check_columns(path: str, table: Any) -> None:
    wanted = [*NUMBERS, *WORDS]
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise FileError(f"{path}: has column {name!r} more than once")
        if name not in wanted:
            raise FileError(f"{path}: unknown column {name!r}; {nearest(name, wanted)}")
    for name in wanted:
        if name not in table.column_names:
            raise FileError(f"{path}: has no column {name!r}{HINT}")
        if table[name].null_count:
            raise FileError(f"{path}: column {name!r} has empty values")


def _numbers(path: str, table: Any, name: str) -> AnyArray:
    import pyarrow as pa

    wanted = NUMBERS[name]
    if table[name].type != pa.type_for_alias(wanted):
        raise FileError(f"{path}: column {name!r} is {table[name].type}, wanted {wanted}")
    try:
        column: AnyArray = table[name].to_numpy()
    except pa.ArrowException as error:
        raise FileError(f"{path}: column {name!r}: {_line(error)}") from None
    return column


def _words(path: str, table: Any, name: str, known: Mapping[str, int]) -> AnyArray:
    """The column's words by their numbers in `known`, int64[rows]."""
    import pyarrow as pa

    try:
        column = table[name].cast(pa.string()).combine_chunks().dictionary_encode()
        chunk = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
        words = chunk.dictionary.to_pylist()
    except pa.ArrowException as error:
        raise FileError(f"{path}: column {name!r} is {table[name].type}, wanted words: {_line(error)}") from None
    strange = next((word for word in words if word not in known), None)
    if strange is not None:
        raise FileError(
            f"{path}: unknown {name} {strange!r}; {nearest(strange, [number for number in known if number])}"
        )
    codes = np.array([known[word] for word in words], np.int64)
    found: AnyArray = codes[chunk.indices.to_numpy(zero_copy_only=False)] if words else np.zeros(0, np.int64)
    return found


def _check_ranges(path: str, header: Header, columns: Mapping[str, AnyArray]) -> None:
    least = {"setting": 0, "part": 0, "iteration": 0, "layer": -1, "seconds": 0.0}
    most = {
        "part": header["partition"]["parts"] - 1,
        "layer": header["model"]["layers"] - 1,
        "seconds": LONGEST_S,
    }
    for name, low in least.items():
        values, high = columns[name], most.get(name)
        good = np.isfinite(values) & (values >= low)
        if high is not None:
            good &= values <= high
        wrong = np.flatnonzero(~good)
        if wrong.size:
            allowed = f"{low} or more" if high is None else f"{low} to {high:g}"
            raise FileError(f"{path}: row {wrong[0]}: {name} is {values[wrong[0]]}; allowed: {allowed}")


def _settings(path: str, header: Header, columns: Mapping[str, AnyArray]) -> Iterator[MeasuredSetting]:
    """Every setting with its parts, in the order of the header."""
    width = header["partition"]["parts"]
    place = columns["setting"].astype(np.int64) * width + columns["part"]
    order = np.argsort(place, kind="stable")
    found, first, counts = np.unique(place[order], return_index=True, return_counts=True)
    rows = {int(key): order[start : start + size] for key, start, size in zip(found, first, counts, strict=True)}
    content = {part["setting"] * width + part["part"]: part for part in header["parts"]}
    strange = next((key for key in rows if key not in content), None)
    if strange is not None:
        where = f"setting {strange // width}, part {strange % width}"
        raise FileError(f"{path}: row {rows[strange][0]}: {where} is not in the metadata's parts")
    for setting in header["settings"]:
        parts = {
            key % width: _part(path, about, {name: values[rows[key]] for name, values in columns.items()})
            if key in rows
            else _no_rows(path, about)
            for key, about in content.items()
            if key // width == setting["setting"]
        }
        skipped = {one["part"]: one["reason"] for one in header["skipped"] if one["setting"] == setting["setting"]}
        yield MeasuredSetting(setting["method"], setting["knobs"], parts, skipped)


def _no_rows(path: str, about: PartHeader) -> MeasuredPart:
    raise FileError(f"{path}: setting {about['setting']}, part {about['part']} has no rows")


def _part(path: str, about: PartHeader, rows: Mapping[str, AnyArray]) -> MeasuredPart:
    where, iterations = f"setting {about['setting']}, part {about['part']}", about["iterations"]
    late = int(rows["iteration"].max())
    if late >= iterations:
        raise FileError(f"{path}: {where}: has iteration {late}; allowed: less than its iterations, {iterations}")
    there = np.unique(rows["iteration"])
    if there.size < iterations:
        missing = int(np.flatnonzero(np.append(there, -1) != np.arange(there.size + 1))[0])
        raise FileError(f"{path}: {where}: has no row of iteration {missing}; its metadata says {iterations}")
    names = np.stack([rows["kind"], rows["layer"], rows["direction"]], axis=1)
    keys, column = np.unique(names, axis=0, return_inverse=True)
    column = column.ravel()
    if iterations * len(keys) > MOST_VALUES:
        raise FileError(f"{path}: {where}: {iterations} iterations of {len(keys)} operations; at most {MOST_VALUES}")
    seen = np.bincount(rows["iteration"].astype(np.int64) * len(keys) + column, minlength=iterations * len(keys))
    if seen.max() > 1:
        raise FileError(f"{path}: {where}: iteration {int(seen.argmax()) // len(keys)} has an operation twice")
    seconds: FloatArray = np.zeros((iterations, len(keys)))
    seconds[rows["iteration"], column] = rows["seconds"]
    kinds = {code: OpKind(word) for word, code in KINDS.items()}
    return MeasuredPart(
        keys=tuple(OpKey(kinds[int(kind)], int(layer), Direction(int(way))) for kind, layer, way in keys),
        seconds=frozen(seconds),
        refreshing=_refreshing(path, where, about),
        outside_s=float(about["outside_seconds"]),
        relative_error=float(about["relative_error"]),
        peak_bytes=about["peak_bytes"],
        drawn=about["drawn"],
    )


def _refreshing(path: str, where: str, about: PartHeader) -> BoolArray:
    """bool[iterations]: which iterations refreshed the sampling probabilities."""
    numbers, iterations = about["refreshing"], about["iterations"]
    late = max(numbers, default=-1)
    if late >= iterations or len(set(numbers)) < len(numbers):
        wrong = f"iteration {late}" if late >= iterations else "an iteration twice"
        allowed = f"each once, less than its iterations, {iterations}"
        raise FileError(f"{path}: {where}: refreshing has {wrong}; allowed: {allowed}")
    return frozen(np.isin(np.arange(iterations), numbers))
