"""Calibration records: what was fitted on one machine, from which inputs, with what error (docs/calibration.md).

A record is a JSON file. Its figures replace those of the catalogue in every prediction that names it. Residuals and
spread bound the error of such a prediction; ranges give the settings within which that was observed.

Settings of recorded runs and of questions become numbers by one rule, so that a question outside the ranges is found. A
setting that is a name (method, model, graph) becomes a key with value 1, such as `method.psc-gcn`. A record's ranges
thus list the names that were seen.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, TypedDict

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError, UnitError
from gcnsim.core.ids import Seconds
from gcnsim.core.json_files import mistake, parse_json, read_text
from gcnsim.core.shapes import SINCE, Amount, As, Count, Keys, Positive, Within
from gcnsim.core.units import FRACTION, NBYTES, SECONDS
from gcnsim.hardware import CORE
from gcnsim.hardware.profiles import CALIBRATED, DEVICE, HOST, LINK, QUANTITIES, ZERO_ALLOWED

SCHEMA: Final = "gcnsim.calibration/1"

ONLY_GPUS: Final = "copies"
"""The part that records of workers on cores lack."""

PARTS: Final = ("device", "host", "network", ONLY_GPUS)
LINKS: Final = ("network", ONLY_GPUS)
"""Parts that are links."""

HALF_SIZE: Final = "half_size"
"""A figure of links of older records: bytes that a message occupied the link for besides its own."""

RATE: Final = ("bandwidth", "efficiency")
"""Whose product is the rate of a link."""

DRAW: Final = "draw_s"
"""A figure of hosts of older records of GPUs, which nothing reads."""

OLDER: Final = tuple(f"gcnsim.calibration/{version}" for version in range(2, 7))
"""Schemas of records that older versions fitted to kernels of cores."""

OF_CORES: Final = "is a record of kernels of CPU cores, which are measured now: python -m runtime.measure"
"""What is said of such records."""

ABOVE_ZERO: Final = 1e-12
"""The least of what divides."""


@dataclass(frozen=True, slots=True)
class Fitted:
    """One fitted figure in SI units."""

    value: float
    reference: str
    """What it was fitted to."""
    error: Amount | None = field(default=None, metadata=SINCE)
    """Typical relative residual, if known."""


class FittedRate(Fitted):
    """What divides, so it is above 0."""

    value: Annotated[float, Within(minimum=ABOVE_ZERO)]


class FittedCost(Fitted):
    """What a machine may not have."""

    value: Amount


class FittedShare(Fitted):
    """A share of one."""

    value: Annotated[float, Within(minimum=ABOVE_ZERO, maximum=1)]


class FittedCores(Fitted):
    """Whole cores."""

    value: Annotated[float, Within(minimum=1)]


def _fitted(names: Iterable[str]) -> Keys:
    """Figures of a part, by the field of its profile."""
    return Keys(tuple((name, _kind(name)) for name in names), needed=False)


def _kind(name: str) -> type[Fitted]:
    if name in (HALF_SIZE, DRAW, *ZERO_ALLOWED) or (QUANTITIES[name] is SECONDS and name not in WAITS):
        return FittedCost
    return {"cores": FittedCores, "busy_core_rate": FittedShare, "efficiency": FittedShare}.get(name, FittedRate)


WAITS: Final = ("slice_s", "wake_s")
"""Seconds that a machine always has."""

UNFITTED: Final = ("staging_bandwidth", "neighbour_draws_per_s", "uva_efficiency")
"""Figures of hosts that no calibration fits."""


class Figures(TypedDict, total=False):
    """What replaces the figures of the catalogue."""

    device: Annotated[Mapping[str, Fitted], As(_fitted(DEVICE))]
    """Of one device of the catalogue."""
    host: Annotated[
        Mapping[str, Fitted],
        As(_fitted(name for name in (*HOST, "gpus", "nic", *CALIBRATED, DRAW) if name not in UNFITTED)),
    ]
    """Of the CPU side of a server. draw_s: of older records, read by nothing."""
    network: Annotated[Mapping[str, Fitted], As(_fitted((*LINK, HALF_SIZE)))]
    """half_size: of older records, bytes that a message occupied the link for besides its own."""
    copies: Annotated[Mapping[str, Fitted], As(_fitted((*LINK, HALF_SIZE)))]
    """Between a GPU and its host; records of workers on cores have none."""


@dataclass(frozen=True, slots=True)
class Residual:
    """How well one law fits its points, in relative errors."""

    term: str
    points: Count
    mape: float
    """Mean absolute error."""
    p90: float
    """90th percentile."""
    bias: float
    """Signed mean."""


@dataclass(frozen=True, slots=True)
class Source:
    """An input of the fit."""

    kind: str
    """measurements, run or measured_compute."""
    name: str
    """Of the file or folder."""
    sha256: str
    """Of its content."""


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was fitted on one machine, from which inputs, with what error, as `gcnsim calibrate` writes it. SI units,
    shares of one."""

    MAY_SAY_MORE: ClassVar = True

    device: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    inputs: tuple[Source, ...]
    figures: Annotated[Mapping[str, Mapping[str, Fitted]], As(Figures)]
    """By part and field of the profile."""
    curve: tuple[tuple[Positive, Positive], ...]
    """SpMM efficiency by gathered bytes: pairs of bytes, ascending, and share."""
    graphs: Mapping[str, Annotated[float, Within(minimum=ABOVE_ZERO)]]
    """By graph hash, SpMM seconds over those of the law; empty where compute was measured."""
    residuals: tuple[Residual, ...]
    """Of each law, over its points."""
    error: Amount | None
    """Relative 90 % half-width of a predicted iteration, from the runs it was fitted to; null: no runs."""
    spread: Amount | None
    """Relative standard deviation of repeated runs, part of `error`; null: no repeats."""
    beside_busy: bool | None
    """Whether compute of the fitted runs on cores was measured beside busy cores; null: there were no such runs."""
    ranges: Mapping[str, tuple[float, float]]
    """Lowest and highest value of each setting among the inputs."""
    seconds: Seconds
    """That the micro-benchmarks took."""

    @property
    def links_only(self) -> bool:
        """Whether it has figures of links and busy cores alone, and none of kernels."""
        return not self.figures["device"] and bool(self.figures["network"])

    def used(self, sha256: str) -> bool:
        """Whether an input had this hash."""
        return any(source.sha256 == sha256 for source in self.inputs)


def write_calibration(path: str | Path, calibration: Calibration) -> None:
    """Write the record. Raises FileError."""
    text = json.dumps({"schema": SCHEMA, **asdict(calibration)}, indent=1, allow_nan=False, sort_keys=False)
    with atomic_write(Path(path), text=True) as file:
        file.write(text + "\n")


HINT: Final = "; gcnsim calibrate writes such a file"


def read_calibration(path: str | Path) -> Calibration:
    """The record in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    raw = parse_json(read_text(path, HINT), path)
    if _of_cores(raw):
        raise FileError(f"{path}: {OF_CORES}")
    if wrong := mistake(raw, "calibration"):
        raise FileError(f"{path}: {wrong}{HINT}")
    wrong = next(_contradictions(raw), None)
    if wrong:
        raise FileError(f"{path}: {wrong}")
    return _built({entry.name: raw.get(entry.name) for entry in fields(Calibration)})


def _of_cores(raw: Any) -> bool:
    """Whether a document is what older versions fitted to kernels of cores: by its schema, or by its figures."""
    if not isinstance(raw, dict):
        return False
    figures = raw.get("figures")
    kernels = figures.get("device") if isinstance(figures, dict) else None
    return raw.get("schema") in OLDER or bool(raw.get("schema") == SCHEMA and raw.get("device") == CORE and kernels)


POOLING: Final = "model.graphsage-pool"
"""In records of earlier versions, GraphSAGE with another aggregator than the mean."""


def _contradictions(raw: Mapping[str, Any]) -> Iterator[str]:
    """What is wrong between the values of a record that keeps the schema."""
    for part in LINKS:
        figures = raw["figures"].get(part, {})
        size = figures.get(HALF_SIZE)
        if size is not None and size["value"] > 0 and not {*RATE, "latency_s"} <= figures.keys():
            yield (
                f"figures.{part}.{HALF_SIZE}: no longer a figure, and without {', '.join(RATE)} and latency_s it "
                "cannot be read as seconds; write the record again with gcnsim calibrate"
            )
    sizes = [size for size, _ in raw["curve"]]
    if sizes != sorted(set(sizes)):
        yield "curve: sizes must ascend"
    if POOLING in raw["ranges"]:
        yield (
            f"ranges.{POOLING}: GraphSAGE takes the mean; allowed: model.graphsage; calibrate again without runs of "
            "pooling"
        )
    for name, (low, high) in raw["ranges"].items():
        if low > high:
            yield f"ranges.{name}: {low} is above {high}"


def _built(raw: dict[str, Any]) -> Calibration:
    figures = {
        part: _in_seconds({name: Fitted(**figure) for name, figure in raw["figures"].get(part, {}).items()})
        for part in PARTS
        if part != ONLY_GPUS or part in raw["figures"]
    }
    return Calibration(
        **raw
        | {
            "figures": figures,
            "curve": tuple((float(size), float(share)) for size, share in raw["curve"]),
            "inputs": tuple(Source(**item) for item in raw["inputs"]),
            "residuals": tuple(Residual(**residual) for residual in raw["residuals"]),
            "graphs": {name: float(value) for name, value in raw["graphs"].items()},
            "ranges": {name: (float(low), float(high)) for name, (low, high) in raw["ranges"].items()},
        }
    )


def _in_seconds(figures: dict[str, Fitted]) -> dict[str, Fitted]:
    """A link's figures with what an older record has as its half-size, in bytes, in its latency instead; a host's
    without what nothing reads."""
    figures.pop(DRAW, None)
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


KNOBS: Final = ("tau", "epsilon", "rate")
ALWAYS: Final = ("workers", "bandwidth", "features", "layers", "hidden", *KNOBS)
"""Keys that every record has, where its runs had them; older ones have no others."""

NOWHERE: Final = "unknown"
"""Stands for the graph of a question that knows only statistics."""


def settings(
    names: Mapping[str, str | None], place: Mapping[str, Any], widths: Sequence[int], knobs: Mapping[str, Any]
) -> dict[str, float]:
    """What a range is kept of.

    names: `method`, `model`, and `graph` by its hash (None: unknown). place: `hosts`, `workers_per_host`, and where
    there are several hosts `bandwidth` (bytes/s) and `latency_s`. widths: of the rows before the first and after each
    layer. knobs: those that the method has, cache as text.
    """
    found = {f"{kind}.{name or NOWHERE}": 1.0 for kind, name in names.items()}
    hosts, each = place["hosts"], place["workers_per_host"]
    numbers = {"workers": place.get("workers", hosts * each), "hosts": hosts, "workers_per_host": each}
    if hosts > 1:
        # One host sends nothing through its link.
        numbers |= {"bandwidth": place["bandwidth"], "latency_s": place["latency_s"]}
    numbers |= {"features": widths[0], "layers": len(widths) - 1, "hidden": max(widths[1:])}
    numbers |= {name: knobs[name] for name in KNOBS if name in knobs} | _cache(knobs.get("cache"))
    return found | {name: float(value) for name, value in numbers.items()}


def beyond(question: Mapping[str, float], ranges: Mapping[str, tuple[float, float]], graph: str) -> Iterator[str]:
    """Each setting of `question` that is outside of `ranges` or has none there, in words; graph: its name."""
    if not ranges:
        yield "every setting (calibrated without runs)"
        return
    named = any(key.startswith("method.") for key in ranges)
    if not named:
        yield "method, model, graph, hosts, latency and cache (an older record without them; calibrate again)"
    for key, value in question.items():
        kind, dot, name = key.partition(".")
        text = f"{kind} {graph if kind == 'graph' else name}" if dot else f"{key} {value:g}"
        if key not in ranges and (named or key in ALWAYS):
            yield f"{text} (never calibrated)"
        elif key in ranges and not ranges[key][0] <= value <= ranges[key][1]:
            low, high = ranges[key]
            yield f"{text} (calibrated: {low:g} to {high:g})" if low < high else f"{text} (calibrated: {low:g})"


def _cache(size: object) -> dict[str, float]:
    """A cache of a share of the boundary, or of bytes; nothing where training chooses it."""
    if size in (None, "auto"):
        return {}
    try:
        return {"cache": FRACTION.parse(str(size))}
    except UnitError:
        return {"cache_bytes": NBYTES.parse(str(size))}
