"""Filters on answered points: conditions on fields that vary, and on columns of the answers (`iteration_s < 0.5`)."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from gcnsim.errors import FileError, GcnsimError, ScenarioError, nearest
from gcnsim.fields import shown
from gcnsim.io.yaml_files import parse_yaml
from gcnsim.scenario import rule_at
from gcnsim.sweeps.conditions import OPERATORS, ORDERS, read_condition
from gcnsim.sweeps.ranges import Axis
from gcnsim.sweeps.table import OF_ROW

Filter: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Whether a point, by its columns, is wanted."""

WHERE: Final = "--where"
HOW: Final = "write COLUMN OPERATOR VALUE, e.g. iteration_s < 0.5 or cluster.bandwidth >= 10Gbps"
_COLUMN: Final = re.compile(r"\s*([A-Za-z_0-9.]+)\s*(<=|>=|==|!=|<|>|\bin\b)\s*(.+)")


def read_filter(text: str, axes: Sequence[Axis]) -> Filter:
    """What `text` asks of a point of a sweep over `axes`. A point that lacks a field keeps a condition on it, as it
    does in the sweep's question; one that lacks a column of the answers does not.

    Raises ScenarioError for what is no condition, and for a field or column that its table does not have.
    """
    match = _COLUMN.fullmatch(text)
    if match is None:
        raise ScenarioError(f"{WHERE}: {shown(text.strip())} is not a comparison; {HOW}")
    name, sign, right = match[1], match[2], match[3].strip()
    if name in OF_ROW:
        return _of_column(name, sign, right)
    paths = {axis.path for axis in axes}
    if name not in paths:
        raise ScenarioError(f"{WHERE}: unknown column {name!r}; {nearest(name, [*paths, *OF_ROW])}")
    condition = read_condition(text.strip(), WHERE)
    others = [each.other for each in (condition.must, condition.when) if each is not None and each.other is not None]
    more = [condition.when.path] if condition.when is not None else []
    for path in (*others, *more):
        if path not in paths:
            raise ScenarioError(f"{WHERE}: {path} does not vary; allowed: {', '.join(sorted(paths))}")
    return lambda point: condition.keeps(lambda path: _held(point, path))


def read_filters(texts: Sequence[str], axes: Sequence[Axis]) -> Filter:
    """That all of `texts` are kept. Raises ScenarioError."""
    every = [read_filter(text, axes) for text in texts]
    return lambda point: all(each(point) for each in every)


def _held(point: Mapping[str, Any], path: str) -> Any:
    """A point's value of a field that varies, as the field reads it; None where it has none."""
    value = point.get(path)
    if value is None:
        return None
    try:
        read = parse_yaml(value, path) if isinstance(value, str) else value
        return rule_at(path)[0].read(read, path)
    except GcnsimError:
        return None


def _of_column(name: str, sign: str, right: str) -> Filter:
    values = [_value(name, each) for each in (right.split(",") if sign == "in" else [right])]
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
