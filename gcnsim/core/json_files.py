"""JSON documents: finite numbers of limited size, limited nesting, and the format of a schema.

The schemas come from the classes of the documents (`gcnsim.core.schemas`). The validation library is slow to import, so
only functions that read a document import it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.errors import FileError
from gcnsim.core.schemas import schema_of

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, ValidationError

DEEPEST: Final = 32
"""The deepest nesting; records have seven levels."""

LARGEST: Final = 1e30
"""The largest absolute number: products of a few such sizes stay within the range of a double."""

_WANTED: Final[Mapping[str, str]] = {
    "minimum": "{} or more",
    "maximum": "{} or less",
    "exclusiveMinimum": "more than {}",
    "minLength": "{} characters or more",
    "pattern": "text like {}",
}


def read_json(path: str | Path, schema: str, hint: str = "") -> dict[str, Any]:
    """Read the document in the file at `path` and check it against the schema `schema`.

    hint: what to do if it does not match. Raises FileError, naming the file, the place in it, the value and the
    requirement.
    """
    document = parse_json(read_text(path, hint), path)
    wrong = mistake(document, schema)
    if wrong:
        raise FileError(f"{path}: {wrong}{hint}")
    found: dict[str, Any] = document
    return found


def read_text(path: str | Path, hint: str = "") -> str:
    """The text of a file. Raises FileError; hint: the end of its message if the file is missing."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}{hint}") from None
    except UnicodeDecodeError as error:
        raise FileError(f"{path}: not UTF-8 text (byte {error.start})") from None


def parse_json(text: str, path: str | Path) -> Any:
    """Parse the document in `text`, from the file at `path`.

    Raises FileError, naming the file and the place, for invalid JSON, a key given twice, and for NaN, infinite and huge
    numbers.
    """
    try:
        document = json.loads(text, object_pairs_hook=each_once)
    except KeyError as error:
        raise FileError(f"{path}: {error.args[0]}") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path}: not a JSON document") from None
    for place, value in _leaves(document, path):
        number = isinstance(value, int | float)
        # Comparison is exact for whole numbers of any length, where a conversion would overflow.
        if number and not (-LARGEST <= value <= LARGEST):
            shown = str(value) if isinstance(value, float) else f"a whole number of {len(str(abs(value)))} digits"
            raise FileError(f"{path}: {place or 'the document'} is {shown}; allowed: finite numbers up to {LARGEST:g}")
    return document


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of its keys and values. Raises KeyError for a key that is there twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise KeyError(f"key {key[:40]!r} is there more than once; allowed: once")
            seen.add(key)
    return found


def canonical(document: Any) -> str:
    """`document` as text that does not depend on the layout of its file."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def mistake(document: object, name: str, part: str = "") -> str | None:
    """The first error in a document of the schema `name`: its place (`bytes.rows[0]`), the value and the requirement.

    None if it matches. part: the document is only the value under this key.
    """
    errors = _validator(name, part).iter_errors(document)
    # A wrong kind of document is reported before its missing keys.
    error = min(errors, key=lambda item: list(item.absolute_path) != ["schema"], default=None)
    return None if error is None else _line(error, part)


@cache
def _validator(name: str, part: str) -> Draft202012Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    # JSON Schema also takes 3.0 for an integer, but no place in a list can be a float.
    types = Draft202012Validator.TYPE_CHECKER.redefine("integer", lambda _, value: type(value) is int)
    schema = schema_of(name, described=False)
    whole = _inlined(schema, schema.get("$defs", {}))
    kind: type[Draft202012Validator] = extend(Draft202012Validator, type_checker=types)  # type: ignore[no-untyped-call]
    return kind(whole["properties"][part] if part else whole)


def _inlined(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """`schema` with its references replaced by their targets, because resolving them takes ten times as long."""
    if isinstance(schema, list):
        return [_inlined(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        schema = {**definitions[schema["$ref"].rpartition("/")[2]], **schema}
    return {key: _inlined(value, definitions) for key, value in schema.items() if key not in ("$ref", "$defs")}


def _line(error: ValidationError, part: str) -> str:
    place = _joined([part, *error.absolute_path] if part else error.absolute_path)
    keyword = str(error.validator)
    wanted: Any = error.validator_value
    value: Any = error.instance
    if keyword == "required":
        return f"has no {_joined([place, next(key for key in wanted if key not in value)])}"
    if keyword == "additionalProperties":
        rule: Any = error.schema
        return f"{_joined([place, next(key for key in value if key not in rule.get('properties', {}))])} is unknown"
    if keyword in ("minItems", "maxItems"):
        return f"{place} has {len(value)} items, wanted {wanted} or {'more' if keyword == 'minItems' else 'less'}"
    if keyword == "type":
        words = wanted if isinstance(wanted, str) else " or ".join(wanted)
    elif keyword == "enum":
        words = " or ".join(_brief(item) for item in wanted)
    else:
        words = _WANTED[keyword].format(wanted) if keyword in _WANTED else _brief(wanted)
    return f"{place or 'the document'} is {_brief(value)}, wanted {words}"


def _joined(path: Sequence[str | int]) -> str:
    """`bytes.rows[0]`."""
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path if key != "").removeprefix(".")


def _brief(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _leaves(document: Any, path: str | Path) -> Iterator[tuple[str, Any]]:
    """Every value without children, with its place (`bytes.rows[0]`)."""
    left: list[tuple[str, Any, int]] = [("", document, 0)]
    while left:
        place, value, depth = left.pop()
        if depth > DEEPEST:
            raise FileError(f"{path}: not a JSON document of at most {DEEPEST} levels")
        if isinstance(value, dict):
            left += [(f"{place}.{name}" if place else name, item, depth + 1) for name, item in value.items()]
        elif isinstance(value, list):
            left += [(f"{place}[{index}]", item, depth + 1) for index, item in enumerate(value)]
        else:
            yield place, value
