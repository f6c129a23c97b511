from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gcnsim.core.json_files import mistake, shipped_schema
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


def test_a_record_keeps_the_schema(validator: Draft202012Validator, document: dict[str, Any]) -> None:
    assert [error.message for error in validator.iter_errors(document)] == []
    assert mistake(document, "run") is None


def test_every_field_of_a_record_is_in_the_schema_and_described_there(document: dict[str, Any]) -> None:
    assert list(shipped_schema("run")["properties"]) == list(document)
    assert shipped_schema("run")["required"] == [name for name in document if name not in SINCE]
