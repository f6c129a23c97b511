"""What a worker does: a chunk of points in, their rows out, both as text; nothing but plain data travels.

The text names the versions and the hashes of the files that the asker has; a worker that has others says so.
"""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim import __version__
from gcnsim.errors import FileError, GcnsimError
from gcnsim.hardware import is_file
from gcnsim.planning import Estimate, StudyCache, full_graph, row_of
from gcnsim.scenario import Scenario
from gcnsim.simulation import Result
from gcnsim.simulation.templates import Templates
from gcnsim.sweeps.points import Settings
from gcnsim.sweeps.prices import read_prices
from gcnsim.sweeps.question import NONE

DONE: Final = "done"
REFUSED: Final = "refused"
TOO_LARGE: Final = "does not fit"
LOST: Final = "lost"
STATES: Final = (DONE, REFUSED, TOO_LARGE, LOST)
"""Of a point: answered; refused, as the method or the machine does not allow it; left out, as no GPU holds it; its
worker ended, several times."""

FILE_FIELDS: Final = (
    "cluster.calibration",
    "cluster.measured_compute",
    "workload.graph",
    "workload.trace",
    "workload.profile",
    "partition.file",
    "method.norms",
)
"""Fields of a scenario that name a file."""

DEVICE: Final = "cluster.device"
"""A field that names a file where its value is one's own device."""

SHARED: Final = ("base", "interval", "fits", "prices")
"""What all chunks of a sweep say, in the order of what `Answering` takes."""

MANY_BASELINES: Final = 100_000


def versions() -> dict[str, str]:
    """What must be the same on both sides for the same bytes."""
    return {
        "gcnsim": __version__,
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": np.__version__,
    }


def file_hash(path: str) -> str:
    """SHA-256 (hex) of a file, of a folder by the names and contents in it. Raises FileError."""
    try:
        stamp = Path(path).stat()
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    return _file_hash(path, (stamp.st_mtime_ns, stamp.st_size))


@lru_cache(maxsize=64)
def _file_hash(path: str, _: tuple[int, int]) -> str:
    place, found = Path(path), hashlib.sha256()
    try:
        for each in sorted(place.rglob("*")) if place.is_dir() else [place]:
            if each.is_file():
                found.update(each.name.encode())
                with open(each, "rb") as file:
                    while block := file.read(1 << 20):
                        found.update(block)
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    return found.hexdigest()


def files_of(scenario: Scenario) -> Iterator[str]:
    """The files that a scenario names."""
    for path in FILE_FIELDS:
        section, _, key = path.partition(".")
        spec = getattr(scenario, section)
        value = spec.values().get(key) if section == "method" else getattr(spec, key, None)
        if isinstance(value, str):
            yield value
    cluster = scenario.cluster
    yield from filter(is_file, (*(cluster.devices or (cluster.device,)), cluster.host))


def answer(text: str) -> str:
    """The rows of a chunk, both as JSON: `rows`, or `mismatch` where this worker would answer otherwise."""
    asked = json.loads(text)
    problem = _mismatch(asked)
    if problem is not None:
        return json.dumps({"mismatch": problem})
    worker = _worker(json.dumps([asked[key] for key in SHARED], sort_keys=True))
    return json.dumps({"rows": worker.rows(asked["points"])}, allow_nan=False)


def _mismatch(asked: Mapping[str, Any]) -> str | None:
    own = versions()
    for name, wanted in asked["versions"].items():
        if own.get(name) != wanted:
            return f"{name} {own.get(name)} on a worker, {wanted} here; allowed: the same on both"
    for path, wanted in asked["files"].items():
        try:
            found = file_hash(path)
        except FileError as error:
            return f"{error} (on a worker)"
        if found != wanted:
            return f"{path}: another file on a worker than here; allowed: the same on both"
    return None


_kept: dict[str, Answering] = {}
"""Of this process, by what is asked: a worker answers chunk after chunk of one sweep."""


def _worker(asked: str) -> Answering:
    if asked not in _kept:
        _kept.clear()
        _kept[asked] = Answering(*json.loads(asked))
    return _kept[asked]


class Answering:
    """Answers points of one base; what they share is read once."""

    def __init__(
        self, base: Mapping[str, Any], interval: str, fits: bool, prices: Mapping[str, Any] | None = None
    ) -> None:
        self._settings = Settings(base)
        self._interval, self._fits = interval, fits
        self._book = read_prices(prices)
        self._templates = Templates()
        self._studies: dict[Any, StudyCache] = {}
        self._baselines: dict[Scenario, float | None] = {}

    def rows(self, points: Sequence[tuple[int, Mapping[str, Any]]]) -> list[dict[str, Any]]:
        """A row for each point, as plain data: `point`, `state`, `reason`, and the fields of `Row` where it is done."""
        with self._templates.used():
            return [self._row(index, values) for index, values in points]

    def _row(self, index: int, values: Mapping[str, Any]) -> dict[str, Any]:
        try:
            scenario = self._settings.scenario(values)
            studies = self._opened(scenario)
            # What surely does not fit need not be simulated.
            row = self._answered(studies, scenario) if not self._fits or studies.holds(scenario) else None
        except GcnsimError as error:
            return {"point": index, "state": REFUSED, "reason": str(error)}
        if row is None or (self._fits and row["fits"] is False):
            return {"point": index, "state": TOO_LARGE, "reason": "does not fit the GPUs' memory"}
        return {"point": index, "state": DONE, "reason": None, **row}

    def _opened(self, scenario: Scenario) -> StudyCache:
        """Studies that share the source of the scenario's workload, and no results."""
        key = (scenario.workload, scenario.partition, scenario.run)
        if key not in self._studies:
            self._studies[key] = StudyCache(scenario)
        return self._studies[key]

    def _answered(self, studies: StudyCache, scenario: Scenario) -> dict[str, Any]:
        baseline_s = self._baseline(studies, scenario)
        plain = self._interval == NONE
        found = _plain(scenario, studies.result(scenario)) if plain else studies.estimate(scenario)
        row = asdict(row_of(found, baseline_s, studies.accesses.name, self._book))
        studies.forget()
        return row

    def _baseline(self, studies: StudyCache, scenario: Scenario) -> float | None:
        key = full_graph(scenario)
        if key not in self._baselines:
            if len(self._baselines) >= MANY_BASELINES:
                self._baselines.clear()
            self._baselines[key] = studies.baseline(scenario)
        return self._baselines[key]


def _plain(scenario: Scenario, result: Result) -> Estimate:
    """A result without an interval."""
    seconds = result.metrics.iteration_s
    return Estimate(scenario, result, np.array([seconds]), None, None, None, seconds, seconds)
