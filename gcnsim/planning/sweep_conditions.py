"""Conditions on points, such as `method.tau <= 2 if method.epsilon < 1`, compared with the units of the fields."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.core.fields import Choice, Flag, Number, QuantityRange, shown
from gcnsim.core.yaml_files import parse_yaml
from gcnsim.scenario import Scenario, paths, rule_at

OPERATORS: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
    "in": lambda value, several: value in several,
}

_COMPARISON: Final = re.compile(r"([A-Za-z_.]+)\s*(<=|>=|==|!=|<|>|\bin\b)\s*(.+)")

HOW: Final = "write FIELD OPERATOR VALUE, e.g. method.tau <= 2, optionally followed by: if FIELD OPERATOR VALUE"

ORDERS: Final = ("<", "<=", ">", ">=")
NUMBER: Final = "a number"
WORDS: Final = "text"
TRUTH: Final = "true or false"

FITS: Final = "fits"
"""The constraint that every part fits in GPU memory."""


ValueOf: TypeAlias = Callable[[str], Any]
"""A function that returns a point's field by its path, or None if the point has none."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Compares a field of a scenario with a value or with another field (`other`)."""

    path: str
    sign: str
    value: Any
    other: str | None

    def holds(self, value_of: ValueOf) -> bool | None:
        """Whether the comparison holds; None if a field is missing or empty."""
        left = value_of(self.path)
        right = self.value if self.other is None else value_of(self.other)
        if left is None or right is None:
            # Empty values have no order; they equal other empty values.
            return OPERATORS[self.sign](left, right) if self.sign in ("==", "!=") and self.value is None else None
        try:
            return OPERATORS[self.sign](left, right)
        except TypeError:
            return None


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on points; it applies only where `when` holds, if given."""

    text: str
    must: Comparison
    when: Comparison | None

    def keeps(self, value_of: ValueOf) -> bool:
        """Whether a point satisfies it; a point without the field does."""
        if self.when is not None and self.when.holds(value_of) is not True:
            return True
        return self.must.holds(value_of) is not False


def read_condition(written: object, where: str) -> Condition:
    """Parse a condition from a line of text. Raises ScenarioError starting with `where`."""
    if not isinstance(written, str):
        raise ScenarioError(f"{where}: {shown(written)} is not a condition; {HOW}")
    must, parts, when = written.partition(" if ")
    return Condition(written, _comparison(must, where), _comparison(when, where) if parts else None)


def _comparison(text: str, where: str) -> Comparison:
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise ScenarioError(f"{where}: {shown(text.strip())} is not a comparison; {HOW}")
    path, sign, right = match[1], match[2], match[3].strip()
    try:
        rule, _ = rule_at(path)
    except ScenarioError as error:
        raise ScenarioError(f"{where}: {error}") from None
    if sign in ORDERS and not isinstance(rule, Number | QuantityRange):
        raise ScenarioError(f"{where}: {path} has no order; allowed: ==, !=, in")
    if right in paths():
        if sign == "in":
            raise ScenarioError(f"{where}: {right} is one value; allowed after in: values separated by commas")
        left, other = _kind(rule), _kind(rule_at(right)[0])
        if left != other:
            raise ScenarioError(
                f"{where}: {path} is {left}, {right} is {other}; allowed: fields of one kind, or a value"
            )
        return Comparison(path, sign, None, right)
    try:
        if sign == "in":
            return Comparison(path, sign, tuple(_read(rule, one, path, where) for one in right.split(",")), None)
        return Comparison(path, sign, _read(rule, right, path, where), None)
    except FileError as error:
        raise ScenarioError(str(error)) from None


def _kind(rule: Any) -> str:
    """The kind of a field in words; only fields of one kind have an order or can be equal."""
    if isinstance(rule, QuantityRange):
        return rule.quantity.noun
    if isinstance(rule, Number | Flag):
        return NUMBER if isinstance(rule, Number) else TRUTH
    return WORDS if isinstance(rule, Choice) else rule.allowed


def _read(rule: Any, text: str, path: str, where: str) -> Any:
    value = parse_yaml(text.strip(), f"{where}: {path}")
    if value is None:
        return None
    try:
        return rule.read(value, path)
    except GcnsimError as error:
        raise ScenarioError(f"{where}: {error}") from None


def values_of(scenario: Scenario) -> ValueOf:
    """The fields of a scenario, as conditions read them."""

    def value_of(path: str) -> Any:
        section, _, key = path.partition(".")
        spec = getattr(scenario, section)
        if section == "method" and key not in ("name", "overlap") and not spec.has(key):
            return None
        return getattr(spec, key)

    return value_of
