"""Results as plain data and back: the conversion to JSON of every dataclass in this package.

A field is a key of its name, or of the name in its metadata (`gcnsim/core/shapes.py`); None may be omitted. Numbers
stay unchanged, except bandwidths, which have their usual unit (`15Gbps`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, TypeVar, Union, get_args, get_origin, get_type_hints

from gcnsim.core.shapes import BANDWIDTH, INSIDE, KEY, OMITTED, Nested
from gcnsim.core.units import bandwidth, format_gbps

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
