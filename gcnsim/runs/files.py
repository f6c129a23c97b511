"""The files that say what a run was, run.json and iterations.csv: read, and held to each other."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.errors import FileError
from gcnsim.fields import Number
from gcnsim.fields.columns import COUNT, FINITE, SHARE
from gcnsim.ids import FloatArray
from gcnsim.io.json_files import read_json, read_text

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
        found = f"has {len(rows)} iterations, {numbers[0]} to {numbers[-1]}"
        raise FileError(f"{path}: {found}; allowed: the {whole} of {RUN}, in a row")
    return np.array([lasted for _, lasted in rows])


def _contradictions(raw: Mapping[str, Any]) -> Iterator[str]:
    """Where a document that keeps the schema says two things, or what divides is 0."""
    workers, summary, place = raw["workers"], raw["summary"], raw.get("emulation")
    for name in ("inner", "boundary"):
        if len(raw[name]) != workers:
            yield f"{name} is of {len(raw[name])} workers, workers is {workers}"
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
