"""Read and write the section `method` of a scenario: a method's name and its knobs.

It also describes a method and its knobs in words.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.fields import Choice, FieldRule, rule_of
from gcnsim.core.units import FRACTION
from gcnsim.methods import DEFAULT, SHARED_KNOBS, Method, all_knobs, create_method, every_method, method_type, methods
from gcnsim.methods.method import NO_OVERLAP, OVERLAP
from gcnsim.workload.knobs import KNOBS, Knob, knob_of

FIRST: Final = (*SHARED_KNOBS[:3], "cache_policy")
"""Knobs that a scenario writes first."""

_NAME: Final = Choice("a method", methods)


def read_method(raw: Mapping[str, object]) -> Method:
    """Parse the method of a section. Raises ScenarioError or UnitError, starting with the path."""
    name = _NAME.read(raw["name"], "method.name") if "name" in raw else DEFAULT
    values = {key: read_value(key, text, name) for key, text in raw.items() if key != "name"}
    return create_method(name, **values)


def from_knobs(name: str, knobs: Mapping[str, Any]) -> Method:
    """The method with knobs as a training run records them. Raises ScenarioError or UnitError."""
    kind = method_type(name)
    units = {knob.name: knob.unit for knob in kind.knobs()}
    shares = {key: isinstance(value, float) and units.get(key) == "%" for key, value in knobs.items()}
    values = {key: FRACTION.exact(value) if shares[key] else value for key, value in knobs.items()}
    return read_method({"name": name, **values})


def read_value(key: str, text: object, name: str | None = None) -> Any:
    """Parse the value of a knob by the rule of method `name`, otherwise of the first method that has it."""
    path = f"method.{key}"
    own = _fields(method_type(name or DEFAULT))
    if key not in own and key not in all_knobs():
        known = section_keys() if name is None else ["name", *own]
        raise ScenarioError(f"{path}: unknown key; {nearest(str(key), known)}")
    rule, optional = own.get(key) or _of_knob(all_knobs()[key])
    return None if text is None and optional else rule.read(text, path)


def rule_of_key(key: str) -> tuple[FieldRule, bool]:
    """The rule of a key of the section (for a knob, of the first method that has it), and whether null is allowed."""
    if key == "name":
        return _NAME, False
    return _fields(method_type(DEFAULT))[key] if key == OVERLAP else _of_knob(_knob(key))


def default_of_key(key: str) -> object:
    """The value that a scenario writes for a key that was not given."""
    return DEFAULT if key == "name" else _default(_knob(key))


def _knob(key: str) -> Knob:
    """The declaration of a knob in the first method that has it; common knobs need no search over methods."""
    return KNOBS.get(key) or all_knobs()[key]


def _of_knob(knob: Knob) -> tuple[FieldRule, bool]:
    return knob.rule, knob.kind in ("file", "list")


def _fields(kind: type[Method]) -> dict[str, tuple[FieldRule, bool]]:
    """The rule of each field of a method, and whether null is allowed."""
    rules = ((item.name, rule_of(item)) for item in fields(kind))
    return {name: (rule[0], rule[2]) for name, rule in rules if rule is not None}


def section_keys() -> list[str]:
    """The keys that the section may have."""
    return ["name", *all_knobs(), OVERLAP]


def write_method(method: Method) -> dict[str, object]:
    """The section of a method: its name, its knobs, its overlap."""
    return {"name": method.name, **written_knobs(method), OVERLAP: method.overlap}


def written_knobs(method: Method) -> dict[str, object]:
    """A method's knobs as a scenario writes them, the common ones first."""
    values = method.values()
    names = [*(name for name in FIRST if name in values), *(name for name in values if name not in FIRST)]
    rules = _fields(type(method))
    return {name: None if values[name] is None else rules[name][0].write(values[name]) for name in names}


def describe_method() -> Iterator[tuple[str, str, str, object, str]]:
    """Rows (key, unit, allowed, default as written, documentation) of every key that the section may have."""
    yield "name", "", _NAME.allowed, DEFAULT, "training method"
    for name, knob in all_knobs().items():
        having = [kind for kind in every_method().values() if kind.has(name)]
        rule, optional = _of_knob(knob)
        standard = knob.standard
        allowed = f"{rule.allowed}, or null" if optional else rule.allowed
        default = None if standard is None else rule.write(standard)
        yield name, rule.unit, allowed, default, f"{knob.help}; {_named(having, name)}"
    (overlap,) = (item for item in fields(Method) if item.name == OVERLAP)
    overlap_rule = rule_of(overlap)
    assert overlap_rule is not None
    yield OVERLAP, "", overlap_rule[0].allowed, NO_OVERLAP, overlap_rule[1]


def _named(having: list[type[Method]], knob: str) -> str:
    """The methods with a knob, each with its default if it differs from the first one's."""
    shown = []
    for kind in having:
        own, first = _declared(kind, knob), _declared(having[0], knob)
        shown.append(kind.name if own.default == first.default else f"{kind.name} ({_default(own)})")
    return ", ".join(shown)


def _declared(kind: type[Method], knob: str) -> Knob:
    return next(found for item in fields(kind) if (found := knob_of(item)) is not None and found.name == knob)


def _default(knob: Knob) -> object:
    return None if knob.standard is None else knob.rule.write(knob.standard)


def setting_text(method: Method) -> str:
    """A method and its knobs in words: `psc-gcn with tau 1, epsilon 0.1 and a cache of 30 %`."""
    knobs = []
    if method.has("tau"):
        knobs += [f"tau {method.tau}", f"epsilon {method.epsilon:g}"]
    if method.has("rate"):
        knobs.append(f"rate {method.rate:g}")
    if method.has("cache") and not method.cache.empty:
        knobs.append("a cache of " + method.cache.describe().replace("%", " %"))
    knobs += filter(None, [knob_text(method)])
    if not knobs:
        return method.name
    return f"{method.name} with {', '.join(knobs[:-1])}{' and ' if len(knobs) > 1 else ''}{knobs[-1]}"


def knob_text(method: Method, said: Mapping[str, str] = MappingProxyType({})) -> str:
    """The knobs without a column that differ from the method's default: `batch 1000`; and those `said`, as written."""
    values, document = method.values(), {**written_knobs(method), **said}
    own = [
        knob.name
        for knob in method.knobs()
        if knob.name not in KNOBS and (knob.name in said or values[knob.name] != knob.standard)
    ]
    moved = [f"{name} {document[name]}" for name in own]
    return ", ".join([*moved, *([] if method.overlap == NO_OVERLAP else [f"overlap {method.overlap}"])])
