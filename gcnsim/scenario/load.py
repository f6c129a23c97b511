"""Load scenarios: YAML in, a validated `Scenario` out, and back without loss.

A scenario starts with `schema: gcnsim.scenario/1`. An unknown key, a missing unit or a value out of range is refused
with its path; nothing is guessed. File names in a scenario are relative to the working directory, as on a command line.

Two steps use only the fields that a file or an option gives, before defaults fill in the others:

- fields of a cluster that contradict each other are refused if both are given;

- a name sets fields that are not given. An instance type sets its GPUs and NIC, a network its kind.

Fields are addressed by their path, such as `cluster.bandwidth`, and `rule_at` returns the rule of a field.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import MISSING, fields
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, TypeAlias

from gcnsim.core.errors import FileError, ScenarioError, UnitError, nearest
from gcnsim.core.fields import FieldRule, denied, read_fields, rule_of, unknown_schema
from gcnsim.core.yaml_files import parse_yaml, read_yaml
from gcnsim.methods import Method, all_knobs
from gcnsim.scenario.brought import of_host, with_brought
from gcnsim.scenario.faults import Fault, read_faults, write_fault
from gcnsim.scenario.measured import fill_measured
from gcnsim.scenario.method_section import (
    default_of_key,
    describe_method,
    read_method,
    read_value,
    rule_of_key,
    section_keys,
    write_method,
)
from gcnsim.scenario.partition import METIS_OPTIONS, PartitionSpec
from gcnsim.scenario.specs import (
    SOURCES,
    TOPOLOGY,
    ClusterSpec,
    RunSpec,
    Scenario,
    WorkloadSpec,
)
from gcnsim.workload import AGGREGATOR, wrong_aggregator
from gcnsim.workload.knobs import KNOBS

FILE_FIELDS: Final = (
    "cluster.calibration",
    "cluster.measured_compute",
    "workload.graph",
    "workload.trace",
    "workload.profile",
    "partition.file",
    "method.norms",
)
"""Fields of a scenario that name a file or a folder."""


SCHEMA: Final = "gcnsim.scenario/1"
KEYS: Final = ("schema", "name", "faults")
"""Keys that are not sections."""

SECTIONS: Final[Mapping[str, type]] = {
    "cluster": ClusterSpec,
    "workload": WorkloadSpec,
    "partition": PartitionSpec,
    "method": Method,
    "run": RunSpec,
}
"""The sections; what `method` may hold depends on its name (`method_section`)."""

METHOD: Final = "method"

SELDOM: Final = (
    "train_fraction", "profile", "training_subgraph", "ids", "ends", "heads_joined", "keep_inputs", "dropout",
    "dropout_order", "nodes", "edges",
)  # fmt: skip
"""Fields of `workload` that are written only if the user set them."""


def load_scenario(path: str | Path, overrides: Sequence[str] = ()) -> Scenario:
    """Load the scenario in the file at `path` and apply `overrides` (`cluster.latency=20us`).

    Raises FileError (unreadable, not YAML, a duplicate key), ScenarioError or UnitError (a bad field, with its path).
    """
    return from_mapping(read_yaml(path), str(path), overrides)


def from_mapping(mapping: object, source: str, overrides: Sequence[str] = ()) -> Scenario:
    """Parse the scenario in `mapping` (from YAML). `source` starts the message if the schema is not ours.

    Raises ScenarioError or UnitError.
    """
    if not isinstance(mapping, dict):
        raise ScenarioError(f"{source}: {denied(mapping)} a scenario; it starts with schema: {SCHEMA}")
    if mapping.get("schema") != SCHEMA:
        raise ScenarioError(f"{source}: {unknown_schema(mapping)}; write schema: {SCHEMA}")
    raw = deepcopy(mapping)
    for override in overrides:
        put_over(raw, override)
    for key, value in raw.items():
        if key not in SECTIONS and key not in KEYS:
            raise ScenarioError(f"{key}: unknown key; {nearest(str(key), [*KEYS, *SECTIONS])}")
        if key in SECTIONS and not isinstance(value, dict):
            raise ScenarioError(f"{key}: {denied(value)} a section; keys: {', '.join(_keys_of(key))}")
    name = raw.get("name", "scenario")
    if not isinstance(name, str) or not name.isprintable() or not 1 <= len(name) <= 200:
        raise ScenarioError(f"name: {denied(name)} a name (one line of text)")
    workload = raw.get("workload", {})
    if wrong := wrong_aggregator(workload):
        raise ScenarioError(f"workload.{wrong}")
    workload.pop(AGGREGATOR, None)
    plain = {section: kind for section, kind in SECTIONS.items() if section != METHOD}
    raw["cluster"] = with_brought(raw.get("cluster", {}))
    fill_measured(raw)
    raw["cluster"] = with_brought(raw["cluster"])  # a file of measured compute times may have named the device
    sections = {section: _read_section(kind, raw.get(section, {}), section) for section, kind in plain.items()}
    return _build(name, sections, read_method(raw.get(METHOD, {})), read_faults(raw.get("faults", [])))


def compared(path: str, values: str) -> str:
    """What compares several values of the field at `path`, where one is allowed."""
    return f"gcnsim sweep --axis {path}={values} --out FOLDER compares several"


def _read_section(kind: type, raw: Mapping[str, object], section: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key, text in raw.items():
        try:
            values |= read_fields(kind, {key: text}, section)
        except (ScenarioError, UnitError) as error:
            if isinstance(text, str) and "," in text:
                raise type(error)(f"{error}; {compared(f'{section}.{key}', text)}") from None
            raise
    return values


def _build(name: str, sections: Mapping[str, dict[str, Any]], method: Method, faults: tuple[Fault, ...]) -> Scenario:
    cluster, workload = sections["cluster"], sections["workload"]
    refuse_contradictions(cluster)
    if any(workload.get(source) is not None for source in SOURCES if source != "dataset"):
        workload = {"dataset": None} | workload
    return Scenario(
        name=name,
        cluster=ClusterSpec(**cluster),
        workload=WorkloadSpec(**workload),
        partition=PartitionSpec(**sections["partition"]),
        method=method,
        run=RunSpec(**sections["run"]),
        faults=faults,
    )


def to_mapping(scenario: Scenario) -> dict[str, Any]:
    """`scenario` as plain text and numbers with units; `from_mapping` restores it."""
    mapping: dict[str, Any] = {"schema": SCHEMA, "name": scenario.name}
    for section in SECTIONS:
        spec = getattr(scenario, section)
        mapping[section] = write_method(spec) if section == METHOD else _write_spec(spec)
    if scenario.faults:
        mapping["faults"] = [write_fault(fault) for fault in scenario.faults]
    return mapping


def _write_spec(spec: Any) -> dict[str, object]:
    return {
        item.name: None if value is None else rule[0].write(value)
        for item in fields(spec)
        if (rule := rule_of(item)) is not None and _written(spec, item.name)
        for value in [getattr(spec, item.name)]
    }


def read_knob(text: str) -> tuple[str, tuple[Any, ...]]:
    """Parse `method.KNOB=VALUE` into the knob and its value; numbers and choices may list several, separated by commas.

    Raises ScenarioError for an unknown knob or a bad value.
    """
    raw: dict[str, Any] = {}
    put_over(raw, text)
    ((name, written),) = raw[METHOD].items()
    several = isinstance(written, str) and name in all_knobs() and all_knobs()[name].kind in ("int", "real", "choice")
    values = [parse_yaml(word, f"--set method.{name}") for word in written.split(",")] if several else [written]
    return name, tuple(dict.fromkeys(read_value(name, value) for value in values))


def scenario_hash(scenario: Scenario) -> str:
    """SHA-256 (hex) of a scenario without its name: equal for equal questions in any notation."""
    mapping = to_mapping(scenario)
    del mapping["name"]
    mapping["cluster"]["gpus_per_server"] = scenario.cluster.gpus_per_server
    return hashlib.sha256(json.dumps(mapping, sort_keys=True, allow_nan=False).encode()).hexdigest()


@lru_cache(maxsize=100_000)
def _section_text(section: str, spec: Any) -> str:
    mapping = write_method(spec) if section == METHOD else _write_spec(spec)
    if section == "cluster":
        mapping["gpus_per_server"] = spec.gpus_per_server
    return json.dumps(mapping, sort_keys=True, allow_nan=False)


def section_text(scenario: Scenario, section: str) -> str:
    """The text of a section, or of `faults`, that `scenario_hash` uses; empty without faults."""
    if section != "faults":
        return _section_text(section, getattr(scenario, section))
    faults = [write_fault(fault) for fault in scenario.faults]
    return json.dumps(faults, sort_keys=True, allow_nan=False) if faults else ""


def describe_schema() -> list[tuple[str, str, str, str, str]]:
    """Rows (path, unit, allowed, default, documentation) of every field of a scenario."""
    rows = []
    for section, kind in SECTIONS.items():
        if section == METHOD:
            rows += [
                (f"method.{key}", unit, allowed, scalar_text(value), doc)
                for key, unit, allowed, value, doc in describe_method()
            ]
            continue
        for item in fields(kind):
            field_rule = rule_of(item)
            if field_rule is None:
                continue
            rule, doc, optional = field_rule
            default = None if item.default is MISSING else item.default
            written = None if default is None else rule.write(default)
            allowed = f"{rule.allowed}, or null" if optional else rule.allowed
            rows.append((f"{section}.{item.name}", rule.unit, allowed, scalar_text(written), doc))
    return rows


def scalar_text(written: object) -> str:
    """Format a default in scenario notation."""
    return json.dumps(written) if written is None or isinstance(written, bool) else str(written)


def _written(spec: Any, name: str) -> bool:
    """Omit fields that were not set."""
    if isinstance(spec, ClusterSpec) and name == "gpus_per_server":
        # For an instance it is always written, because the default differs from the instance's value.
        return name in of_host(spec.host) or spec.gpus_per_server != ClusterSpec().gpus_per_server
    if isinstance(spec, ClusterSpec) and name in TOPOLOGY:
        return name in spec.besides
    if isinstance(spec, ClusterSpec) and name == "device":
        return spec.devices is None
    if isinstance(spec, WorkloadSpec) and name in SELDOM:
        return bool(getattr(spec, name) != getattr(WorkloadSpec(), name))
    if isinstance(spec, RunSpec) and name == "fidelity":
        return spec.fidelity != RunSpec().fidelity
    if isinstance(spec, PartitionSpec) and name in METIS_OPTIONS:
        return name in spec.besides
    if isinstance(spec, PartitionSpec) and name == "placement":
        return spec.placement is not None
    if isinstance(spec, PartitionSpec) and name in ("statistics", "parts"):
        return spec.statistics != PartitionSpec().statistics
    return True


def put_over(raw: dict[str, Any], text: str) -> None:
    """Set `PATH=VALUE` in `raw`; VALUE is parsed as a YAML scalar."""
    path, equals, value = text.partition("=")
    path = path.strip()
    if not equals:
        raise ScenarioError(f"--set {text}: write PATH=VALUE, e.g. cluster.latency=20us")
    try:
        scalar = parse_yaml(value, f"--set {path}")
    except FileError as error:
        raise ScenarioError(str(error)) from None
    if isinstance(scalar, dict | list):
        raise ScenarioError(f"--set {path}: {denied(scalar)} one value")
    section, dot, key = path.partition(".")
    if path == "name":
        raw["name"] = scalar
        return
    if section not in SECTIONS or not dot:
        raise ScenarioError(f"--set {path}: unknown path; {nearest(path, paths())}")
    if key not in _keys_of(section):
        raise ScenarioError(f"--set {path}: unknown path; {nearest(key, _keys_of(section))}")
    inner = raw.setdefault(section, {})
    if isinstance(inner, dict):
        inner[key] = scalar


def _keys_of(section: str) -> list[str]:
    if section == METHOD:
        return section_keys()
    return [item.name for item in fields(SECTIONS[section]) if rule_of(item) is not None]


def paths() -> list[str]:
    """Every field of a scenario, by its path."""
    return [f"{section}.{key}" for section in SECTIONS for key in _keys_of(section)]


def refuse_contradictions(raw: Mapping[str, Any]) -> None:
    """Raise ScenarioError if two fields of `cluster` contradict each other. raw: the written fields by name."""
    devices, one = raw.get("devices"), raw.get("device")
    if devices is not None and one is not None and one != devices[0]:
        raise ScenarioError(
            f"cluster.device: {one} is not the first of cluster.devices ({','.join(devices)}), which name the device "
            f"of every server; allowed with them: {devices[0]}, or none"
        )
    if raw.get("gpudirect") and raw.get("transport") == "staged":
        raise ScenarioError(
            "cluster.transport: staged is not allowed with cluster.gpudirect: true, which bypasses host memory; "
            "allowed: direct, or none"
        )


Found: TypeAlias = tuple[FieldRule, bool]
"""The rule of a field, and whether null is allowed."""


def rule_at(path: str) -> Found:
    """The rule of the field at `path`; for a knob, the rule of the first method that has it.

    Raises ScenarioError for an unknown path, with the closest one.
    """
    section, _, key = path.partition(".")
    if section == METHOD and (key in ("name", *KNOBS) or key in section_keys()):
        return rule_of_key(key)
    entry = _entry(section, key)
    if entry is None:
        raise ScenarioError(f"{path}: unknown field; {_hint(path)}")
    return entry[0], entry[2]


def default_at(path: str) -> str:
    """The default of the field at `path` in scenario notation; empty if that is null."""
    section, _, key = path.partition(".")
    if section == METHOD:
        default = default_of_key(key)
        return "" if default is None else scalar_text(default)
    (item,) = (item for item in fields(SECTIONS[section]) if item.name == key)
    return "" if item.default is None else scalar_text(rule_at(path)[0].write(item.default))


def _entry(section: str, key: str) -> tuple[FieldRule, str, bool] | None:
    """The rule, documentation and nullability of a field of a section other than `method`."""
    items = fields(SECTIONS[section]) if section in SECTIONS and section != METHOD else ()
    return next((rule_of(item) for item in items if item.name == key), None)


def _hint(path: str) -> str:
    """Suggestions for a mistyped path: fields of the named section, otherwise fields of the same name."""
    section, _, key = path.rpartition(".")
    if section in SECTIONS:
        return nearest(path, [text for text in paths() if text.startswith(f"{section}.")])
    same = [text for text in paths() if text.partition(".")[2] == key]
    meant = f"did you mean {' or '.join(map(repr, same))}? " if same else ""
    return f"{meant}a field is SECTION.NAME, e.g. cluster.gpus; sections: {', '.join(SECTIONS)}"
