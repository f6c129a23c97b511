"""Fields of a scenario by their path, `cluster.bandwidth`: what each may hold."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeAlias

from gcnsim.errors import ScenarioError, nearest
from gcnsim.fields import Rule, rule_of
from gcnsim.scenario.load import METHOD, SECTIONS, paths
from gcnsim.scenario.method_section import rule_of_key

Found: TypeAlias = tuple[Rule, bool]
"""The rule of a field, and whether null is allowed."""


def rule_at(path: str) -> Found:
    """What the field at `path` may hold; of a knob, by the first method that has it.

    Raises ScenarioError for a path that no scenario has, with the nearest one.
    """
    section, _, key = path.partition(".")
    if path not in paths():
        raise ScenarioError(f"{path}: unknown field; {_hint(path)}")
    if section == METHOD:
        return rule_of_key(key)
    found = next(rule_of(item) for item in fields(SECTIONS[section]) if item.name == key)
    assert found is not None
    return found[0], found[2]


def _hint(path: str) -> str:
    """Fields that may be meant: of the section that `path` names, else those whose own name it is; no list of all."""
    section, _, key = path.rpartition(".")
    if section in SECTIONS:
        return nearest(path, [each for each in paths() if each.startswith(f"{section}.")])
    same = [each for each in paths() if each.partition(".")[2] == key]
    meant = f"did you mean {' or '.join(map(repr, same))}? " if same else ""
    return f"{meant}a field is SECTION.NAME, e.g. cluster.gpus; sections: {', '.join(SECTIONS)}"
