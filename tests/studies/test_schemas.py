"""Published schemas are what the dataclasses say, and validate alone."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Annotated, Any, ClassVar, Literal, TypedDict

import pytest
from jsonschema import Draft202012Validator

from gcnsim.results import Row
from gcnsim.shapes import (
    FROM,
    JUDGED,
    NIC_BANDWIDTH,
    ONLY_IF_SAID,
    SINCE,
    As,
    Count,
    Nested,
    Share,
    Text,
    Within,
)
from studies.schemas import DOCUMENTS, Schemas, schema_text
from tests.gcnsim.results.made import JUDGED as JUDGED_ROW
from tests.gcnsim.results.made import TOLD


@pytest.mark.parametrize("name", DOCUMENTS)
def test_what_ships_is_what_the_dataclasses_say(name: str) -> None:
    text = files("gcnsim").joinpath(f"data/{name}.schema.json").read_text(encoding="utf-8")
    assert text == schema_text(name), "python -m studies.schemas writes it"


def row_of(name: str, definition: str) -> Draft202012Validator:
    schema: dict[str, Any] = json.loads(schema_text(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema["$defs"][definition] | {"$defs": schema["$defs"]})


def test_a_row_of_a_what_if_is_that_of_a_result_and_its_judgement() -> None:
    alone, judged = row_of("result", "Row"), row_of("what-if", "JudgedRow")
    assert alone.is_valid(Row.read(TOLD).payload())
    assert judged.is_valid(Row.read(JUDGED_ROW).payload())
    assert not alone.is_valid(JUDGED_ROW)
    assert not judged.is_valid(TOLD)


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
    said: Text | None = field(default=None, metadata=ONLY_IF_SAID)
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
