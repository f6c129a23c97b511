"""A method is known to its own file: nothing else in the runtime tests its name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import EPSILON, STATIC_CACHE
from runtime.methods import METHODS, method_of, method_type

ROOT = Path(__file__).resolve().parents[3]
ALSO_OTHERS = {"dgl", "graphsage"}
"""Names that are something else too: DGL is a library, GraphSAGE a model."""

OPTIONS = "runtime/options.py"
"""Says which method is trained where none is asked for."""


def method_names(path: Path) -> Iterator[str]:
    """The names of methods that a file has as strings of their own, once for each time."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and node.value in METHODS:
            yield str(node.value)


def test_only_its_own_file_names_a_method() -> None:
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "runtime").rglob("*.py")):
        for name in method_names(path):
            found.setdefault(name, []).append(path.relative_to(ROOT).as_posix())
    homes = {name: Path(ROOT, *kind.__module__.split(".")) for name, kind in METHODS.items()}
    files = {name: home / "__init__.py" if home.is_dir() else home.with_suffix(".py") for name, home in homes.items()}
    wanted = {name: [path.relative_to(ROOT).as_posix()] for name, path in files.items()}
    wanted["full-graph"].append(OPTIONS)
    assert all(found[name].count(wanted[name][0]) == 1 for name in ALSO_OTHERS & METHODS.keys())
    assert {name: at for name, at in found.items() if name not in ALSO_OTHERS} == {
        name: at for name, at in wanted.items() if name not in ALSO_OTHERS
    }


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_frozen_and_stands_at_its_defaults(name: str) -> None:
    method = method_of(name, method_type(name).settled({}))
    assert method == METHODS[name]()
    for knob in method.knobs():
        value = getattr(method, knob.name)
        with pytest.raises(FrozenInstanceError):
            setattr(method, knob.name, value)
        if knob.kind == "size":
            assert value == (CacheSize(auto=True) if knob == STATIC_CACHE else CacheSize.none())
        elif knob.kind == "list":
            assert value is None
        else:
            knob.rule.check(value, knob.name)


def test_a_value_out_of_range_and_an_unknown_knob_are_refused() -> None:
    assert EPSILON in method_type("psc-gcn").knobs()
    with pytest.raises(ScenarioError, match=r"^--epsilon: 1.5 is not allowed"):
        method_type("psc-gcn").settled({"epsilon": 1.5})
    with pytest.raises(ScenarioError, match=r"^--rate: pipegcn has no rate; its knobs: --cold-start$"):
        method_type("pipegcn").settled({"rate": 0.5})
    with pytest.raises(ScenarioError, match=r"^--method: unknown method 'psc-gnc'; did you mean 'psc-gcn'"):
        method_type("psc-gnc")
