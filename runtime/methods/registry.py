"""From a method's name to its class: `psc-gcn` is in `psc_gcn.py`, a variant such as `pipegcn-gf` in `pipegcn.py`."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from gcnsim.errors import ScenarioError, nearest
from gcnsim.knobs import TRAINED_KNOBS
from runtime.methods.method import Method


def method_class(name: str) -> type[Method]:
    """The class that trains the method `name`: `TRAINER` of its module. Raises ScenarioError for an unknown name."""
    if name not in TRAINED_KNOBS:
        raise ScenarioError(f"--method: unknown method {name!r}; {nearest(name, TRAINED_KNOBS)}")
    words = name.split("-")
    for count in range(len(words), 0, -1):
        module = f"runtime.methods.{'_'.join(words[:count])}"
        if find_spec(module) is not None:
            trainer: type[Method] = import_module(module).TRAINER
            return trainer
    raise AssertionError(f"{name} has knobs but no file in runtime/methods")
