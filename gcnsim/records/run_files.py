"""Reads and cross-checks the files that describe a run: run.json, iterations.csv and cluster.json.

`cluster.json` is the real cluster of a run on several servers (docs/files.md).
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.fields import COUNT, FINITE, SHARE, Number
from gcnsim.core.ids import FloatArray, Rank, Seconds
from gcnsim.core.json_files import read_json, read_text
from gcnsim.core.shapes import OneOrMore, Positive
from gcnsim.workload import wrong_aggregator

RUN, ITERATIONS = "run.json", "iterations.csv"

HINT: Final = "; python -m runtime.train writes such a file"

LONGEST_S: Final = 1e7
"""No iteration lasts longer: four months."""

COLUMN_RULES: Final[Mapping[str, Number]] = {
    "iteration": COUNT,
    "seconds": Number(False, 0, LONGEST_S, low_open=True),
    "loss": FINITE,
    "train_accuracy": SHARE,
    "val_accuracy": SHARE,
    "bytes_sent": Number(True, 0, 2**63),
    "hit_rate": SHARE,
    "wait_s": Number(False, 0, LONGEST_S),
}
"""What the columns of iterations.csv may hold."""


def read_facts(folder: Path) -> dict[str, Any]:
    """What run.json in `folder` says, by its schema and without contradictions. Raises FileError, naming the file."""
    raw = read_json(folder / RUN, "run", HINT)
    wrong = next(_contradictions(raw), None)
    if wrong:
        raise FileError(f"{folder / RUN}: {wrong}")
    return raw


def read_rows(folder: Path) -> list[dict[str, str]]:
    """The rows of iterations.csv in `folder`, by column. Raises FileError, naming the file."""
    path = folder / ITERATIONS
    try:
        return list(csv.DictReader(read_text(path, HINT).splitlines()))
    except csv.Error as error:
        raise FileError(f"{path}: not a CSV file: {error}") from None


def read_iterations(folder: Path, raw: Mapping[str, Any]) -> FloatArray:
    """Seconds of each iteration that iterations.csv in `folder` has. raw: its run.json.

    Raises FileError, naming the file, where they are no times or not those that run.json counts: all of them, but in a
    resumed run the last ones may be all that is there.
    """
    path = folder / ITERATIONS
    try:
        rows = [(int(row["iteration"]), float(row["seconds"])) for row in read_rows(folder)]
    except (KeyError, TypeError, ValueError):
        raise FileError(f"{path}: has no numbers in the columns 'iteration' and 'seconds'") from None
    if not rows:
        raise FileError(f"{path}: has no iterations")
    for number, lasted in rows:
        if wrong := COLUMN_RULES["seconds"].wrong(lasted):
            raise FileError(f"{path}: seconds of iteration {number}: {wrong}")
    numbers, whole = [number for number, _ in rows], raw["iterations"]
    first = numbers[0] if raw["options"].get("resume") else 0
    if first < 0 or numbers != list(range(first, first + len(rows))) or numbers[-1] != whole - 1:
        counted = f"has {len(rows)} iterations, {numbers[0]} to {numbers[-1]}"
        raise FileError(f"{path}: {counted}; allowed: the {whole} of {RUN}, in a row")
    return np.array([lasted for _, lasted in rows])


def _contradictions(raw: Mapping[str, Any]) -> Iterator[str]:
    """Where a document that keeps the schema says two things, or what divides is 0."""
    workers, summary, place = raw["workers"], raw["summary"], raw.get("emulation")
    for name in ("inner", "boundary"):
        if len(raw[name]) != workers:
            yield f"{name} is of {len(raw[name])} workers, workers is {workers}"
    if wrong := wrong_aggregator(raw["options"]):
        yield f"options.{wrong}"
    if min(raw["widths"]) < 1:
        yield f"widths is {raw['widths']}; allowed: 1 or more each"
    if place is not None:
        hosts, each = place["hosts"], place["workers_per_host"]
        if hosts * each != workers:
            yield f"emulation is of {hosts} hosts x {each} workers, workers is {workers}"
        if not place["bandwidth"] > 0:
            yield f"emulation.bandwidth is {place['bandwidth']}; allowed: above 0"
    if summary is None:
        return
    if len(summary["workers"]) != workers:
        yield f"summary is of {len(summary['workers'])} workers, workers is {workers}"
    elif summary["slowest"] >= workers:
        yield f"summary.slowest is {summary['slowest']}, it has {workers} workers"
    if summary["warmup"] >= raw["iterations"]:
        yield f"summary.warmup is {summary['warmup']}; allowed: less than the {raw['iterations']} iterations"


@dataclass(frozen=True, slots=True)
class Shares:
    """One worker's means over the measured iterations, in seconds per iteration."""

    worker: Rank
    compute_s: Seconds
    """Its spans of the compute phase."""
    wait_s: Seconds
    """Its main stream was blocked."""
    transfer_s: Seconds
    """One of its transfers, sent or received, was under way: packing, copying, unpacking, and a wire from the sender's
    start until both ends are done (a receiver that waits for a sender transfers nothing)."""
    hidden_transfer_s: Seconds
    """That, while the main stream neither waited nor handled a transfer itself."""
    sampling_s: Seconds
    """Drawing, indexing and cache work on any stream."""
    exposed_sampling_s: Seconds
    """That, while the main stream waited or did it itself."""
    reduce_s: Seconds
    """The all-reduce."""
    optimizer_s: Seconds
    """The optimizer."""
    pack_s: Seconds
    """Packing and gathering of rows."""
    unpack_s: Seconds
    """Unpacking and scattering."""


CLUSTER: Final = "cluster.json"
SCHEMA: Final = "gcnsim.cluster/1"


@dataclass(frozen=True, slots=True)
class Cluster:
    """The servers that a run was trained on, `cluster.json` beside its `run.json`."""

    MAY_SAY_MORE: ClassVar = True

    hosts: OneOrMore
    workers_per_host: OneOrMore
    """Ranks in a row."""
    bandwidth: Positive
    """Bytes/s of each server's link in each direction, framing included, as `cluster.bandwidth` of a scenario."""
    measured: Positive
    """Payload bytes/s that the slowest server received while all sent at once."""

    @property
    def workers(self) -> int:
        """On all hosts."""
        return self.hosts * self.workers_per_host

    def facts(self) -> dict[str, Any]:
        """As plain JSON values, by the names that the `emulation` of a run.json has too."""
        return asdict(self) | {"latency_s": 0.0}


def write_cluster(path: str | Path, cluster: Cluster) -> None:
    """Write the file. Raises FileError."""
    with atomic_write(path, text=True) as file:
        file.write(json.dumps({"schema": SCHEMA, **asdict(cluster)}, indent=1, allow_nan=False) + "\n")


def read_cluster(path: str | Path) -> Cluster:
    """The cluster in the file at `path`. Raises FileError, naming the file and what is wrong with it."""
    raw = read_json(path, "cluster")
    counts = {name: int(raw[name]) for name in ("hosts", "workers_per_host")}
    return Cluster(**counts, bandwidth=raw["bandwidth"], measured=raw["measured"])
