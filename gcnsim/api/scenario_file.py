"""A scenario file as the base of a what-if: options replace its fields, and a note names each replaced field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gcnsim.errors import ScenarioError
from gcnsim.fields import denied, unknown_schema
from gcnsim.io.yaml_files import read_yaml
from gcnsim.scenario import SCHEMA, SOURCES, of_host, rule_at


def read_base(given: str | Path | Mapping[str, Any] | None) -> dict[str, Any]:
    """The scenario that a what-if starts from, as plain data; empty if none was given.

    Raises FileError, and ScenarioError for anything that is not a scenario.
    """
    if given is None:
        return {}
    found = dict(given) if isinstance(given, Mapping) else read_yaml(given)
    where = "scenario" if isinstance(given, Mapping) else given
    if not isinstance(found, dict):
        raise ScenarioError(f"{where}: {denied(found)} a scenario; it starts with schema: {SCHEMA}")
    if found.get("schema") != SCHEMA:
        raise ScenarioError(f"{where}: {unknown_schema(found)}; write schema: {SCHEMA}")
    for key, value in found.items():
        if key not in ("schema", "name", "faults") and not isinstance(value, dict):
            raise ScenarioError(f"{where}: {key}: {denied(value)} a section")
    return {key: dict(value) if isinstance(value, dict) else value for key, value in found.items()}


def put_before(base: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """The scenario `base`, whose fields the options (by section and field) replace."""
    found = {**base}
    for section, fields in options.items():
        own = dict(base.get(section, {}))
        for key in fields:
            for name in _with(section, key, fields[key]):
                own.pop(name, None)
        found[section] = {**own, **fields}
    return found


def replaced(base: Mapping[str, Any], options: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """A note for each field of `base` that an option changes."""
    for section, fields in options.items():
        own = base.get(section, {})
        for key, value in fields.items():
            gone = [name for name in _with(section, key, value) if own.get(name) is not None]
            lost = [name for name in gone if name != key or not _same(f"{section}.{key}", own[name], value)]
            for name in lost:
                yield f"--{key.replace('_', '-')} {value} replaces {section}.{name}: {own[name]} of the scenario"


def _with(section: str, key: str, value: Any) -> tuple[str, ...]:
    """The fields that an option replaces: another source, and what a host has of its own."""
    if section == "workload" and key in SOURCES:
        return SOURCES if key == "nodes" else (*SOURCES, "edges")
    if section == "cluster" and key == "host":
        return ("host", *of_host(value))
    if section == "cluster" and key == "device":
        return ("device", "devices")
    return (key,)


def _same(path: str, one: object, other: object) -> bool:
    """Whether a field means the same, however it is written."""
    rule, _ = rule_at(path)
    return bool(rule.read(one, path) == rule.read(other, path))
