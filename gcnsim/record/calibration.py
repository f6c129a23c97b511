"""Calibration records: what was fitted on one machine, from which inputs, with what error (docs/calibration.md).

A JSON file. Figures replace those of the catalogue in every prediction that names the record; residuals and spread say
how far such a prediction may be off; ranges say within which settings that was seen.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from gcnsim.errors import FileError
from gcnsim.profile import DeviceProfile, HostProfile, LinkProfile
from gcnsim.sections import replacing

SCHEMA: Final = "gcnsim.calibration/1"
PROFILES: Final[Mapping[str, type[Any]]] = {"device": DeviceProfile, "host": HostProfile, "network": LinkProfile}
PARTS: Final = tuple(PROFILES)
MAY_BE_NOTHING: Final = (
    "half_size",
    "latency_s",
    "queue",
    "message_s",
    "reduce_step_s",
    "draw_s",
    "launch_s",
    "iteration_s",
    "work_spread",
)
"""Costs that a machine may not have; everything else divides."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One fitted figure in SI units. reference: what it was fitted to. error: typical relative residual, if known."""

    value: float
    reference: str
    error: float | None = None


@dataclass(frozen=True, slots=True)
class Residual:
    """How well one law fits its points: mean absolute, 90th percentile and signed mean relative error."""

    term: str
    points: int
    mape: float
    p90: float
    bias: float


@dataclass(frozen=True, slots=True)
class Source:
    """An input of the fit. kind: `measurements` or `run`; name: of the file or folder; sha256: of its content."""

    kind: str
    name: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Calibration:
    """A fit.

    figures: by part (device, host, network) and field of the profile. curve: SpMM efficiency by gathered bytes, as
    (bytes, share) pairs. graphs: by graph hash, SpMM seconds over those of the law. error: relative 90 % half-width of
    a predicted iteration, from the runs it was fitted to (None: no runs). spread: that of repeated runs.
    ranges: lowest and highest value of each setting among the inputs. seconds: that the micro-benchmarks took.
    """

    device: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    inputs: tuple[Source, ...]
    figures: Mapping[str, Mapping[str, Fitted]]
    curve: tuple[tuple[float, float], ...]
    graphs: Mapping[str, float]
    residuals: tuple[Residual, ...]
    error: float | None
    spread: float | None
    ranges: Mapping[str, tuple[float, float]]
    seconds: float

    def used(self, sha256: str) -> bool:
        """Whether an input had this hash."""
        return any(source.sha256 == sha256 for source in self.inputs)


def write_calibration(path: str | Path, calibration: Calibration) -> None:
    """Write the record. Raises FileError."""
    text = json.dumps({"schema": SCHEMA, **asdict(calibration)}, indent=1, allow_nan=False, sort_keys=False)
    with replacing(Path(path), text=True) as file:
        file.write(text + "\n")


def read_calibration(path: str | Path) -> Calibration:
    """The record in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    try:
        raw = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path}: not a JSON document") from None
    if not isinstance(raw, dict) or raw.get("schema") != SCHEMA:
        raise FileError(f"{path}: not a calibration record ({SCHEMA}); gcnsim calibrate writes one")
    names = {field.name for field in fields(Calibration)}
    missing = sorted(names - set(raw))
    if missing:
        raise FileError(f"{path}: {missing[0]} is missing")
    try:
        return _built({name: raw[name] for name in names})
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise FileError(f"{path}: {' '.join(str(error).split())}") from None


def _built(raw: dict[str, Any]) -> Calibration:
    figures = {part: {name: Fitted(**given) for name, given in raw["figures"].get(part, {}).items()} for part in PARTS}
    for part, given in figures.items():
        known = {field.name for field in fields(PROFILES[part])}
        for name, figure in given.items():
            if name not in known:
                raise ValueError(f"figures.{part}.{name}: unknown figure")
            _check(f"figures.{part}.{name}", figure.value, above=name not in MAY_BE_NOTHING)
    curve = tuple((float(size), float(share)) for size, share in raw["curve"])
    if any(not (share > 0 and size > 0) for size, share in curve) or [size for size, _ in curve] != sorted(
        {size for size, _ in curve}
    ):
        raise ValueError("curve: sizes must ascend, and sizes and shares be above 0")
    for name, factor in raw["graphs"].items():
        _check(f"graphs.{name}", factor, above=True)
    for name in ("error", "spread", "seconds"):
        if raw[name] is not None or name == "seconds":
            _check(name, raw[name], above=False)
    for name in ("machine", "versions"):
        if not isinstance(raw[name], dict):
            raise ValueError(f"{name}: not an object")
    for name, (low, high) in raw["ranges"].items():
        if not low <= high:
            raise ValueError(f"ranges.{name}: {low} is above {high}")
    return Calibration(
        **raw
        | {
            "figures": figures,
            "curve": curve,
            "inputs": tuple(Source(**each) for each in raw["inputs"]),
            "residuals": tuple(Residual(**each) for each in raw["residuals"]),
            "graphs": {str(name): float(value) for name, value in raw["graphs"].items()},
            "ranges": {str(name): (float(low), float(high)) for name, (low, high) in raw["ranges"].items()},
        }
    )


def _check(name: str, value: Any, *, above: bool) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
        raise ValueError(f"{name}: {value!r} is not allowed; a number of at least 0")
    if above and value == 0:
        raise ValueError(f"{name}: 0 is not allowed; a number above 0")


def content_hash(path: str | Path) -> str:
    """SHA-256 (hex) of a file. Raises FileError."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
