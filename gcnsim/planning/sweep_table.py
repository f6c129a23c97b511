"""The rows of a sweep as Parquet: one typed row per point, with the sweep's question in the metadata."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, get_type_hints

from gcnsim.core.atomic import atomic_write
from gcnsim.core.container import read_parquet_table
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError, nearest
from gcnsim.core.fields import shown
from gcnsim.core.yaml_files import parse_yaml
from gcnsim.planning.sweep_axes import OPERATORS, ORDERS, Axis, read_condition
from gcnsim.planning.sweep_points import Point
from gcnsim.results import OF_SETTING, Row
from gcnsim.scenario import rule_at

if TYPE_CHECKING:
    import pyarrow as pa

LEAD: Final = ("point", "id", "state", "reason")
"""The columns before the axes: the point's index, the hash of its scenario, its state, and the reason."""

_ROWS: Final = 10_000
"""The rows per row group of the file."""


def schema_of(axes: Sequence[Axis], about: Mapping[str, str]) -> pa.Schema:
    """The columns: those of `LEAD`, the axes by their paths, the fields of `Row`. about: the metadata."""
    import pyarrow as pa

    kinds = {int: pa.int64(), float: pa.float64(), str: pa.string(), bool: pa.bool_()}
    hints = get_type_hints(Row)
    columns = [("point", pa.int64()), ("id", pa.string()), ("state", pa.string()), ("reason", pa.string())]
    columns += [(axis.path, kinds[_kind_of(axis)]) for axis in axes]
    for item in fields(Row):
        if item.name in OF_SETTING:
            named = {kind for kind in kinds if kind in getattr(hints[item.name], "__args__", (hints[item.name],))}
            (kind,) = named
            columns.append((item.name, kinds[kind]))
    return pa.schema(columns, metadata=dict(about))


def _kind_of(axis: Axis) -> type:
    """The type of an axis's column: integers, numbers, or text."""
    values = axis.values if axis.between is None else (axis.between.at(0.0), axis.between.at(1.0))
    held = [value for value in values if value is not None]
    for kinds, found in (((bool,), bool), ((int,), int), ((int, float), float)):
        if held and all(type(value) in kinds for value in held):
            return found
    return str


def table_of(points: Sequence[Point], rows: Sequence[Mapping[str, Any]], schema: pa.Schema) -> pa.Table:
    """The rows of these points, in their order."""
    import pyarrow as pa

    records = []
    for point, row in zip(points, rows, strict=True):
        text = {path: _cell(value, schema.field(path).type) for path, value in point.values.items()}
        records.append({"id": point.id, **text, **row})
    return pa.table(
        [pa.array([one.get(name) for one in records], schema.field(name).type) for name in schema.names], schema=schema
    )


def _cell(value: Any, kind: Any) -> Any:
    """A value of an axis as its column stores it; text is in scenario notation."""
    if str(kind) != "string" or value is None or isinstance(value, str):
        return value
    return json.dumps(value)


def write_table(path: Path, table: pa.Table) -> None:
    """Write the file atomically. Raises FileError."""
    import pyarrow.parquet as pq

    with atomic_write(path) as file:
        pq.write_table(table, file, row_group_size=_ROWS, compression="zstd", write_page_checksum=True)


def read_table(path: Path) -> pa.Table:
    """Read the table in a file of a sweep. Raises FileError if it is missing, damaged or not a sweep's."""
    import pyarrow as pa

    try:
        table = read_parquet_table(path)
        names = table.column_names
    except (OSError, pa.ArrowException, UnicodeDecodeError, MemoryError, OverflowError) as error:
        raise FileError(f"{path}: not a Parquet file of a sweep: {' '.join(str(error).split())[:200]}") from None
    if names[: len(LEAD)] != list(LEAD):
        raise FileError(f"{path}: not a file of a sweep: its first columns are not {', '.join(LEAD)}")
    if len(set(names)) < len(names):
        raise FileError(f"{path}: not a file of a sweep: it has a column more than once")
    return table


def wrong_rows(table: pa.Table, schema: pa.Schema, points: int) -> str | None:
    """Why the table does not hold rows of these columns and points; None if it does."""
    import pyarrow.compute as pc

    if not table.schema.equals(schema, check_metadata=False):
        names = {*table.column_names} ^ {*schema.names}
        return f"column {min(names)!r} is missing or unexpected" if names else "its columns are of other types or order"
    if any(table[name].null_count for name in ("point", "id", "state")):
        return "a row has no point, id or state"
    ends = pc.min_max(table["point"]).as_py()
    if table.num_rows and not 0 <= ends["min"] <= ends["max"] < points:
        return f"points run from {ends['min']} to {ends['max']}; 0 to {points - 1} are allowed"
    return None


def joined(tables: Iterable[pa.Table], schema: pa.Schema) -> pa.Table:
    """All rows in the order of their points, in one chunk."""
    import pyarrow as pa

    return pa.concat_tables([schema.empty_table(), *tables]).sort_by("point").combine_chunks()


Filter: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""A function that decides by its columns whether a point is wanted."""

WHERE: Final = "--where"
HOW: Final = "write COLUMN OPERATOR VALUE, e.g. iteration_s < 0.5 or cluster.bandwidth >= 10Gbps"
_COLUMN: Final = re.compile(r"\s*([A-Za-z_0-9.]+)\s*(<=|>=|==|!=|<|>|\bin\b)\s*(.+)")


def read_filter(text: str, axes: Sequence[Axis]) -> Filter:
    """Parse a filter on the points of a sweep over `axes`.

    A point without a varied field satisfies a condition on it, as in the sweep's question. A point without an answer
    column does not. Raises ScenarioError for invalid text and for an unknown field or column.
    """
    match = _COLUMN.fullmatch(text)
    if match is None:
        raise ScenarioError(f"{WHERE}: {shown(text.strip())} is not a comparison; {HOW}")
    name, sign, right = match[1], match[2], match[3].strip()
    if name in OF_SETTING:
        return _of_column(name, sign, right)
    paths = {axis.path for axis in axes}
    if name not in paths:
        raise ScenarioError(f"{WHERE}: unknown column {name!r}; {nearest(name, [*paths, *OF_SETTING])}")
    condition = read_condition(text.strip(), WHERE)
    others = [one.other for one in (condition.must, condition.when) if one is not None and one.other is not None]
    more = [condition.when.path] if condition.when is not None else []
    for path in (*others, *more):
        if path not in paths:
            raise ScenarioError(f"{WHERE}: {path} does not vary; allowed: {', '.join(sorted(paths))}")
    return lambda point: condition.keeps(lambda path: _held(point, path))


def read_filters(texts: Sequence[str], axes: Sequence[Axis]) -> Filter:
    """A filter that requires all of `texts`. Raises ScenarioError."""
    every = [read_filter(text, axes) for text in texts]
    return lambda point: all(keeps(point) for keeps in every)


def _held(point: Mapping[str, Any], path: str) -> Any:
    """A point's value of a varied field, parsed; None if it has none."""
    value = point.get(path)
    if value is None:
        return None
    try:
        read = parse_yaml(value, path) if isinstance(value, str) else value
        return rule_at(path)[0].read(read, path)
    except GcnsimError:
        return None


def _of_column(name: str, sign: str, right: str) -> Filter:
    values = [_value(name, one) for one in (right.split(",") if sign == "in" else [right])]
    if sign in ORDERS and isinstance(values[0], str | bool):
        raise ScenarioError(f"{WHERE}: {name}: {right!r} has no order; allowed: a number, or ==, !=, in")
    wanted: Any = values if sign == "in" else values[0]

    def keeps(point: Mapping[str, Any]) -> bool:
        value = point.get(name)
        try:
            return value is not None and bool(OPERATORS[sign](value, wanted))
        except TypeError:
            return False

    return keeps


def _value(name: str, text: str) -> Any:
    try:
        value = parse_yaml(text.strip(), f"{WHERE}: {name}")
    except FileError as error:
        raise ScenarioError(str(error)) from None
    if isinstance(value, bool | str) or (isinstance(value, int | float) and math.isfinite(value)):
        return value
    raise ScenarioError(f"{WHERE}: {name}: {shown(text.strip())} is not allowed; a number or a name")
