"""Does a document keep a JSON schema that ships with gcnsim? Only the keywords those schemas use.

The schema file is the one description of `run.json` and of what the micro-benchmarks write, for readers outside and for
this check; tests hold the check equal to a full validator.
"""

from __future__ import annotations

import json
import math
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
def shipped_schema(name: str) -> Mapping[str, Any]:
    """The schema `name`: `run` for `run.json`."""
    text = files("gcnsim").joinpath(f"data/{name}.schema.json").read_text(encoding="utf-8")
    schema: Mapping[str, Any] = json.loads(text)
    return schema


def mistakes(document: object, name: str = "run") -> Iterator[str]:
    """What is wrong with a document of the schema `name`, one line each, starting with the place (`bytes.rows[0]`)."""
    whole = shipped_schema(name)
    return _Check(whole.get("$defs", {})).mistakes(document, whole, "")


class _Check:
    """One schema's definitions, and a walk through a document beside them."""

    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions

    def mistakes(self, value: object, schema: Mapping[str, Any], place: str) -> Iterator[str]:
        """What is wrong with `value` at `place`."""
        if "$ref" in schema:
            schema = self.definitions[schema["$ref"].rpartition("/")[2]]
        if "const" in schema and value != schema["const"]:
            yield f"{place} is {_brief(value)}, wanted {_brief(schema['const'])}"
        if "type" in schema and not _is(value, schema["type"]):
            yield f"{place or 'the document'} is {_brief(value)}, wanted {_either(schema['type'])}"
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield from _out_of_range(value, schema, place)
        elif isinstance(value, dict):
            yield from self._object(value, schema, place)
        elif isinstance(value, list):
            if len(value) < schema.get("minItems", 0):
                yield f"{place} has {len(value)} items, wanted {schema['minItems']} or more"
            for i, item in enumerate(value):
                yield from self.mistakes(item, schema.get("items", {}), f"{place}[{i}]")

    def _object(self, value: Mapping[str, object], schema: Mapping[str, Any], place: str) -> Iterator[str]:
        within = f"{place}." if place else ""
        known = schema.get("properties", {})
        yield from (f"has no {within}{name}" for name in schema.get("required", ()) if name not in value)
        for name, item in value.items():
            inner = known.get(name, schema.get("additionalProperties", {}))
            if inner is False:
                yield f"{within}{name} is unknown"
            else:
                yield from self.mistakes(item, inner, f"{within}{name}")


def _out_of_range(value: float, schema: Mapping[str, Any], place: str) -> Iterator[str]:
    low, high = schema.get("minimum", value), schema.get("maximum", value)
    if value < low:
        yield f"{place} is {value}, wanted {low} or more"
    if value <= schema.get("exclusiveMinimum", -math.inf):
        yield f"{place} is {value}, wanted more than {schema['exclusiveMinimum']}"
    if value > high:
        yield f"{place} is {value}, wanted {high} or less"


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
