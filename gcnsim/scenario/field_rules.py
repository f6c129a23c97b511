"""Fields of a scenario by their path, `cluster.bandwidth`: what each may hold."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeAlias

from gcnsim.errors import ScenarioError, nearest
from gcnsim.fields import Rule, rule_of
from gcnsim.knobs import KNOBS
from gcnsim.scenario.load import METHOD, SECTIONS, paths, scalar_text
from gcnsim.scenario.method_section import default_of_key, rule_of_key, section_keys

Found: TypeAlias = tuple[Rule, bool]
"""The rule of a field, and whether null is allowed."""


def rule_at(path: str) -> Found:
    """What the field at `path` may hold; of a knob, by the first method that has it.

    Raises ScenarioError for a path that no scenario has, with the nearest one.
    """
    section, _, key = path.partition(".")
    if section == METHOD and (key in ("name", *KNOBS) or key in section_keys()):
        return rule_of_key(key)
    found = _entry(section, key)
    if found is None:
        raise ScenarioError(f"{path}: unknown field; {_hint(path)}")
    return found[0], found[2]


def default_at(path: str) -> str:
    """The default of the field at `path`, as a scenario writes it; empty if that is null."""
    section, _, key = path.partition(".")
    if section == METHOD:
        default = default_of_key(key)
        return "" if default is None else scalar_text(default)
    (item,) = (item for item in fields(SECTIONS[section]) if item.name == key)
    return "" if item.default is None else scalar_text(rule_at(path)[0].write(item.default))


def _entry(section: str, key: str) -> tuple[Rule, str, bool] | None:
    """The rule of a field of a section but `method`, its documentation, and whether null is allowed."""
    items = fields(SECTIONS[section]) if section in SECTIONS and section != METHOD else ()
    return next((rule_of(item) for item in items if item.name == key), None)


def _hint(path: str) -> str:
    """Fields that may be meant: of the section that `path` names, else those whose own name it is; no list of all."""
    section, _, key = path.rpartition(".")
    if section in SECTIONS:
        return nearest(path, [each for each in paths() if each.startswith(f"{section}.")])
    same = [each for each in paths() if each.partition(".")[2] == key]
    meant = f"did you mean {' or '.join(map(repr, same))}? " if same else ""
    return f"{meant}a field is SECTION.NAME, e.g. cluster.gpus; sections: {', '.join(SECTIONS)}"
