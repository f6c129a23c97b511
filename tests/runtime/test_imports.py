"""No circle between the files of the runtime; contracts say only which rooms may import which."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def modules(package: str) -> dict[str, Path]:
    """Every file of `package` by the name it is imported by."""
    paths = (ROOT / package).rglob("*.py")
    return {".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def imported(tree: ast.AST) -> Iterator[str]:
    """What a file imports when it runs, functions included: `a.b` and `a.b.c` for `from a.b import c`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from (node.module, *(f"{node.module}.{alias.name}" for alias in node.names))
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        yield from imported(node)


def circle(imports: dict[str, set[str]]) -> list[str]:
    """The modules of one circle, the first one again at its end; none where there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_circle_between_files() -> None:
    paths = modules("runtime")
    assert len(paths) > 100
    found = {name: set(imported(ast.parse(path.read_text(encoding="utf-8")))) for name, path in paths.items()}
    # A package's own file only names what its files hold: it is no step of its own.
    rooms = {name for name, path in paths.items() if path.name == "__init__.py"}
    exact = {name: {text for text in named if text in paths and text != name} for name, named in found.items()}
    through = {
        name: {item for item in named if not (item in rooms and any(other.startswith(f"{item}.") for other in named))}
        for name, named in exact.items()
    }
    assert circle(through) == []


@pytest.mark.parametrize(("imports", "found"), [({"a": {"b"}, "b": {"a"}}, 3), ({"a": {"b"}, "b": set()}, 0)])
def test_a_circle_is_found(imports: dict[str, set[str]], found: int) -> None:
    assert len(circle(imports)) == found
