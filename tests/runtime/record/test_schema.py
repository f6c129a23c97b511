from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from gcnsim.io.schema import mistakes, shipped_schema
from runtime.record import RunRecord

SINCE = ("tensors", "threads")
"""Keys that older records lack."""


@pytest.fixture
def document(record: RunRecord) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps({"schema": "gcnsim.run/1", **asdict(record)}))
    return plain


@pytest.fixture
def validator() -> Draft202012Validator:
    Draft202012Validator.check_schema(dict(shipped_schema("run")))
    return Draft202012Validator(dict(shipped_schema("run")))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) within `value`."""
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def test_a_record_keeps_the_schema(validator: Draft202012Validator, document: dict[str, Any]) -> None:
    assert [error.message for error in validator.iter_errors(document)] == []
    assert list(mistakes(document)) == []


def test_every_field_of_a_record_is_in_the_schema_and_described_there(document: dict[str, Any]) -> None:
    assert list(shipped_schema("run")["properties"]) == list(document)
    assert shipped_schema("run")["required"] == [name for name in document if name not in SINCE]


_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(-1, 3, allow_nan=False),
    st.just(1.0),
    st.text(max_size=3),
    st.just([]),
    st.just({}),
    st.just([[0, 1], [0, -1]]),
)


@settings(deadline=None, max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_our_check_and_a_full_validator_agree(
    data: st.DataObject, validator: Draft202012Validator, document: dict[str, Any]
) -> None:
    broken = json.loads(json.dumps(document))

    def drawn() -> Any:
        # A copy: a strategy gives the same list again, which would end up in itself.
        return json.loads(json.dumps(data.draw(_values)))

    for _ in range(data.draw(st.integers(1, 2))):
        places = list(_places(broken))
        holder, key = places[data.draw(st.integers(0, len(places) - 1))]
        if data.draw(st.booleans()):
            holder[key] = drawn()
        elif isinstance(holder, dict) and data.draw(st.booleans()):
            holder["more"] = drawn()
        else:
            del holder[key]
    assert (next(mistakes(broken), None) is None) == validator.is_valid(broken)


def test_only_keywords_that_the_check_knows_are_in_the_schema() -> None:
    known = {"type", "const", "required", "properties", "additionalProperties", "items", "minItems", "minimum"}
    told = {"$schema", "$id", "$ref", "$defs", "title", "description", "maximum"}
    found: set[str] = set()

    def collect(schema: Any) -> None:
        if isinstance(schema, dict):
            found.update(schema)
            for name, inner in schema.items():
                for each in inner.values() if name in ("properties", "$defs") else [inner]:
                    collect(each)

    collect(shipped_schema("run"))
    assert found <= known | told
