"""Write the JSON schemas of answers: `python -m studies.compose_schemas`.

What several schemas define alike stands once, in `studies/schemas/shared.json`; each schema's own part beside it. The
files that ship (`gcnsim/data/*.schema.json`) hold all that they refer to, so that each validates alone. `"$extends":
NAME` in a definition stands for that shared definition, with its own required keys and properties besides.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[1]
SOURCES: Final = ROOT / "studies" / "schemas"
SCHEMAS: Final = ("what-if", "recommend", "result")
EXTENDS: Final = "$extends"


def composed(name: str) -> str:
    """The text of the schema `name`, complete."""
    shared: dict[str, Any] = json.loads((SOURCES / "shared.json").read_text(encoding="utf-8"))["$defs"]
    schema: dict[str, Any] = json.loads((SOURCES / f"{name}.json").read_text(encoding="utf-8"))
    own = {key: _extended(value, shared) for key, value in schema["$defs"].items()}
    known = shared | own
    needed: dict[str, Any] = {}
    waiting = [*_references(schema["properties"]), *own]
    while waiting:
        key = waiting.pop()
        if key not in needed:
            needed[key] = known[key]
            waiting += _references(known[key])
    return json.dumps(schema | {"$defs": dict(sorted(needed.items()))}, indent=2) + "\n"


def _extended(definition: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """A definition with what it extends."""
    if EXTENDS not in definition:
        return dict(definition)
    base: Mapping[str, Any] = shared[definition[EXTENDS]]
    own = {key: value for key, value in definition.items() if key != EXTENDS}
    required = [*base["required"], *own.get("required", [])]
    return {**base, **own, "required": required, "properties": base["properties"] | own.get("properties", {})}


def _references(part: object) -> Iterator[str]:
    """The definitions that a part of a schema refers to."""
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)


def main() -> None:
    """Write every schema into the package."""
    for name in SCHEMAS:
        path = ROOT / "gcnsim" / "data" / f"{name}.schema.json"
        path.write_text(composed(name), encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
