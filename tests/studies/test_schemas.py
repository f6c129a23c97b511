"""Published schemas are what the dataclasses say, and validate alone."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gcnsim.results import Row
from studies.schemas import DOCUMENTS, schema_text
from tests.gcnsim.results.made import DOCUMENT
from tests.gcnsim.results.made import JUDGED as JUDGED_ROW


def test_every_schema_that_ships_is_written_from_classes() -> None:
    there = files("gcnsim").joinpath("data").iterdir()
    assert {item.name for item in there if item.name.endswith(".json")} == {f"{name}.schema.json" for name in DOCUMENTS}


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
    assert alone.is_valid(Row.read(DOCUMENT).payload())
    assert judged.is_valid(Row.read(JUDGED_ROW).payload())
    assert not alone.is_valid(JUDGED_ROW)
    assert not judged.is_valid(DOCUMENT)
