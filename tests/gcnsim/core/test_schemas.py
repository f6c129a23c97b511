"""Schemas made from the classes of documents."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from gcnsim.cli import main
from gcnsim.core.errors import GcnsimError
from gcnsim.core.schemas import DOCUMENTS, schema_of


def without_texts(part: Any) -> Any:
    """A schema without the descriptions of properties; a property may have that name."""
    if isinstance(part, list):
        return [without_texts(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {key: without_texts(value) for key, value in part.items() if key != "description" or isinstance(value, dict)}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents_are_checked_by_what_is_printed(name: str) -> None:
    assert without_texts(schema_of(name, described=False)) == without_texts(schema_of(name))


def test_a_field_has_range_key_and_text_of_its_class() -> None:
    whole = schema_of("what-if")
    assert whole["$defs"]["Step"]["properties"]["from"]
    assert whole["properties"]["schema"] == {"const": "gcnsim.what-if/1"}
    suspect = whole["$defs"]["Suspect"]
    assert suspect["properties"]["name"] == {"type": "string", "minLength": 1, "description": "An assumption."}
    assert suspect["required"] == ["name", "reaches"]
    assert suspect["additionalProperties"] is False


def test_a_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "cluster"]) == 0
    assert json.loads(capsys.readouterr().out) == schema_of("cluster")


def test_an_unknown_schema_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schema", "what-iff"]) == 2
    line = capsys.readouterr().err
    assert line.startswith("gcnsim: schema: unknown 'what-iff'; did you mean 'what-if'? known: calibration, ")
    assert line.count("\n") == 1


def test_a_class_that_needs_an_extra_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    schema_of.cache_clear()
    monkeypatch.delitem(sys.modules, "runtime.train.checkpoint", raising=False)
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(GcnsimError, match=r"schema: needs torch; pip install 'gcnsim\[runtime\]'"):
        schema_of("checkpoint")
