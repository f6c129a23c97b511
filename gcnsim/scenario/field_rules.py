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
        raise ScenarioError(f"{path}: unknown field; {nearest(path, paths())}")
    if section == METHOD:
        return rule_of_key(key)
    found = next(rule_of(item) for item in fields(SECTIONS[section]) if item.name == key)
    assert found is not None
    return found[0], found[2]
