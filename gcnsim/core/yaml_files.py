"""YAML documents: safe, small, and unambiguous.

Of YAML's plain scalars only null, true/false, decimal integers and floats are typed (the JSON core, so that `1:30`,
`on` and dates stay text). A duplicate key is refused instead of silently overwritten. Objects, code, tags (`!!int`) and
aliases (`*name`) are refused; a few lines of aliases could expand to a million values.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from gcnsim.core.errors import FileError

if TYPE_CHECKING:
    _Base = yaml.SafeLoader
else:
    _Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

LIMIT = 1 << 20
"""The most bytes: gcnsim's documents are a page or two; larger files were given by mistake."""

DEPTH = 16
"""The most levels of nesting."""

DIGITS = 30
"""The most digits of a whole number."""


class _Loader(_Base):
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012 - PyYAML's own table

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[str] = set()
        for key, _ in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            if name is None:
                raise yaml.MarkedYAMLError(problem="a key must be a plain word", problem_mark=key.start_mark)
            if name in seen:
                raise yaml.MarkedYAMLError(problem=f"key {name!r} is given twice", problem_mark=key.start_mark)
            seen.add(name)
        return {str(key.value): self.construct_object(value, deep=True) for key, value in node.value}


def _mapping(loader: _Loader, node: yaml.MappingNode) -> dict[Any, Any]:
    return loader.construct_mapping(node)


def _whole(loader: _Loader, node: yaml.ScalarNode) -> int:
    digits = len(node.value.lstrip("+-"))
    if digits > DIGITS:
        problem = f"a whole number of {digits} digits; allowed: at most {DIGITS}"
        raise yaml.MarkedYAMLError(problem=problem, problem_mark=node.start_mark)
    return int(node.value)


for _tag, _pattern, _first in (
    ("null", r"~|null|", ["~", "n", ""]),
    ("bool", r"true|false", ["t", "f"]),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", list("-+0123456789")),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", list("-+.0123456789")),
    ("float", r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)", list("-+.")),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)
_Loader.add_constructor("tag:yaml.org,2002:map", _mapping)
_Loader.add_constructor("tag:yaml.org,2002:int", _whole)


def parse_yaml(text: str, source: str) -> Any:
    """The document in `text`: mappings, lists, text, numbers, booleans, null.

    Raises FileError naming `source` (and the line) when it is not one YAML document, or gives a key twice.
    """
    try:
        _refuse_events(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark else source
        raise FileError(f"{where}: not a valid YAML document: {' '.join(str(error.problem).split())}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise FileError(f"{source}: not a valid YAML document: {' '.join(str(error).split())}") from None


def _refuse_events(text: str) -> None:
    """Refuse nesting (the loader recurses in C, where too deep a document ends the process), aliases and tags.

    Reading events does not recurse, and expands nothing.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > DEPTH:
            raise yaml.YAMLError(f"nested more than {DEPTH} levels deep")
        tag = getattr(event, "tag", None)
        problem = None if tag is None else f"a tag ({tag[:40]!r}); write the value alone"
        if isinstance(event, yaml.AliasEvent):
            problem = f"an alias (*{str(event.anchor)[:40]}); write out what it stands for"
        if problem is not None:
            mark: Any = event.start_mark
            raise yaml.MarkedYAMLError(problem=problem, problem_mark=mark)


def read_yaml(path: str | Path) -> Any:
    """The document in the file at `path`. Raises FileError: missing, unreadable, too large, not UTF-8, not YAML."""
    source = Path(path)
    try:
        with open(source, "rb") as file:
            data = file.read(LIMIT + 1)
    except OSError as error:
        raise FileError(f"{source}: cannot be read: {error.strerror}") from None
    if len(data) > LIMIT:
        raise FileError(f"{source}: larger than {LIMIT} bytes, so not one of our documents")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise FileError(f"{source}: not UTF-8 text (byte {error.start})") from None
    return parse_yaml(text, str(source))
