"""The folder a run leaves: `run.json`, `iterations.csv`, `timeline.parquet`, `norms-<iteration>.bin` (docs/files.md).

Each file is replaced as a whole, so that a folder is readable at any moment of a run. A run that replaces an earlier
one does so file by file; what `run.json` does not name is none of the run's.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from gcnsim.errors import FileError
from gcnsim.graph import Graph
from gcnsim.ids import Float32Array, Iteration
from gcnsim.io.atomic import atomic_write
from gcnsim.io.json_files import mistake, parse_json, read_json, read_text
from gcnsim.sampling.norms import read_norms, write_norms
from gcnsim.timeline import Timeline
from gcnsim.timeline.parquet import read_spans, write_spans
from runtime.record.rows import IterationRow, read_iterations, write_iterations

SCHEMA: Final = "gcnsim.run/1"
RUN, ITERATIONS, TIMELINE = "run.json", "iterations.csv", "timeline.parquet"

_FROZEN: Final = ("inner", "boundary", "widths", "bytes", "peak_memory", "norms", "tensors")
"""Fields that are tuples, where JSON has lists."""


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The facts in `run.json`; the keys and their meaning are those of `gcnsim/data/run.schema.json`.

    bytes: by kind of payload (rows, gradients, ids, norms, cache), bytes sent as [sender][receiver]. accuracy: train,
    val, test. emulation: of the cluster, None where it is a real one. norms: iterations whose norms files belong to the
    run. summary: `Summary.asdict()`, None until known. tensors: of each worker, bytes by component
    (`runtime.train.memory_usage`); None in older records, until known, and where they could not be counted. threads:
    CPU threads that worker 0 computed with, as all of its machine did; None in older records.
    """

    versions: Mapping[str, str]
    hardware: Mapping[str, Any]
    emulation: Mapping[str, Any] | None
    backend: str
    options: Mapping[str, Any]
    seed: int
    workers: int
    graph: Mapping[str, str]
    partition: Mapping[str, str]
    inner: tuple[int, ...]
    boundary: tuple[int, ...]
    widths: tuple[int, ...]
    parameters: int
    iterations: int
    finished: bool
    bytes: Mapping[str, tuple[tuple[int, ...], ...]]
    hit_rate: float | None
    peak_memory: tuple[Mapping[str, int | None], ...]
    accuracy: Mapping[str, float | None]
    norms: tuple[Iteration, ...]
    summary: Mapping[str, Any] | None
    tensors: tuple[Mapping[str, int], ...] | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class Run:
    """A run folder that was read: its facts and iterations; its large files on request. Each raises FileError."""

    path: Path
    record: RunRecord
    iterations: tuple[IterationRow, ...]

    def timeline(self) -> Timeline:
        """All workers' spans."""
        return read_spans(self.path / TIMELINE)

    def norms(self, iteration: Iteration, graph: Graph) -> Float32Array:
        """s_j of every node of `graph`, float32[N], measured in `iteration` (one of `record.norms`)."""
        return read_norms(self.path / norms_name(iteration), graph)


def norms_name(iteration: Iteration) -> str:
    """The file of the norms measured in `iteration`."""
    return f"norms-{iteration}.bin"


class RunFolder:
    """A folder to write a run into; made if need be.

    Raises FileError when it cannot be made, or holds something else than a run.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            pass
        except OSError as error:
            raise FileError(f"{path}: cannot be used as a folder: {error.strerror}") from None
        refuse_foreign(self.path)

    def write_record(self, record: RunRecord) -> None:
        """Write `run.json`. Raises FileError when it cannot be written, ValueError for facts that break its schema."""
        document = {"schema": SCHEMA, **asdict(record)}
        text = json.dumps(document, indent=1, allow_nan=False)
        plain = json.loads(text)
        wrong = mistake(plain, "run") or _uneven(plain)
        if wrong:
            raise ValueError(f"{RUN}: {wrong}")
        with atomic_write(self.path / RUN, text=True) as file:
            file.write(text + "\n")

    def write_iterations(self, rows: Iterable[IterationRow]) -> None:
        """Write `iterations.csv`. Raises FileError."""
        write_iterations(self.path / ITERATIONS, rows)

    def earlier_iterations(self, before: Iteration) -> tuple[IterationRow, ...]:
        """The rows below iteration `before` that an interrupted run left; none without its file. Raises FileError."""
        if not (self.path / ITERATIONS).exists():
            return ()
        return tuple(row for row in read_iterations(self.path / ITERATIONS) if row.iteration < before)

    def write_timeline(self, timeline: Timeline, about: Mapping[str, str]) -> None:
        """Write `timeline.parquet`; about: text for its metadata. Raises FileError."""
        write_spans(self.path / TIMELINE, timeline, dict(about))

    def write_norms(self, iteration: Iteration, norms: Float32Array, graph_hash: str) -> None:
        """Write the norms s_j of every node, float32[N], measured in `iteration`. Raises FileError."""
        write_norms(self.path / norms_name(iteration), norms, graph_hash)


def holds_run(path: Path) -> bool:
    """Whether there is a folder with a run at `path`. Raises FileError unless it could become one."""
    refuse_foreign(path)
    return (path / RUN).exists()


def refuse_foreign(path: Path) -> None:
    """Raise FileError unless `path` can be made, or is an empty folder, or that of a run."""
    try:
        held = any(path.iterdir())
    except FileNotFoundError:
        above = next(parent for parent in path.absolute().parents if parent.exists())
        if not os.access(above, os.W_OK | os.X_OK):
            raise FileError(f"{path}: cannot be made in {above}: Permission denied") from None
        return
    except NotADirectoryError:
        what = "is a file" if path.exists() else "lies in a file"
        raise FileError(f"{path}: {what}; allowed: a new or empty folder, or that of a run") from None
    except OSError as error:
        raise FileError(f"{path}: cannot be used as a folder: {error.strerror}") from None
    if held and not _is_run(path / RUN):
        raise FileError(f"{path}: holds files but no run; allowed: a new or empty folder, or that of a run")


def read_run(path: str | Path) -> Run:
    """The run in the folder `path`. Raises FileError, naming the file and what is wrong with it."""
    folder = Path(path)
    document = read_json(folder / RUN, "run")
    wrong = _uneven(document)
    if wrong:
        raise FileError(f"{folder / RUN}: {wrong}")
    facts: dict[str, Any] = {field.name: document.get(field.name) for field in fields(RunRecord)}
    record = RunRecord(**facts | {name: _tupled(facts[name]) for name in _FROZEN})
    rows = read_iterations(folder / ITERATIONS)
    if record.finished and (not rows or rows[-1].iteration + 1 != record.iterations):
        last = f"ends at iteration {rows[-1].iteration}" if rows else "has no iterations"
        raise FileError(f"{folder / ITERATIONS}: {last}, {RUN} says {record.iterations} are done")
    return Run(folder, record, rows)


def _is_run(path: Path) -> bool:
    """Whether `path` is the `run.json` of any version of ours."""
    try:
        found = parse_json(read_text(path), path)
    except FileError:
        return False
    return isinstance(found, dict) and str(found.get("schema")).startswith("gcnsim.run/")


def _uneven(document: dict[str, Any]) -> str | None:
    """The first list of a `run.json` that has not one entry for each worker."""
    workers = document["workers"]
    lists = {name: document[name] for name in ("inner", "boundary", "peak_memory")}
    for kind, table in document["bytes"].items():
        lists |= {f"bytes.{kind}": table} | {f"bytes.{kind}[{i}]": row for i, row in enumerate(table)}
    short = ((name, len(each)) for name, each in lists.items() if len(each) != workers)
    return next((f"{name} has {size} entries for {workers} workers" for name, size in short), None)


def _tupled(value: Any) -> Any:
    """`value` with tuples for lists."""
    if isinstance(value, list):
        return tuple(_tupled(item) for item in value)
    if isinstance(value, dict):
        return {name: _tupled(item) for name, item in value.items()}
    return value
