"""Does a document keep the JSON schema that ships with gcnsim? Only the keywords those schemas use.

The schema file is the one description of `run.json`, for readers outside and for this check; tests hold the check equal
to a full validator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, Final

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


@cache
def run_schema() -> Mapping[str, Any]:
    """The schema of `run.json`."""
    text = files("gcnsim").joinpath("data/run.schema.json").read_text(encoding="utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def mistakes(document: object) -> Iterator[str]:
    """What is wrong with a `run.json`, one line each, starting with the place (`bytes.rows[0]`)."""
    return _mistakes(document, run_schema(), "")


def _mistakes(value: object, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    if "$ref" in schema:
        schema = run_schema()["$defs"][schema["$ref"].rpartition("/")[2]]
    if "const" in schema and value != schema["const"]:
        yield f"{place} is {_brief(value)}, wanted {_brief(schema['const'])}"
    if "type" in schema and not _is(value, schema["type"]):
        yield f"{place or 'the document'} is {_brief(value)}, wanted {_either(schema['type'])}"
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _out_of_range(value, schema, place)
    elif isinstance(value, dict):
        yield from _object(value, schema, place)
    elif isinstance(value, list):
        if len(value) < schema.get("minItems", 0):
            yield f"{place} has {len(value)} items, wanted {schema['minItems']} or more"
        for i, item in enumerate(value):
            yield from _mistakes(item, schema.get("items", {}), f"{place}[{i}]")


def _out_of_range(value: float, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    if value < low:
        yield f"{place} is {value}, wanted {low} or more"
    if value > high:
        yield f"{place} is {value}, wanted {high} or less"


def _object(value: Mapping[str, object], schema: Mapping[str, Any], place: str) -> Iterator[str]:
    within = f"{place}." if place else ""
    known = schema.get("properties", {})
    yield from (f"has no {within}{name}" for name in schema.get("required", ()) if name not in value)
    for name, item in value.items():
        inner = known.get(name, schema.get("additionalProperties", {}))
        if inner is False:
            yield f"{within}{name} is unknown"
        else:
            yield from _mistakes(item, inner, f"{within}{name}")


def _is(value: object, kinds: str | list[str]) -> bool:
    names = [kinds] if isinstance(kinds, str) else kinds
    if isinstance(value, bool):
        return "boolean" in names
    whole = isinstance(value, float) and value.is_integer() and "integer" in names
    return whole or any(isinstance(value, _TYPES[name]) for name in names)


def _either(kinds: str | list[str]) -> str:
    return kinds if isinstance(kinds, str) else " or ".join(kinds)


def _brief(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
