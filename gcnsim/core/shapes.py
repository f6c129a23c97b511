"""The JSON description of a dataclass's fields: range of a type, key of a field, whether it is optional.

A field is defined once: its type is the annotation, its description the text below it. `python -m studies.schemas`
writes the JSON schemas from these, and nothing here runs when an object is created. A class lists in `ADDED` the keys
that its plain data have in addition to its fields; with `MAY_SAY_MORE`, other keys are allowed too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, TypeAlias


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
