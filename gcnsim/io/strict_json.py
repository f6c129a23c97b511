"""JSON as records hold it: finite numbers that arithmetic can take, nested no deeper than a record is."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from gcnsim.errors import FileError

DEEPEST: Final = 32
"""Levels of nesting; records have seven."""

LARGEST: Final = 1e30
"""Largest number, either way: products of a few such sizes stay within the range of a double."""


def parse_json(text: str, path: str | Path) -> Any:
    """The document in `text`, which stood in the file at `path`.

    Raises FileError, naming the file and the place, for what is no JSON, and for NaN, infinite and absurd numbers.
    """
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise FileError(f"{path}: not a JSON document") from None
    for place, value in _leaves(document, path):
        number = isinstance(value, int | float)
        # Comparison is exact for whole numbers of any length, where a conversion would overflow.
        if number and not (-LARGEST <= value <= LARGEST):
            shown = str(value) if isinstance(value, float) else f"a whole number of {len(str(abs(value)))} digits"
            raise FileError(f"{path}: {place or 'the document'} is {shown}; allowed: finite numbers up to {LARGEST:g}")
    return document


def canonical(document: Any) -> str:
    """`document` as text that is the same however its file was laid out."""
    return json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _leaves(document: Any, path: str | Path) -> Iterator[tuple[str, Any]]:
    """Every value that holds no others, with its place (`bytes.rows[0]`)."""
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
