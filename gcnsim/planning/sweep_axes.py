"""The values of an axis: lists, whole numbers `0..4`, and ranges `linear(1Gbps, 100Gbps, 25)`, `log(0.01, 1, 10)`; and
conditions on points, such as `method.tau <= 2 if method.epsilon < 1`, compared with the units of the fields.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError, UnitError
from gcnsim.core.fields import Choice, FieldRule, Flag, Named, Number, QuantityRange, Share, shown
from gcnsim.core.units import FRACTION, Quantity
from gcnsim.core.yaml_files import parse_yaml
from gcnsim.scenario import Scenario, paths, rule_at
from gcnsim.workload.caching import Cache

DIGITS: Final = 6
"""Significant digits of a value inside a range, so that steps give 0.1 and not 0.10000000000000002."""

MOST_VALUES: Final = 1_000_000
"""The most values of one axis."""

MOST_DIGITS: Final = 18
"""The most digits of a whole number."""

_WHOLE: Final = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)(?:/([0-9]+))?")
_COUNT: Final = re.compile(r"[0-9]{1,9}")
_RANGE: Final = re.compile(r"([a-z]+)\((.*)\)", re.DOTALL)
_NUMBER: Final = re.compile(r"^\s*[+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?\s*")
_KINDS: Final = ("linear", "log")

HOW: Final = "write values (5Gbps,10Gbps), whole numbers (0..4, 0..16/4), linear(A,B,N) or log(A,B,N)"


@dataclass(frozen=True, slots=True)
class Between:
    """A continuous range from which samples are drawn: `linear(1Gbps, 100Gbps)`.

    low, high: in `unit`, the unit of the low end. Plain numbers have an empty unit and may be `whole`.
    """

    kind: str
    low: float
    high: float
    whole: bool
    unit: str

    def at(self, share: float) -> Any:
        """The value at `share` of the way from the low to the high end, in scenario notation."""
        low, high = (math.log(self.low), math.log(self.high)) if self.kind == "log" else (self.low, self.high)
        if self.whole:
            # Every whole number has the same share, including the ends: round down to at most `high`.
            low, high = (math.log(self.low), math.log(self.high + 1)) if self.kind == "log" else (low, high + 1)
        value = low + (high - low) * share
        value = math.exp(value) if self.kind == "log" else value
        if self.whole:
            return int(min(max(math.floor(value + 1e-9), self.low), self.high))
        rounded = float(f"{min(max(value, self.low), self.high):.{DIGITS}g}")
        return f"{rounded:.{DIGITS}g}{self.unit}" if self.unit else rounded


@dataclass(frozen=True, slots=True)
class Axis:
    """A field of a scenario and its values in scenario notation. between: the range to sample instead."""

    path: str
    values: tuple[Any, ...]
    between: Between | None = None

    def at(self, share: float) -> Any:
        """The value at `share` in [0, 1): an item of the list, or a number of the range."""
        if self.between is not None:
            return self.between.at(share)
        return self.values[min(int(share * len(self.values)), len(self.values) - 1)]


def read_axis(path: str, written: object, where: str) -> Axis:
    """Parse the axis over the field at `path`. where: the start of messages before the path, `axes.` or `--axis `.

    Raises ScenarioError for an unknown field (with the closest name), an empty range, or a value the field does not
    allow.
    """
    at = f"{where}{path}"
    try:
        rule, optional = rule_at(path)
    except ScenarioError as error:
        raise ScenarioError(f"{where}{error}") from None
    values: list[Any] = []
    between: Between | None = None
    for one in _items(written, rule, at):
        more = _one(one, rule, at)
        if isinstance(more, Between):
            between = more
        else:
            values += more
    if between is not None and (values or not isinstance(written, str)):
        raise ScenarioError(f"{at}: {shown(written)} mixes a range without a count with other values; {HOW}")
    if between is None and not values:
        raise ScenarioError(f"{at}: an empty list of values; {HOW}")
    for value in values if between is None else (between.at(0.0), between.at(1.0)):
        _check(value, rule, optional, at, path)
    if isinstance(rule, Named):
        values = [rule.canonical(value) for value in values]
    return Axis(path, tuple({_key(value): value for value in values}.values()), between)


def _key(value: Any) -> tuple[str, str]:
    """The key that identifies equal values; 1 and true differ."""
    return type(value).__name__, repr(value)


def _check(value: Any, rule: FieldRule, optional: bool, at: str, path: str) -> None:
    """Refuse a value that the field does not allow. Knobs of some methods are checked with the method."""
    if value is None and optional:
        return
    try:
        rule.read(value, at)
    except (ScenarioError, UnitError):
        if path.startswith("method.") and path not in ("method.name", "method.overlap") and isinstance(value, str):
            return
        raise


def _items(written: object, rule: FieldRule, at: str) -> list[object]:
    """The listed items. Raises ScenarioError for a mapping or invalid text."""
    if isinstance(written, list):
        return list(written)
    if isinstance(written, dict):
        raise ScenarioError(f"{at}: a mapping is not a list of values; {HOW}")
    if not isinstance(written, str):
        return [written]
    # Inside a list of names or numbers, commas belong to the item; several items are given as a YAML list.
    single = isinstance(rule, Number | QuantityRange | Choice | Flag | Cache)
    texts = list(_split(written, at)) if single else [written]
    try:
        return [text if _is_range(text) else parse_yaml(text, at) for text in texts]
    except FileError as error:
        raise ScenarioError(str(error)) from None


def _split(text: str, at: str) -> Iterator[str]:
    """Split text at commas outside parentheses."""
    depth, part = 0, ""
    for letter in text:
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            yield _filled(part, text, at)
            part = ""
        else:
            part += letter
    if depth:
        raise ScenarioError(f"{at}: {shown(text)}: a parenthesis is not closed; {HOW}")
    yield _filled(part, text, at)


def _filled(part: str, text: str, at: str) -> str:
    if not part.strip():
        raise ScenarioError(f"{at}: {shown(text)} has an empty value; {HOW}")
    return part.strip()


def _is_range(text: object) -> bool:
    return isinstance(text, str) and bool(_WHOLE.fullmatch(text.strip()) or _RANGE.fullmatch(text.strip()))


def _one(item: object, rule: FieldRule, at: str) -> list[Any] | Between:
    """The values of one item of a list."""
    if not isinstance(item, str) or not _is_range(item):
        return [item]
    text = item.strip()
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        if len(max(whole.groups("1"), key=len)) > MOST_DIGITS:
            raise ScenarioError(f"{at}: {shown(text)} has a number of more than {MOST_DIGITS} digits")
        return _counted(text, int(whole[1]), int(whole[2]), int(whole[3] or 1), at)
    named = _RANGE.fullmatch(text)
    assert named is not None
    kind, parts = named[1], [part.strip() for part in named[2].split(",")]
    if kind not in _KINDS:
        raise ScenarioError(f"{at}: {shown(text)}: unknown range {kind!r}; {HOW}")
    if len(parts) not in (2, 3):
        raise ScenarioError(f"{at}: {shown(text)}: a range has two ends and a count; {HOW}")
    between = _between(kind, parts[0], parts[1], rule, f"{at}: {shown(text)}")
    if len(parts) == 2:
        return between
    count = int(parts[2]) if _COUNT.fullmatch(parts[2]) else 0
    if not 1 <= count <= MOST_VALUES:
        raise ScenarioError(f"{at}: {shown(text)}: {parts[2]!r} is not a count; a whole number of 1 to {MOST_VALUES:,}")
    if count == 1 and between.low != between.high:
        raise ScenarioError(f"{at}: {shown(text)}: one value cannot be both ends; a count of 2 or more")
    shares: Sequence[float] = [step / (count - 1) for step in range(count)] if count > 1 else [0.0]
    return list(dict.fromkeys(between.at(share) for share in shares))


def _counted(text: str, first: int, last: int, step: int, at: str) -> list[Any]:
    if step < 1 or last < first:
        raise ScenarioError(f"{at}: {text} is an empty range; the first number is at most the last, the step above 0")
    if (last - first) // step >= MOST_VALUES:
        raise ScenarioError(f"{at}: {text} has more than {MOST_VALUES:,} values")
    return list(range(first, last + 1, step))


def _between(kind: str, low: str, high: str, rule: FieldRule, at: str) -> Between:
    shares = isinstance(rule, Cache) or (isinstance(rule, Share) and low.endswith("%"))
    quantity = rule.quantity if isinstance(rule, QuantityRange) else FRACTION if shares else None
    whole = isinstance(rule, Number) and rule.whole
    if quantity is None and not isinstance(rule, Number):
        raise ScenarioError(f"{at}: only a number or a quantity has a range; {rule.allowed}")
    unit = _NUMBER.sub("", low) if quantity is not None else ""
    ends = [_end(text, quantity, unit, at) for text in (low, high)]
    if ends[0] > ends[1]:
        raise ScenarioError(f"{at}: an empty range; the first end is at most the second")
    if kind == "log" and ends[0] <= 0:
        raise ScenarioError(f"{at}: a logarithmic range starts above 0")
    return Between(kind, ends[0], ends[1], whole, unit)


def _end(text: str, quantity: Quantity | None, unit: str, at: str) -> float:
    """An end of a range in `unit`. Raises ScenarioError."""
    try:
        number = float(text) if quantity is None else quantity.parse(text) / quantity.parse(f"1{unit}")
    except (ValueError, UnitError) as error:
        reason = str(error) if isinstance(error, UnitError) else f"{text!r} is not a number"
        raise ScenarioError(f"{at}: {reason}") from None
    if not math.isfinite(number):
        raise ScenarioError(f"{at}: {text!r} is not finite")
    return number


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

HOW_CONDITION: Final = (
    "write FIELD OPERATOR VALUE, e.g. method.tau <= 2, optionally followed by: if FIELD OPERATOR VALUE"
)

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
        raise ScenarioError(f"{where}: {shown(written)} is not a condition; {HOW_CONDITION}")
    must, parts, when = written.partition(" if ")
    return Condition(written, _comparison(must, where), _comparison(when, where) if parts else None)


def _comparison(text: str, where: str) -> Comparison:
    match = _COMPARISON.fullmatch(text.strip())
    if match is None:
        raise ScenarioError(f"{where}: {shown(text.strip())} is not a comparison; {HOW_CONDITION}")
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
