"""What micro-benchmarks measured (schema `gcnsim.measurements/1`): seconds of kernels, by the sizes they depend on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gcnsim.core.json_files import read_json
from gcnsim.hardware import PLAIN, PLAIN_KERNELS, CoreKernels
from gcnsim.records.calibration import content_hash


@dataclass(frozen=True, slots=True)
class Measurement:
    """One kernel at one size. seconds: of a call, and its 10th and 90th percentile. processes: that ran it at once."""

    kernel: str
    params: Mapping[str, float]
    threads: int
    processes: int
    seconds: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Measurements:
    """A file of them. kernels: that were measured. seconds: that measuring took. links_only: no kernel of one process
    alone was measured, only what processes cost one another."""

    path: Path
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    device: str
    seconds: float
    found: tuple[Measurement, ...]
    sha256: str
    kernels: CoreKernels = PLAIN_KERNELS
    links_only: bool = False

    def of(self, kernel: str, **wanted: float) -> list[Measurement]:
        """Those of one kernel whose params hold `wanted`."""
        return [
            measurement
            for measurement in self.found
            if measurement.kernel == kernel
            and all(measurement.params.get(name) == value for name, value in wanted.items())
        ]


def read_measurements(path: str | Path) -> Measurements:
    """The measurements in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    digest = content_hash(path)
    raw = read_json(
        path,
        "measurements",
        "; python -m runtime.profile (GPUs) or python -m runtime.measure --links writes such a file",
    )
    names = Measurement.__slots__
    return Measurements(
        path=Path(path),
        machine=raw["machine"],
        versions=raw["versions"],
        device=raw["options"]["device"],
        kernels=CoreKernels(raw["options"].get("aggregator", PLAIN), raw["options"]["threads"]),
        seconds=raw["seconds"],
        found=tuple(Measurement(**{name: measurement[name] for name in names}) for measurement in raw["measurements"]),
        sha256=digest,
        links_only=not raw["options"].get("kernels", True),
    )
