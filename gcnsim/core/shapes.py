"""The JSON of dataclasses: range of a type, key of a field, whether it is optional; and objects as plain data and back.

A field is defined once: its type is the annotation, its description the text below it. `gcnsim schema`
prints the JSON schemas of these, and nothing here runs when an object is created. A class lists in `ADDED` the keys
that its plain data have in addition to its fields; with `MAY_SAY_MORE`, other keys are allowed too.

A field is a key of its name, or of the name in its metadata; None may be omitted. Numbers stay unchanged, except
bandwidths, which have their usual unit (`15Gbps`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

from gcnsim.core.units import bandwidth, format_gbps


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """The range of a type, in the words of JSON Schema."""

    minimum: float | None = None
    maximum: float | None = None
    exclusive_minimum: float | None = None
    exclusive_maximum: float | None = None
    min_length: int | None = None
    pattern: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    enum: tuple[str, ...] | None = None
    required: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class As:
    """The JSON type that replaces the annotated one. more: the type of further keys: `Any` for all, None for none."""

    kind: Any
    more: Any = None


@dataclass(frozen=True, slots=True)
class Keys:
    """The type of an object with these keys. needed: whether all are required."""

    kinds: tuple[tuple[str, Any], ...]
    needed: bool = True

    @classmethod
    def of(cls, names: Iterable[str], kind: Any, *, needed: bool = True) -> Keys:
        """Keys of one type."""
        return cls(tuple((name, kind) for name in names), needed)


@dataclass(frozen=True, slots=True)
class Nested:
    """A JSON object that contains some fields of a dataclass. absent: what replaces it if all are None: null, or no
    key.
    """

    key: str
    description: str
    absent: Literal["never", "null", "omitted"] = "never"

    def at(self, key: str, *, null: bool = False, late: bool = False) -> Mapping[str, Any]:
        """Metadata of a field with the key `key`. null: may be null; late: missing in older files."""
        return {INSIDE: self, KEY: key, NULL: null, LATE: late}


# Keys of the metadata below.
KEY: Final = "key"
BANDWIDTH: Final = "bandwidth"
OMITTED: Final = "omitted"
LATE: Final = "late"
INSIDE: Final = "inside"
NULL: Final = "null"
ABOUT: Final = "about"
"""Metadata of a field that is described there, not by the text below it."""

JUDGED: Final = "judged"
"""Metadata of a field that only a row compared with a recommendation has; such a row's type is annotated with it."""

FROM: Final[Mapping[str, Any]] = {KEY: "from"}
"""Metadata of a field with the key `from`."""

TO: Final[Mapping[str, Any]] = {KEY: "to"}
"""Metadata of a field with the key `to`."""

NIC_BANDWIDTH: Final[Mapping[str, Any]] = {KEY: BANDWIDTH, BANDWIDTH: True}
"""Metadata of a NIC's bytes per second, which plain data contain as the text `bandwidth`."""

OMIT_IF_NONE: Final[Mapping[str, Any]] = {OMITTED: True}
"""Metadata of a field whose key is omitted if it is None or empty."""

SINCE: Final[Mapping[str, Any]] = {LATE: True}
"""Metadata of a field that files of older versions lack."""

Text: TypeAlias = Annotated[str, Within(min_length=1)]
Currency: TypeAlias = Annotated[str, Within(pattern="^[A-Z]{3}$")]

Count: TypeAlias = Annotated[int, Within(minimum=0)]
OneOrMore: TypeAlias = Annotated[int, Within(minimum=1)]
Share: TypeAlias = Annotated[float, Within(minimum=0, maximum=1)]
Amount: TypeAlias = Annotated[float, Within(minimum=0)]
Positive: TypeAlias = Annotated[float, Within(exclusive_minimum=0)]
AtMostOne: TypeAlias = Annotated[float, Within(maximum=1)]

Staleness: TypeAlias = Annotated[Count, "Staleness: age in iterations of the boundary values that are read."]
SamplingRate: TypeAlias = Annotated[float, Within(exclusive_minimum=0, maximum=1), "Sampling rate."]
SentShare: TypeAlias = Annotated[Share, "Share of the boundary nodes that is drawn and sent."]


T = TypeVar("T")

_KINDS: Final[Mapping[Any, tuple[type, ...]]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}
_NOUNS: Final[Mapping[Any, str]] = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}


def to_plain(value: Any) -> Any:
    """A result as dicts, lists and numbers, ready for JSON. Objects with their own `payload()` use it."""
    if isinstance(value, Mapping):
        return {key: to_plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(item) for item in value]
    if not is_dataclass(value):
        return value
    return value.payload() if hasattr(value, "payload") else by_field(value)


def by_field(value: Any) -> dict[str, Any]:
    """The fields of a dataclass as plain data, in their order."""
    plain: dict[str, Any] = {}
    nested: dict[str, Nested] = {}
    for field in fields(value):
        about, content = field.metadata, getattr(value, field.name)
        if OMITTED in about and (content is None or content in ("", ())):
            continue
        place, group = plain, about.get(INSIDE)
        if group is not None:
            nested[group.key] = group
            place = plain.setdefault(group.key, {})
        place[about.get(KEY, field.name)] = format_gbps(content) if BANDWIDTH in about else to_plain(content)
    for key, group in nested.items():
        if group.absent != "never" and set(plain[key].values()) == {None}:
            plain[key] = None
            if group.absent == "omitted":
                del plain[key]
    return plain


def from_plain(kind: Callable[..., T], data: Mapping[str, Any]) -> T:
    """The result from plain data; unknown keys are ignored.

    Raises TypeError, naming the place, for a missing key or a value of the wrong type.
    """
    if not isinstance(data, Mapping):
        raise TypeError(f"{data!r:.40} is not an object")
    if hasattr(kind, "read"):
        own: T = kind.read(data)
        return own
    values = {}
    for field in fields(kind):  # type: ignore[arg-type]
        key = field.metadata.get(KEY, field.name)
        if key in data:
            text = BANDWIDTH in field.metadata
            values[field.name] = bandwidth(data[key]) if text else _within(key, _hints(kind)[field.name], data[key])
        elif field.default is MISSING and field.default_factory is MISSING:
            raise TypeError(f"lacks {key!r}")
    return kind(**values)


def _within(key: str, hint: Any, value: Any) -> Any:
    """`_value`, with the key at the start of errors."""
    try:
        return _value(hint, value)
    except TypeError as error:
        raise TypeError(f"{key}: {error}") from None


@cache
def _hints(kind: Callable[..., object]) -> dict[str, Any]:
    return get_type_hints(kind)


def _value(hint: Any, value: Any) -> Any:
    """`value` as the annotation `hint` has it."""
    inside = get_args(hint)
    if value is None:
        return None
    if get_origin(hint) in (Union, UnionType):
        others = [item for item in inside if item is not NoneType]
        return _value(others[0], value) if len(others) == 1 else value
    if get_origin(hint) is tuple:
        if not isinstance(value, list | tuple):
            raise TypeError(f"{value!r:.40} is not a list")
        return tuple(_value(inside[0], item) for item in value)
    if len(inside) == 2:
        if not isinstance(value, Mapping):
            raise TypeError(f"{value!r:.40} is not an object")
        return {key: _within(key, inside[1], item) for key, item in value.items()}
    if is_dataclass(hint) and isinstance(hint, type):
        return from_plain(hint, value)
    wanted = _KINDS.get(hint)
    if wanted and (not isinstance(value, wanted) or (isinstance(value, bool) and hint is not bool)):
        raise TypeError(f"{value!r:.40} is not {_NOUNS[hint]}")
    return value
