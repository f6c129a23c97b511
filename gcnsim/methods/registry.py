"""The registry: one line per method, and methods that other packages install.

A package offers a method through the entry point group `gcnsim.methods`: `my-method = my_package:MyMethod`, a subclass
of `gcnsim.methods.Method` (docs/new_method.md). Built-in names take precedence. An unusable method is refused if it is
requested by name, and `gcnsim doctor` lists it; all others work.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.spellings import known_name
from gcnsim.methods.method import OVERLAP, SHARED_KNOBS, Method
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import KNOBS, Knob, knob_of

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP: Final = "gcnsim.methods"

_BUILT_IN: Final[Mapping[str, str]] = MappingProxyType(
    {
        "full-graph": "full_graph:FullGraph",
        "pipegcn": "pipegcn:PipeGcn",
        "bns-gcn": "bns_gcn:BnsGcn",
        "psc-gcn": "psc_gcn:PscGcn",
        "pipegcn-g": "pipegcn:PipeGcnG",
        "pipegcn-f": "pipegcn:PipeGcnF",
        "pipegcn-gf": "pipegcn:PipeGcnGf",
        "cagnet-1d": "cagnet:Cagnet1d",
        "cagnet-1.5d": "cagnet:Cagnet15d",
        "sancus": "sancus:Sancus",
        "roc": "roc:Roc",
        "dgl": "dgl:Dgl",
        "pagraph": "pagraph:PaGraph",
        "distdgl": "distdgl:DistDgl",
        "graphsage": "graphsage:GraphSage",
        "graphsaint": "graphsaint:GraphSaint",
        "clustergcn": "clustergcn:ClusterGcn",
    }
)

DEFAULT: Final = "psc-gcn"
"""The method of a scenario without a method name."""

BASELINE: Final = "full-graph"
"""The baseline of comparisons."""

COMPARED: Final = (BASELINE, "pipegcn", "bns-gcn", DEFAULT)
"""The methods of a question without method names."""


@cache
def built_in() -> Mapping[str, type[Method]]:
    """The methods of this package by name, the synchronous baseline first."""
    return MappingProxyType({name: _imported(name) for name in _BUILT_IN})


@cache
def _imported(name: str) -> type[Method]:
    """Import one of them on first use, to keep the start fast."""
    module, _, kind = _BUILT_IN[name].partition(":")
    found: type[Method] = getattr(import_module(f"gcnsim.methods.{module}"), kind)
    return found


@cache
def every_method() -> Mapping[str, type[Method]]:
    """All methods by name: built-in ones, then usable ones of other packages in alphabetical order."""
    return MappingProxyType({**built_in(), **_others()})


def _others() -> dict[str, type[Method]]:
    """Those of other packages that can be loaded."""
    return {name: found for name, found in _offered().items() if not isinstance(found, str)}


def broken_methods() -> Mapping[str, str]:
    """Methods of other packages that cannot be used, by name, with the reason; they matter only if requested."""
    return {name: found for name, found in _offered().items() if isinstance(found, str)}


@cache
def _offered() -> Mapping[str, type[Method] | str]:
    """The methods that other packages offer, by name: the method, or why it is unusable."""
    from importlib.metadata import entry_points

    found: dict[str, type[Method] | str] = {}
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        if point.name not in _BUILT_IN:
            loaded = _load(point)
            where = f"method {point.name!r} of {point.value} (entry point group {GROUP})"
            found[point.name] = f"{where}: {loaded}" if isinstance(loaded, str) else loaded
    return found


def _load(entry: EntryPoint) -> type[Method] | str:
    """The method of another package, or why it is unusable."""
    try:
        kind = entry.load()
        if not (isinstance(kind, type) and issubclass(kind, Method)):
            return "is not a subclass of gcnsim.methods.Method"
        if getattr(kind, "name", None) != entry.name:
            return f"its name is {getattr(kind, 'name', None)!r}; both must be the same"
        kind()
        wrong = [
            field.name for field in fields(kind) if (knob := knob_of(field)) is not None and knob.name != field.name
        ]
    except Exception as error:
        return f"cannot be used: {type(error).__name__}: {error}"
    return f"its field {wrong[0]} is a knob of another name" if wrong else kind


def methods() -> tuple[str, ...]:
    """Names of all methods, the synchronous baseline first."""
    return (*_BUILT_IN, *_others())


def method_type(name: str, path: str = "method.name") -> type[Method]:
    """The method called `name`. Raises ScenarioError, starting with `path`, for an unknown one."""
    if name in _BUILT_IN:
        return _imported(name)
    found = every_method().get(known_name(name, every_method()) or name)
    if found is None and name in broken_methods():
        raise ScenarioError(f"{path}: {broken_methods()[name]}")
    if found is None:
        raise ScenarioError(f"{path}: unknown method {name!r}; {nearest(name, every_method())}")
    return found


def create_method(name: str, **knobs: Any) -> Method:
    """The method `name` with the given knobs and defaults for the others.

    A knob that it lacks may be given at its fixed value (`create_method("pipegcn", tau=1)`). Raises ScenarioError for
    an unknown method, an unknown knob, or a bad value.
    """
    kind = method_type(name)
    lacking = {knob: value for knob, value in knobs.items() if knob != OVERLAP and not kind.has(knob)}
    for knob, value in lacking.items():
        if knob not in SHARED_KNOBS:
            raise ScenarioError(f"method.{knob}: {name} has no {knob}; {_methods_with(knob, kind)}")
        stands = getattr(kind(), knob)
        if value != stands and not (isinstance(value, CacheSize) and value.empty):
            fact = f"{name} has no {knob} (it is {_shown(stands)})"
            raise ScenarioError(f"method.{knob}: {_shown(value)} is not allowed; {fact}; {_methods_with(knob, kind)}")
    return kind(**{knob: value for knob, value in knobs.items() if knob not in lacking})


def has_knob(name: str, knob: str) -> bool:
    """Whether the method `name` has this knob. Raises ScenarioError for an unknown method."""
    return method_type(name).has(knob)


def is_method(name: str) -> bool:
    """Whether there is a method of this name, in any spelling."""
    return name in _BUILT_IN or known_name(name, every_method()) is not None


def named(which: Callable[[type[Method]], bool]) -> list[str]:
    """Names of the methods for which `which` is true, in the registry's order."""
    return [name for name, kind in every_method().items() if which(kind)]


@cache
def all_knobs() -> Mapping[str, Knob]:
    """Every knob of any method by name, as the first method with it declares it: the common ones first."""
    found = dict(KNOBS)
    for kind in every_method().values():
        for knob in kind.knobs():
            found.setdefault(knob.name, knob)
    return MappingProxyType(found)


def _methods_with(knob: str, requested: type[Method]) -> str:
    """The methods with `knob`, and the requested knobs that a method has."""
    own, having = ", ".join(item.name for item in requested.knobs()) or "none", named(lambda kind: kind.has(knob))
    return (
        f"{'methods with it: ' + ', '.join(having) if having else 'no method has it'}; knobs of {requested.name}: {own}"
    )


def _shown(value: Any) -> str:
    return value.describe() if isinstance(value, CacheSize) else f"{value:g}"
