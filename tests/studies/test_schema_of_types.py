"""The schema of a type states what its annotations, metadata and texts state."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, NotRequired, TypedDict

import pytest

from gcnsim.core.shapes import (
    FROM,
    JUDGED,
    NIC_BANDWIDTH,
    OMIT_IF_NONE,
    SINCE,
    As,
    Count,
    Keys,
    Nested,
    Share,
    Text,
    Within,
)
from studies.schema_of_types import Schemas

END = Nested("ends", "Both ends.", "null")


@dataclass(frozen=True, slots=True)
class Inner:
    """What is inside.

    Not of readers of the schema.
    """

    share: Share | None
    plain: float
    """In units,
    over two lines."""


class Facts(TypedDict):
    """Some facts."""

    kind: Text


@dataclass(frozen=True, slots=True)
class Open:
    """Says more."""

    one: bool

    MAY_SAY_MORE: ClassVar = True


@dataclass(frozen=True, slots=True)
class Outer:
    """The whole."""

    inner: Inner
    """One."""
    many: Annotated[tuple[Inner | None, ...], Within(min_items=1)]
    start: int | str = field(metadata=FROM)
    speed: float = field(metadata=NIC_BANDWIDTH)
    facts: Annotated[Mapping[str, Any], As(Facts)]
    word: Annotated[str, As(Literal["a", "b"])]
    sizes: Mapping[str, Count]
    anything: Mapping[str, Any]
    more: Open
    low: float | None = field(default=None, metadata=END.at("low"))
    high: float | None = field(default=None, metadata=END.at("high", null=True, late=True))
    said: Text | None = field(default=None, metadata=OMIT_IF_NONE)
    late: bool = field(default=False, metadata=SINCE)
    judged: bool = field(default=False, metadata={JUDGED: True})

    ADDED: ClassVar = ("total",)

    @property
    def total(self) -> Count:
        """All of it."""
        return len(self.many)


INNER = {
    "type": "object",
    "required": ["share", "plain"],
    "properties": {
        "share": {"type": ["number", "null"], "minimum": 0, "maximum": 1},
        "plain": {"type": "number", "description": "In units, over two lines."},
    },
    "description": "What is inside.",
}


def test_types_and_metadata_say_what_a_schema_says() -> None:
    schemas = Schemas()
    whole = schemas.object_of(Outer)
    closed = INNER | {"additionalProperties": False}
    reference = {"$ref": "#/$defs/Inner"}
    ends = {
        "type": ["object", "null"],
        "required": ["low"],
        "properties": {"low": {"type": "number"}, "high": {"type": ["number", "null"]}},
        "additionalProperties": False,
        "description": "Both ends.",
    }
    facts = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"type": "string", "minLength": 1}},
        "additionalProperties": False,
        "description": "Some facts.",
    }
    assert schemas.definitions["Inner"] == closed
    assert whole["properties"] == {
        "inner": reference | {"description": "One."},
        "many": {"type": "array", "items": closed | {"type": ["object", "null"]}, "minItems": 1},
        "from": {"type": ["integer", "string"]},
        "bandwidth": {"type": "string", "minLength": 1},
        "facts": facts,
        "word": {"enum": ["a", "b"]},
        "sizes": {"type": "object", "additionalProperties": {"type": "integer", "minimum": 0}},
        "anything": {"type": "object"},
        "more": {"$ref": "#/$defs/Open"},
        "ends": ends,
        "said": {"type": "string", "minLength": 1},
        "late": {"type": "boolean"},
        "total": {"type": "integer", "minimum": 0, "description": "All of it."},
    }
    assert "additionalProperties" not in schemas.definitions["Open"]
    assert set(whole["properties"]) - set(whole["required"]) == {"said", "late"}
    assert schemas.object_of(Outer, judged=True)["properties"]["judged"] == {"type": "boolean"}


def test_a_type_that_json_has_no_word_for_is_refused() -> None:
    with pytest.raises(KeyError):
        Schemas().of(complex)


TEXTS = {"type": "array", "items": {"type": "string", "minLength": 1}}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (list[Text], TEXTS),
        (Sequence[Text], TEXTS),
        (tuple[float, float], {"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
        (bool | Mapping[str, Any] | None, {"type": ["boolean", "object", "null"]}),
        (Annotated[str, Within(enum=("a", "b"))], {"enum": ["a", "b"]}),
        (Annotated[Count, "How many."], {"type": "integer", "minimum": 0, "description": "How many."}),
        (
            Annotated[Mapping[str, str], Within(required=("a",))],
            {"type": "object", "additionalProperties": {"type": "string"}, "required": ["a"]},
        ),
        (
            Keys.of(("a", "b"), Count, needed=False),
            {
                "type": "object",
                "required": [],
                "properties": {key: {"type": "integer", "minimum": 0} for key in ("a", "b")},
                "additionalProperties": False,
            },
        ),
    ],
    ids=str,
)
def test_what_a_type_is_in_json(hint: Any, schema: dict[str, Any]) -> None:
    assert plain(Schemas().of(hint)) == schema


class Some(TypedDict):
    """Some keys."""

    one: bool
    two: NotRequired[Share]
    """May lack."""


def test_keys_of_a_dict_that_may_lack_and_those_that_nobody_names() -> None:
    found = Schemas().of(Some)
    assert found["required"] == ["one"]
    assert found["properties"]["two"] == {"type": "number", "minimum": 0, "maximum": 1, "description": "May lack."}
    assert found["additionalProperties"] is False
    assert "additionalProperties" not in Schemas().of(Annotated[Mapping[str, Any], As(Some, Any)])
    more = Schemas().of(Annotated[Mapping[str, Any], As(Some, float | None)])
    assert more["additionalProperties"] == {"type": ["number", "null"]}


@dataclass(frozen=True, slots=True)
class Base:
    """A figure."""

    value: float
    """Its value."""


class AtLeastZero(Base):
    """One of at least zero."""

    value: Count


def test_a_class_may_narrow_a_field_and_keeps_its_text() -> None:
    assert Schemas().object_of(AtLeastZero)["properties"] == {
        "value": {"type": "integer", "minimum": 0, "description": "Its value."}
    }


def plain(value: Any) -> Any:
    """Lists for tuples."""
    return json.loads(json.dumps(value))
