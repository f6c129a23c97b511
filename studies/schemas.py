"""Write the JSON schemas that ship, out of the classes that hold what they are of: `python -m studies.schemas`.

Each schema holds all definitions that it refers to, so that it validates alone.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from gcnsim.records import calibration as record
from gcnsim.records import compute_facts as header
from gcnsim.records import run_files as files
from gcnsim.records.calibration import Calibration
from gcnsim.records.run_files import Cluster
from gcnsim.results import Advice, SimulationReport, WhatIf
from gcnsim.results.documents import RESULT, WHAT_IF
from gcnsim.results.recommended import RECOMMEND
from runtime.emulation.spec import Emulation
from runtime.microbench import measurements
from runtime.microbench.measurements import MeasurementsFile
from runtime.record import RunRecord, run_folder
from runtime.survey import folder
from runtime.survey.folder import SurveyState
from runtime.train.checkpoint import CheckpointState
from studies.schema_of_types import Schemas

ROOT: Final = Path(__file__).resolve().parents[1]
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True, slots=True)
class Document:
    """A schema that ships: of which class, and its title. names: of its versions, the newest last, as documents have
    them in `key` (none: nowhere). parts: types of fields that the class's room knows as plain data only."""

    kind: Any
    names: tuple[str, ...]
    title: str
    key: str | None = "schema"
    parts: Mapping[str, Any] = field(default_factory=dict)


DOCUMENTS: Final[Mapping[str, Document]] = {
    "what-if": Document(WhatIf, (WHAT_IF,), "The answer of gcnsim what-if"),
    "recommend": Document(Advice, (RECOMMEND,), "The answer of gcnsim recommend"),
    "result": Document(SimulationReport, (RESULT,), "gcnsim result"),
    "calibration": Document(Calibration, (record.SCHEMA,), "gcnsim calibration record"),
    "cluster": Document(Cluster, (files.SCHEMA,), "gcnsim cluster of a run"),
    "measured_compute": Document(
        header.Header, (header.FORMAT,), "gcnsim measured compute: what was measured", key="format"
    ),
    "measurements": Document(MeasurementsFile, (measurements.SCHEMA,), "gcnsim micro-benchmarks"),
    "run": Document(RunRecord, (run_folder.SCHEMA,), "gcnsim training run", parts={"emulation": Emulation | None}),
    "survey": Document(SurveyState, (folder.SCHEMA,), "gcnsim survey"),
    "checkpoint": Document(CheckpointState, ("gcnsim.checkpoint/1",), "gcnsim checkpoint", key=None),
}


def schema_text(name: str) -> str:
    """The text of the schema `name`, complete."""
    document, schemas = DOCUMENTS[name], Schemas()
    whole, names = schemas.whole(document.kind), document.names
    for key, kind in document.parts.items():
        whole["properties"][key] |= schemas.of(kind) | {"description": whole["properties"][key]["description"]}
    if document.key is not None:
        whole["required"].insert(0, document.key)
        named = {"const": names[0]} if len(names) == 1 else {"enum": list(names)}
        whole["properties"] = {document.key: named} | whole["properties"]
    urn = f"urn:{names[-1].replace('.', ':').replace('/', ':')}"
    heading = {"$schema": DIALECT, "$id": urn, "title": document.title}
    needed: dict[str, Any] = {}
    waiting = [*_references(whole)]
    while waiting:
        key = waiting.pop()
        if key not in needed:
            needed[key] = schemas.definitions[key]
            waiting += _references(needed[key])
    return json.dumps(heading | whole | {"$defs": dict(sorted(needed.items()))}, indent=2) + "\n"


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


def main() -> None:
    """Write every schema into the package."""
    for name in DOCUMENTS:
        path = ROOT / "gcnsim" / "data" / f"{name}.schema.json"
        path.write_text(schema_text(name), encoding="utf-8")
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")


if __name__ == "__main__":
    main()
