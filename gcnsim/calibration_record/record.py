"""Calibration records: what was fitted on one machine, from which inputs, with what error (docs/calibration.md).

A JSON file. Figures replace those of the catalogue in every prediction that names the record; residuals and spread say
how far such a prediction may be off; ranges say within which settings that was seen.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

from gcnsim.errors import FileError
from gcnsim.hardware import (
    PLAIN_KERNELS,
    AttentionFigures,
    CoreKernels,
    FarFigures,
    MapFigures,
    PoolingFigures,
    SumFigures,
)
from gcnsim.io.atomic import atomic_write
from gcnsim.io.json_files import read_json

SCHEMA: Final = "gcnsim.calibration/6"
POOLED: Final = "gcnsim.calibration/5"
"""Without `far`: of profiles that measure maps and passes at one distance only."""

MAPPED: Final = "gcnsim.calibration/4"
"""Without `pooling` and `kernels` too: of older profiles and records, of torch's own kernels on one thread."""

ATTENDED: Final = "gcnsim.calibration/3"
"""Without `maps` too."""

SUMMED: Final = "gcnsim.calibration/2"
"""Without `attention` too."""

PLAIN: Final = "gcnsim.calibration/1"
"""Without `sums` either: of GPUs, of profiles that do not tell the order of matrices, and of older records."""

HAS: Final = {
    PLAIN: frozenset[str](),
    SUMMED: frozenset({"sums"}),
    ATTENDED: frozenset({"sums", "attention"}),
    MAPPED: frozenset({"sums", "attention", "maps"}),
    POOLED: frozenset({"sums", "attention", "maps", "pooling", "kernels"}),
    SCHEMA: frozenset({"sums", "attention", "maps", "pooling", "kernels", "far"}),
}
"""What records of each schema have and those before lack."""

ONLY_GPUS: Final = "copies"
"""The part that records of workers on cores lack."""

PARTS: Final = ("device", "host", "network", ONLY_GPUS)
LINKS: Final = ("network", ONLY_GPUS)
"""Parts that are links."""

HALF_SIZE: Final = "half_size"
"""A figure of links of older records: bytes that a message occupied the link for besides its own."""

RATE: Final = ("bandwidth", "efficiency")
"""Whose product is the rate of a link."""


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

    figures: by part (device, host, network; of a GPU also copies, its link to the host) and field of the profile.
    curve: SpMM efficiency by gathered bytes, as (bytes, share) pairs. graphs: by graph hash, SpMM seconds over those of
    the law; empty where `sums` is known. sums: what sums over neighbours cost a core, by the order of their matrices.
    attention: what graph attention costs a core beside its sums; known only where they are. maps: what learnt maps and
    the loss cost it; known only where attention is. pooling: what GraphSAGE's pooling costs it, and kernels: which
    ones all of this is of; known only where maps are.
    far: what takes longer on rows that come from memory; known only where pooling is.
    error: relative 90 % half-width of a predicted iteration, from the runs it was fitted to (None: no runs).
    spread: relative standard deviation of repeated runs (None: no repeats); part of `error`. ranges: lowest and highest
    value of each setting among the inputs. seconds: that the micro-benchmarks took.
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
    sums: SumFigures | None = None
    attention: AttentionFigures | None = None
    maps: MapFigures | None = None
    pooling: PoolingFigures | None = None
    far: FarFigures | None = None
    kernels: CoreKernels | None = None

    @property
    def of_kernels(self) -> CoreKernels:
        """The kernels that its figures are of."""
        return self.kernels or PLAIN_KERNELS

    @property
    def links_only(self) -> bool:
        """Whether it has figures of links and busy cores alone, and none of kernels."""
        return not self.figures["device"] and bool(self.figures["network"])

    def used(self, sha256: str) -> bool:
        """Whether an input had this hash."""
        return any(source.sha256 == sha256 for source in self.inputs)


def write_calibration(path: str | Path, calibration: Calibration) -> None:
    """Write the record. Raises FileError."""
    told = asdict(calibration)
    known = frozenset(name for name in HAS[SCHEMA] if told[name] is not None)
    for name in HAS[SCHEMA] - known:
        del told[name]
    schema = next(schema for schema, has in HAS.items() if has == known)
    text = json.dumps({"schema": schema, **told}, indent=1, allow_nan=False, sort_keys=False)
    with atomic_write(Path(path), text=True) as file:
        file.write(text + "\n")


def read_calibration(path: str | Path) -> Calibration:
    """The record in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    raw = read_json(path, "calibration", "; gcnsim calibrate writes such a file")
    wrong = next(_contradictions(raw), None)
    if wrong:
        raise FileError(f"{path}: {wrong}")
    return _built({field.name: raw.get(field.name) for field in fields(Calibration)})


def _contradictions(raw: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong between the values of a record that keeps the schema."""
    for part in LINKS:
        given = raw["figures"].get(part, {})
        size = given.get(HALF_SIZE)
        if size is not None and size["value"] > 0 and not {*RATE, "latency_s"} <= given.keys():
            yield (
                f"figures.{part}.{HALF_SIZE}: no longer a figure, and without {', '.join(RATE)} and latency_s it "
                "cannot be read as seconds; write the record again with gcnsim calibrate"
            )
    for name in sorted(HAS[SCHEMA]):
        if (name in raw) != (name in HAS[raw["schema"]]):
            yield f"{name}: is {'there' if name in raw else 'missing'} in a record of schema {raw['schema']}"
    caches = raw.get("sums", {"caches": []})["caches"]
    if caches != sorted(set(caches)):
        yield "sums.caches: sizes must ascend"
    counts = [classes for classes, _ in raw.get("maps", {"loss": []})["loss"]]
    if counts != sorted(set(counts)):
        yield "maps.loss: numbers of classes must ascend"
    sizes = [size for size, _ in raw["curve"]]
    if sizes != sorted(set(sizes)):
        yield "curve: sizes must ascend"
    for name, (low, high) in raw["ranges"].items():
        if low > high:
            yield f"ranges.{name}: {low} is above {high}"


def _built(raw: dict[str, Any]) -> Calibration:
    figures = {
        part: _in_seconds({name: Fitted(**given) for name, given in raw["figures"].get(part, {}).items()})
        for part in PARTS
        if part != ONLY_GPUS or part in raw["figures"]
    }
    return Calibration(
        **raw
        | {
            "figures": figures,
            "curve": tuple((float(size), float(share)) for size, share in raw["curve"]),
            "sums": None if raw["sums"] is None else SumFigures(tuple(raw["sums"]["caches"]), raw["sums"]["seconds"]),
            "attention": None if raw["attention"] is None else AttentionFigures(**raw["attention"]),
            "maps": None if raw["maps"] is None else _maps(raw["maps"]),
            "far": None if raw["far"] is None else FarFigures(**raw["far"]),
            "pooling": None if raw["pooling"] is None else PoolingFigures(**raw["pooling"]),
            "kernels": None if raw["kernels"] is None else CoreKernels(**raw["kernels"]),
            "inputs": tuple(Source(**each) for each in raw["inputs"]),
            "residuals": tuple(Residual(**each) for each in raw["residuals"]),
            "graphs": {name: float(value) for name, value in raw["graphs"].items()},
            "ranges": {name: (float(low), float(high)) for name, (low, high) in raw["ranges"].items()},
        }
    )


def _maps(raw: Mapping[str, Any]) -> MapFigures:
    return MapFigures(raw["seconds"], tuple((float(classes), float(seconds)) for classes, seconds in raw["loss"]))


def _in_seconds(figures: dict[str, Fitted]) -> dict[str, Fitted]:
    """A link's figures with what an older record has as its half-size, in bytes, in its latency instead."""
    size = figures.pop(HALF_SIZE, None)
    if size is not None and size.value > 0:
        rate = math.prod(figures[name].value for name in RATE)
        latency = figures["latency_s"]
        figures["latency_s"] = replace(latency, value=latency.value + size.value / rate)
    return figures


def content_hash(path: str | Path) -> str:
    """SHA-256 (hex) of a file. Raises FileError."""
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
