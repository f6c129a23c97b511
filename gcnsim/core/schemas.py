"""The JSON schemas of answers and files, made from the classes that hold them whenever one is asked for.

No room below knows these classes, so they are named and imported when needed. Each schema holds all definitions that it
refers to, so that it validates alone.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, Final, NamedTuple

from gcnsim.core.errors import GcnsimError, ScenarioError, nearest
from gcnsim.core.schema_of_types import Schemas

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


class Document(NamedTuple):
    """A document with a schema. module, kind: of its class. title: what it is.

    version: the name of its format, or where the module has that. key: where documents have it, None: nowhere. part: a
    field that the class knows as plain data only, with the module and the name of its class.
    """

    module: str
    kind: str
    title: str
    version: str = "SCHEMA"
    key: str | None = "schema"
    part: tuple[str, str, str] | None = None


DOCUMENTS: Final[Mapping[str, Document]] = {
    "what-if": Document("gcnsim.results.documents", "WhatIf", "The answer of gcnsim what-if", "WHAT_IF"),
    "recommend": Document("gcnsim.results.recommended", "Advice", "The answer of gcnsim recommend", "RECOMMEND"),
    "result": Document("gcnsim.results.documents", "SimulationReport", "gcnsim result", "RESULT"),
    "calibration": Document("gcnsim.records.calibration", "Calibration", "gcnsim calibration record"),
    "cluster": Document("gcnsim.records.run_files", "Cluster", "gcnsim cluster of a run"),
    "measured_compute": Document(
        "gcnsim.records.compute_facts", "Header", "gcnsim measured compute: what was measured", "FORMAT", "format"
    ),
    "measurements": Document("runtime.microbench.measurements", "MeasurementsFile", "gcnsim micro-benchmarks"),
    "run": Document(
        "runtime.record.run_folder", "RunRecord", "gcnsim training run",
        part=("emulation", "runtime.emulation.spec", "Emulation"),
    ),
    "survey": Document("runtime.survey.folder", "SurveyState", "gcnsim survey"),
    "checkpoint": Document(
        "runtime.train.checkpoint", "CheckpointState", "gcnsim checkpoint", "gcnsim.checkpoint/1", key=None
    ),
}  # fmt: skip


@cache
def schema_of(name: str, *, described: bool = True) -> Mapping[str, Any]:
    """The schema `name`: `run` for `run.json`. described: with the text of each field, which takes longer.

    Raises ScenarioError for an unknown name, GcnsimError where a class needs an extra that is not installed.
    """
    if name not in DOCUMENTS:
        raise ScenarioError(f"schema: unknown {name!r}; {nearest(name, DOCUMENTS)}")
    document, schemas = DOCUMENTS[name], Schemas(described=described)
    whole = schemas.whole(_named(document.module, document.kind))
    if document.part is not None:
        key, module, kind = document.part
        whole["properties"][key] |= schemas.of(_named(module, kind) | None) | _description(whole["properties"][key])
    version = document.version if "/" in document.version else _named(document.module, document.version)
    if document.key is not None:
        whole["required"].insert(0, document.key)
        whole["properties"] = {document.key: {"const": version}} | whole["properties"]
    urn = f"urn:{version.replace('.', ':').replace('/', ':')}"
    heading = {"$schema": DIALECT, "$id": urn, "title": document.title}
    needed: dict[str, Any] = {}
    waiting = [*_references(whole)]
    while waiting:
        key = waiting.pop()
        if key not in needed:
            needed[key] = schemas.definitions[key]
            waiting += _references(needed[key])
    return heading | whole | {"$defs": dict(sorted(needed.items()))}


def schema_text(name: str) -> str:
    """The schema `name` as the text of a file."""
    return json.dumps(schema_of(name), indent=2) + "\n"


def _named(module: str, name: str) -> Any:
    """What a module has under this name. Raises GcnsimError where the module needs what is not installed."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise GcnsimError(f"schema: needs {error.name}; pip install 'gcnsim[runtime]'") from None


def _description(part: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": part["description"]} if "description" in part else {}


def _references(part: object) -> Iterator[str]:
    """The definitions that a part of a schema refers to."""
    if isinstance(part, Mapping):
        if isinstance(part.get("$ref"), str):
            yield part["$ref"].rpartition("/")[2]
        for value in part.values():
            yield from _references(value)
    elif isinstance(part, list):
        for value in part:
            yield from _references(value)
