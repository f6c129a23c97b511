"""Published schemas hold what is shared, and validate alone."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gcnsim.results import Row
from studies.compose_schemas import SCHEMAS, composed
from tests.gcnsim.results.made import JUDGED, TOLD


@pytest.mark.parametrize("name", SCHEMAS)
def test_what_ships_is_what_is_composed(name: str) -> None:
    text = files("gcnsim").joinpath(f"data/{name}.schema.json").read_text(encoding="utf-8")
    assert text == composed(name), "python -m studies.compose_schemas writes it"


def row_of(name: str) -> Draft202012Validator:
    schema: dict[str, Any] = json.loads(composed(name))
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema["$defs"]["result"] | {"$defs": schema["$defs"]})


def test_a_row_of_a_what_if_is_that_of_a_result_and_its_judgement() -> None:
    alone, judged = row_of("result"), row_of("what-if")
    assert alone.is_valid(Row.read(TOLD).payload())
    assert judged.is_valid(Row.read(JUDGED).payload())
    assert not alone.is_valid(JUDGED)
    assert not judged.is_valid(TOLD)
