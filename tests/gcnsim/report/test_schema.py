from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator


@pytest.fixture
def validator() -> Draft202012Validator:
    schema = json.loads(files("gcnsim").joinpath("data/what-if.schema.json").read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def _row(answered: dict[str, Any], part: str) -> dict[str, Any]:
    found: Any = answered[part] if part else answered
    row: dict[str, Any] = found[0] if isinstance(found, list) else found
    return row


def test_accepts_a_payload_also_after_a_trip_through_json(
    validator: Draft202012Validator, answered: dict[str, Any]
) -> None:
    assert validator.is_valid(json.loads(json.dumps(answered)))


@pytest.mark.parametrize("part", ["", "results", "recommendation", "next_steps"])
def test_rejects_an_extra_key(validator: Draft202012Validator, answered: dict[str, Any], part: str) -> None:
    _row(answered, part)["extra"] = 1
    assert not validator.is_valid(answered)


@pytest.mark.parametrize("part", ["", "results", "recommendation", "next_steps", "scenario", "provenance"])
def test_rejects_any_missing_key(validator: Draft202012Validator, answered: dict[str, Any], part: str) -> None:
    row = _row(answered, part)
    free = ("utilization", "model", "measured", "bounds")
    required = ["grid"] if part == "scenario" else [key for key in row if key not in free]
    for key in required:
        value = row.pop(key)
        assert not validator.is_valid(answered), key
        row[key] = value
    assert validator.is_valid(answered)


@pytest.mark.parametrize("part", ["scenario", "provenance"])
def test_scenario_and_provenance_may_say_more(
    validator: Draft202012Validator, answered: dict[str, Any], part: str
) -> None:
    answered[part]["more"] = "said"
    assert validator.is_valid(answered)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cache_fraction", 1.01),
        ("cache_fraction", -0.1),
        ("epsilon", 0),
        ("tau", -1),
        ("tau", 0.5),
        ("iteration_s", 0),
        ("iteration_s", "1s"),
        ("gpu_utilization", 1.2),
        ("nic_bytes", -1),
        ("bottleneck", None),
    ],
)
def test_rejects_a_value_out_of_its_range(
    validator: Draft202012Validator, answered: dict[str, Any], key: str, value: object
) -> None:
    answered["results"][0][key] = value
    assert not validator.is_valid(answered)
