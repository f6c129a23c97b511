"""Rules of values: one rule reads, checks, writes and describes a field of a scenario, a knob, an option or a column.

A rule is declared next to its field, so the loader, the writer, the checks of specs created in Python and the table in
the documentation cannot disagree. `wrong_values` and `check_values` apply a rule to the columns and arrays of files.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from fractions import Fraction
from functools import cache
from numbers import Integral, Real
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from gcnsim.core.errors import FileError, ScenarioError, UnitError, nearest
from gcnsim.core.ids import AnyArray, BoolArray
from gcnsim.core.spellings import known_name
from gcnsim.core.units import FRACTION, Quantity, share_readings

_KEY: Final = "gcnsim"

_PLAIN: Final = re.compile(r"\s*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?\s*")

LONG: Final = 10**300
"""A whole number above this may not have an exact float."""


class FieldRule(Protocol):
    """Converts one YAML scalar to the internal value, and back."""

    @property
    def unit(self) -> str:
        """The unit in files: an example unit, or empty."""

    @property
    def allowed(self) -> str:
        """The values allowed, in words."""

    def read(self, raw: object, path: str) -> Any:
        """The value of `raw`. Raises ScenarioError or UnitError, starting with `path`."""

    def check(self, value: Any, path: str) -> None:
        """Refuse an internal `value` that is out of range. Raises ScenarioError, starting with `path`."""

    def write(self, value: Any) -> object:
        """The YAML scalar that `read` turns back into `value`."""


@runtime_checkable
class Named(Protocol):
    """A rule of names, which have several spellings."""

    def canonical(self, value: Any) -> Any:
        """The canonical name of `value`; `value` itself if it is not a known name."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number without a unit: whole or real, within a range."""

    whole: bool
    low: float
    high: float = math.inf
    low_open: bool = False
    unit: str = ""

    @property
    def allowed(self) -> str:
        return _bounds(self)

    def read(self, raw: object, path: str) -> int | float:
        self.check(raw, path)
        number: Any = raw
        return int(number) if self.whole else float(number)

    def wrong(self, value: object) -> str | None:
        """What is wrong with `value`, and what is allowed; None if it is allowed."""
        if isinstance(value, bool) or not isinstance(value, Integral if self.whole else Real):
            return f"{denied(value)} {self.allowed}"
        number: Any = value
        # Comparison is exact for whole numbers of any length.
        above = number > self.low if self.low_open else number >= self.low
        if above and number <= self.high and number < math.inf:
            return None
        long = isinstance(value, Integral) and not -LONG < number < LONG
        text = "a number of more than 300 digits" if long else f"{number:.12g}"
        return f"{text} is not allowed; {self.allowed}"

    def check(self, value: Any, path: str) -> None:
        if wrong := self.wrong(value):
            raise ScenarioError(f"{path}: {wrong}")

    def write(self, value: Any) -> object:
        return value


def _bounds(rule: Number) -> str:
    noun = "a whole number" if rule.whole else "a number"
    low = "above" if rule.low_open else "of at least"
    high = f" and at most {rule.high:.12g}" if rule.high < math.inf else ""
    return f"{noun} {low} {rule.low:.12g}{high}"


_COUNT: Final = re.compile(r"([0-9]{1,300}(?:\.[0-9]{1,300})?)\s*([kKMGBT]?)", re.ASCII)
_THOUSANDS: Final = {"": 0, "k": 3, "K": 3, "M": 6, "G": 9, "B": 9, "T": 12}


@dataclass(frozen=True, slots=True)
class Count(Number):
    """A whole number that may be written in thousands (k), millions (M), billions (G, B) or trillions (T)."""

    @property
    def allowed(self) -> str:
        return f"{_bounds(self)}, e.g. 2.5M or 1.6G"

    def read(self, raw: object, path: str) -> int | float:
        match = _COUNT.fullmatch(raw.strip()) if isinstance(raw, str) else None
        if match is None:
            return Number.read(self, raw, path)
        value = Fraction(match[1]) * 10 ** _THOUSANDS[match[2]]
        if value.denominator != 1:
            raise ScenarioError(f"{path}: {denied(raw)} {self.allowed}")
        return Number.read(self, int(value), path)


NO_SUCH: Final = "none"
"""The word for something absent."""


@dataclass(frozen=True, slots=True)
class Share(Number):
    """A number of at most 1 that may be written as a percentage: 0.1, or 10%."""

    def read(self, raw: object, path: str) -> int | float:
        if not isinstance(raw, str):
            number: object = raw
        elif _PLAIN.fullmatch(raw):
            number = float(raw)
        else:
            try:
                return Number.read(self, FRACTION.parse(raw), path)
            except UnitError:
                number = raw
        if (wrong := self.wrong(number)) is not None:
            either = " or ".join(share_readings(raw))
            raise ScenarioError(f"{path}: {wrong}{f'; write {either}' if either else ', or a percentage (10%)'}")
        return Number.read(self, number, path)


@dataclass(frozen=True, slots=True)
class QuantityRange:
    """A quantity with a unit, within a range. or_none: the word `none` is allowed too and means 0."""

    quantity: Quantity
    low: float
    high: float
    low_open: bool = False
    or_none: bool = False

    @property
    def unit(self) -> str:
        return self.quantity.written[0]

    @property
    def allowed(self) -> str:
        low = f"{'above' if self.low_open else 'of at least'} {self.quantity.exact(self.low)}"
        none = f", or {NO_SUCH}" if self.or_none else ""
        return f"{self.quantity.noun} {low} and at most {self.quantity.exact(self.high)}{none}"

    def read(self, raw: object, path: str) -> float:
        if self.or_none and raw == NO_SUCH:
            return 0.0
        try:
            value = self.quantity.parse(raw)
        except UnitError as error:
            raise UnitError(f"{path}: {error}") from None
        self._refuse_beyond(value, path)
        return value

    def check(self, value: Any, path: str) -> None:
        if not (self.or_none and value == 0):
            self._refuse_beyond(value, path)

    def _refuse_beyond(self, value: float, path: str) -> None:
        if not (self.low <= value <= self.high) or (self.low_open and value == self.low):
            text = self.quantity.exact(value) if 0 <= value < math.inf else f"{value:g}"
            raise ScenarioError(f"{path}: {text} is not allowed; {self.allowed}")

    def write(self, value: Any) -> object:
        return NO_SUCH if self.or_none and value == 0 else self.quantity.exact(value)


@dataclass(frozen=True, slots=True)
class Choice:
    """Text: a name out of `names()`, or any text (a file) if there is no list.

    own: reads a file given instead of a name; it returns False if the text is not a file name. alias: the name behind
    another spelling, None if there is none; case, hyphens, underscores and spaces never matter. otherwise: what to do
    if no name matches.
    """

    noun: str
    names: Callable[[], Collection[str]] | None = None
    own: Callable[[str], bool] | None = None
    unit: str = ""
    alias: Callable[[str], str | None] | None = None
    otherwise: str = ""

    @property
    def allowed(self) -> str:
        beside = ", or a file (.yaml)" if self.own else ""
        return f"one of {', '.join(sorted(self.names()))}{beside}" if self.names else self.noun

    def read(self, raw: object, path: str) -> str:
        if not isinstance(raw, str) or raw == "":
            known = f"; {self.allowed}" if self.names else ""
            raise ScenarioError(f"{path}: {denied(raw)} {self.noun}{known}")
        name: str = self.canonical(raw)
        self.check(name, path)
        return name

    def canonical(self, value: Any) -> Any:
        if self.names is None or not isinstance(value, str) or value in self.names():
            return value
        return known_name(value, self.names()) or (self.alias(value) if self.alias else None) or value

    def check(self, value: Any, path: str) -> None:
        if self.own is not None and self.own(str(value)):
            return
        if self.names is not None and value not in self.names():
            noun = self.noun.split(" ", 1)[-1]
            file = f"{value}.yaml"
            # Path.is_file raises for a name that is too long for a file, so it is not used.
            known = f"the file {file} is given as {file}" if self.own and os.path.isfile(file) else None
            otherwise = f"; {self.otherwise}" if self.otherwise else ""
            known = known or f"{nearest(str(value), self.names())}{otherwise}"
            raise ScenarioError(f"{path}: unknown {noun} {shown(value)}; {known}")

    def write(self, value: Any) -> object:
        return value


@dataclass(frozen=True, slots=True)
class Flag:
    """Yes or no."""

    unit: str = ""
    allowed: str = "true or false"

    def read(self, raw: object, path: str) -> bool:
        self.check(raw, path)
        return bool(raw)

    def check(self, value: Any, path: str) -> None:
        if not isinstance(value, bool):
            raise ScenarioError(f"{path}: {denied(value)} {self.allowed}")

    def write(self, value: Any) -> object:
        return value


def shown(value: object) -> str:
    """`value` for a message: short, one line, and safe for any value YAML can hold."""
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    text = "nothing" if value is None else repr(value)
    return text if len(text) <= 60 else f"{text[:56]}...'"


def denied(value: object) -> str:
    """The start of a message about a wrong type of value.

    >>> f"{denied(7)} a section", f"{denied(None)} a section"
    ('7 is not a section', 'is empty, not a section')
    """
    return "is empty, not" if value is None else f"{shown(value)} is not"


def unknown_schema(found: Any) -> str:
    """The message about the unknown schema in `found`.

    >>> unknown_schema({"schema": 7}), unknown_schema({})
    ('schema: 7 is not known', 'schema is missing')
    """
    schema = found.get("schema")
    return "schema is missing" if schema is None else f"schema: {shown(schema)} is not known"


def entry(rule: FieldRule, doc: str, default: Any = MISSING, *, optional: bool = False) -> Any:
    """A dataclass field with its rule. optional: None (YAML null) is allowed, with the meaning in `doc`."""
    return field(default=default, metadata={_KEY: (rule, doc, optional)})


def rule_of(item: Field[Any]) -> tuple[FieldRule, str, bool] | None:
    """The rule, documentation and nullability of a field; None for a field that no file can set."""
    found: tuple[FieldRule, str, bool] | None = item.metadata.get(_KEY)
    return found


def check_fields(spec: Any, section: str) -> None:
    """Refuse a spec whose fields break their rules, and replace other spellings of known names.

    Raises ScenarioError with the field's path.
    """
    kind: Any = type(spec)
    for name, default, (rule, _, optional) in _ruled(kind):
        value = getattr(spec, name)
        # Most fields of most specs have their default, which was checked once.
        if value is default or (value is None and optional):
            continue
        # Looked up by name: an isinstance test of the protocol takes as long as everything else here.
        canonical = getattr(rule, "canonical", None)
        if canonical is not None and (known := canonical(value)) != value:
            object.__setattr__(spec, name, value := known)
        rule.check(value, f"{section}.{name}")


@cache
def _ruled(kind: type) -> tuple[tuple[str, Any, tuple[FieldRule, str, bool]], ...]:
    """The fields of a spec that have a rule: name, the default if it keeps the rule as it is written, and the rule."""
    every = ((item, found) for item in fields(kind) if (found := rule_of(item)) is not None)
    return tuple(
        (item.name, item.default if _kept(found[0], item.default) else MISSING, found) for item, found in every
    )


def _kept(rule: FieldRule, default: Any) -> bool:
    if default is None or default is MISSING:
        return False
    try:
        rule.check(default, "")
    except (ScenarioError, TypeError):
        return False
    return bool(getattr(rule, "canonical", lambda value: value)(default) == default)


def read_fields(kind: type, raw: Mapping[str, object], section: str) -> dict[str, Any]:
    """The values given in `raw`, by field name. Raises ScenarioError for an unknown key, with the nearest one."""
    known = {item.name: found for item in fields(kind) if (found := rule_of(item)) is not None}
    values: dict[str, Any] = {}
    for key, text in raw.items():
        if key not in known:
            raise ScenarioError(f"{section}.{key}: unknown key; {nearest(str(key), known)}")
        rule, _, optional = known[key]
        values[key] = None if text is None and optional else rule.read(text, f"{section}.{key}")
    return values


COUNT = Number(True, 0, 10**15)
"""Limit of numbers of nodes, edges or iterations: more than any machine has, and sums of millions fit into 64 bits."""

POSITIVE = Number(True, 1, 10**15)
SHARE = Number(False, 0, 1)
FINITE = Number(False, -1e30, 1e30)
AMOUNT = Number(False, 0, 1e30)
"""Limit of bytes, seconds and other sizes: products of a few stay within the range of a double."""


def wrong_values(values: AnyArray, rule: Number) -> BoolArray:
    """Where `values` (a tensor is converted to an array) contain values that `rule` does not allow."""
    found = np.asarray(values)
    above = found > rule.low if rule.low_open else found >= rule.low
    return np.asarray(~(above & (found <= rule.high)), np.bool_)


def check_values(values: AnyArray, rule: Number, path: str) -> None:
    """Refuse an array with values that `rule` does not allow. Raises FileError: path, index, value, range."""
    found = np.asarray(values)
    wrong = np.argwhere(wrong_values(found, rule))
    if wrong.size:
        place = tuple(int(item) for item in wrong[0])
        where = "".join(f"[{item}]" for item in place)
        raise FileError(f"{path}{where} is {found[place]:.12g}; allowed: {rule.allowed}")
