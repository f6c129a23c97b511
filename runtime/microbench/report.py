"""The file of the micro-benchmarks (schema `gcnsim.measurements/1`), and what is said of it to people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, NotRequired, TypedDict

from gcnsim.hardware import AGGREGATORS
from gcnsim.ids import Seconds
from gcnsim.io.atomic import atomic_write
from gcnsim.shapes import As, OneOrMore, Within
from gcnsim.terminal.tables import aligned
from gcnsim.units import format_seconds
from runtime.microbench.kernels import KERNELS, Measurement
from runtime.microbench.request import MicrobenchRequest
from runtime.record.machine import Machine, Versions, hardware, versions

SCHEMA: Final = "gcnsim.measurements/1"


class MeasuredWith(TypedDict):
    """What was asked."""

    budget: str
    """quick or full."""
    device: str
    threads: OneOrMore
    workers: Annotated[list[OneOrMore], Within(min_items=1)]
    """Numbers of processes run at once, ascending."""
    network: bool
    """Whether transfers were measured."""
    aggregator: NotRequired[Annotated[str, Within(enum=AGGREGATORS)]]
    """Which kernels sum neighbours; not there: plain."""
    kernels: NotRequired[bool]
    """Whether kernels of one process alone were measured; not there: they were."""
    rounds: NotRequired[OneOrMore]
    """In how many parts, minutes apart, kernels of one process alone were measured; not there: in one, and their
    seconds are the median of the samples."""


class MeasurementsFile(TypedDict):
    """What the kernels of training cost on one machine, as `python -m runtime.profile --out FILE` writes it. Seconds,
    bytes."""

    machine: Machine
    versions: Versions
    options: MeasuredWith
    seconds: Seconds
    """That the profile took, the start of its processes included."""
    measurements: Annotated[list[dict[str, Any]], As(list[Measurement])]


def document(asked: MicrobenchRequest, measurements: Sequence[Measurement], seconds: float) -> dict[str, Any]:
    """What was measured in `seconds`, a `MeasurementsFile` with its schema."""
    return {
        "schema": SCHEMA,
        "machine": hardware(asked.device == "cuda"),
        "versions": versions(),
        "options": asked.options(),
        "seconds": seconds,
        "measurements": [each.asdict() for each in measurements],
    }


def write(path: str | Path, results: Mapping[str, Any]) -> None:
    """Write the document, a measurement a line. Raises FileError."""
    head = {name: value for name, value in results.items() if name != "measurements"}
    text = json.dumps(head, indent=1, allow_nan=False).rstrip("}\n")
    lines = ",\n".join(f"  {json.dumps(each, allow_nan=False)}" for each in results["measurements"])
    with atomic_write(path, text=True) as file:
        file.write(f'{text},\n "measurements": [\n{lines}\n ]\n}}\n')


def table(results: Mapping[str, Any], path: str) -> str:
    """How many sizes of each kernel were measured, and the quickest and slowest; without a newline at its end."""
    found: dict[str, list[float]] = {}
    for each in results["measurements"]:
        found.setdefault(each["kernel"], []).append(each["seconds"])
    rows = [
        (name, str(len(times)), format_seconds(min(times)), format_seconds(max(times)), KERNELS[name])
        for name, times in found.items()
    ]
    heads = ("kernel", "sizes", "quickest", "slowest", "what it does")
    head = f"{len(results['measurements'])} measurements in {format_seconds(results['seconds'])}, written to {path}"
    return "\n".join([head, *aligned(rows, heads, left=(True, False, False, False, True), indent=2)])
