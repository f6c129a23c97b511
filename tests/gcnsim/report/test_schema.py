from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gcnsim.core.schemas import schema_of


@pytest.fixture
def validator() -> Draft202012Validator:
    schema = dict(schema_of("what-if"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def test_accepts_a_payload_also_after_a_trip_through_json(
    validator: Draft202012Validator, answered: dict[str, Any]
) -> None:
    assert validator.is_valid(json.loads(json.dumps(answered)))


@pytest.mark.parametrize(
    ("key", "value"),
    [("cache_fraction", 1.01), ("tau", -1), ("iteration_s", "1s"), ("bottleneck", None)],
)
def test_rejects_a_value_out_of_its_range(
    validator: Draft202012Validator, answered: dict[str, Any], key: str, value: object
) -> None:
    answered["results"][0][key] = value
    assert not validator.is_valid(answered)
