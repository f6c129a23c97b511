"""What micro-benchmarks measured (schema `gcnsim.measurements/1`): seconds of kernels, by the sizes they depend on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Final

from gcnsim.calibration_record.record import content_hash
from gcnsim.errors import FileError
from gcnsim.io.schema import mistakes
from gcnsim.io.strict_json import parse_json

LONGEST_S: Final = 3600.0
"""No call of a kernel lasts longer: a whole profile takes minutes."""


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
    """A file of them. seconds: that measuring took."""

    path: Path
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    device: str
    seconds: float
    found: tuple[Measurement, ...]
    sha256: str

    def of(self, kernel: str, **wanted: float) -> list[Measurement]:
        """Those of one kernel whose params hold `wanted`."""
        return [
            each
            for each in self.found
            if each.kernel == kernel and all(each.params.get(name) == value for name, value in wanted.items())
        ]


def read_measurements(path: str | Path) -> Measurements:
    """The measurements in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    digest = content_hash(path)
    try:
        raw = parse_json(Path(path).read_text(encoding="utf-8"), path)
    except UnicodeDecodeError:
        raise FileError(f"{path}: not a JSON document") from None
    wrong = next(chain(mistakes(raw, "measurements"), _absurd(raw)), None)
    if wrong:
        raise FileError(f"{path}: {wrong}; python -m runtime.profile writes such a file")
    names = Measurement.__slots__
    return Measurements(
        path=Path(path),
        machine=raw["machine"],
        versions=raw["versions"],
        device=raw["options"]["device"],
        seconds=raw["seconds"],
        found=tuple(Measurement(**{name: each[name] for name in names}) for each in raw["measurements"]),
        sha256=digest,
    )


def _absurd(raw: Mapping[str, Any]) -> Iterator[str]:
    """Times that no kernel takes."""
    for index, each in enumerate(raw["measurements"]):
        for name in ("seconds", "low", "high"):
            if each[name] > LONGEST_S:
                yield f"measurements[{index}].{name} is {each[name]:g}, wanted {LONGEST_S:g} or less"
