"""The folder of a run: `run.json`, `iterations.csv`, `timeline.parquet`, `norms-<iteration>.bin` (docs/files.md).

Each file is replaced atomically, so that a folder is readable at any moment of a run. A run that replaces an earlier
one does so file by file; files that `run.json` does not name do not belong to the run.

The progress line, the log of losses and `iterations.csv` show the same values of an iteration.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Final, NotRequired, TypeAlias, TypedDict

from gcnsim.core.atomic import atomic_write, writable
from gcnsim.core.errors import FileError
from gcnsim.core.ids import Float32Array, Iteration
from gcnsim.core.json_files import mistake, parse_json, read_json, read_text
from gcnsim.core.shapes import SINCE, As, Count, Keys, OneOrMore, Share, Within
from gcnsim.graph import Graph
from gcnsim.records.run_files import COLUMN_RULES
from gcnsim.timeline import Timeline
from gcnsim.timeline.span import read_spans, write_spans
from gcnsim.workload.samplers import read_norms, write_norms
from runtime.record.machine import MachineFacts, PeakMemory, Versions
from runtime.record.summary import Summary


@dataclass(frozen=True, slots=True)
class IterationRow:
    """One iteration. seconds: its length. loss: global, before its step; None if workers only wait.

    bytes_sent: by all workers. Accuracies are shares of one, None if not evaluated. hit_rate: of the feature cache,
    None without one. wait_s: waiting of the recording worker's main stream, None without a record.
    """

    iteration: Iteration
    seconds: float
    loss: float | None
    train_accuracy: float | None
    val_accuracy: float | None
    bytes_sent: int
    hit_rate: float | None
    wait_s: float | None


COLUMNS: Final = tuple(field.name for field in fields(IterationRow))
_MAY_BE_EMPTY: Final = ("loss", "train_accuracy", "val_accuracy", "hit_rate", "wait_s")
_LOSSES: Final = ("iteration", "loss")
_ITERATION: Final = re.compile("[0-9]{1,18}")
"""The most digits of an iteration number."""


def write_iterations(path: str | Path, rows: Iterable[IterationRow]) -> None:
    """Write `rows` as CSV with exact numbers; None is empty. Raises FileError if it cannot be written."""
    with atomic_write(path, text=True) as file:
        file.write(_line(COLUMNS))
        for row in rows:
            file.write(_line(getattr(row, name) for name in COLUMNS))


def read_iterations(path: str | Path) -> tuple[IterationRow, ...]:
    """Read the rows of a file from `write_iterations`.

    Raises FileError, with the line, if it is missing or damaged, or if its iterations are not consecutive.
    """
    rows: list[IterationRow] = []
    for number, texts in _lines(path, COLUMNS):
        try:
            values = {
                name: None if text == "" and name in _MAY_BE_EMPTY else float(text)
                for name, text in zip(COLUMNS, texts, strict=True)
            }
            whole = {name: int(texts[COLUMNS.index(name)]) for name in ("iteration", "bytes_sent")}
        except ValueError:
            raise FileError(f"{path}:{number}: {','.join(texts)!r} is not a row of {','.join(COLUMNS)}") from None
        for name, value in (values | whole).items():
            if value is not None and (wrong := COLUMN_RULES[name].wrong(value)):
                raise FileError(f"{path}:{number}: {name}: {wrong}")
        row = IterationRow(**(values | whole))  # type: ignore[arg-type]
        if rows and row.iteration != rows[-1].iteration + 1:
            raise FileError(f"{path}:{number}: iteration {row.iteration} follows {rows[-1].iteration}")
        rows.append(row)
    return tuple(rows)


class LossLog:
    """A CSV `iteration,loss` that grows by a line per iteration and survives a crash.

    resume_from: the first iteration to log. Earlier lines of an existing log are kept, the rest is dropped; 0 starts a
    new one. Raises FileError if the file cannot be read as such a log, or not written.
    """

    def __init__(self, path: str | Path, resume_from: Iteration = 0) -> None:
        self._path = path
        rows = self._kept(resume_from) if writable(path) and resume_from else []
        with atomic_write(path, text=True) as file:
            file.write(_line(_LOSSES))
            for row in rows:
                file.write(_line(row))
        try:
            self._file = open(path, "ab", buffering=0)  # noqa: SIM115 - open while the run lasts
        except OSError as error:
            raise FileError(f"{path}: cannot be written: {error.strerror}") from None

    def add(self, iteration: Iteration, loss: float) -> None:
        """Log the exact global loss of one iteration."""
        line = _line((iteration, float(loss))).encode()
        try:
            # Unbuffered: data that a full disk refuses would be retried, and fail again, at the end.
            while line:
                line = line[self._file.write(line) :]
        except OSError as error:
            raise FileError(f"{self._path}: cannot be written: {error.strerror}") from None

    def close(self) -> None:
        """End the log."""
        self._file.close()

    def _kept(self, resume_from: Iteration) -> list[Sequence[str]]:
        if not Path(self._path).exists():
            return []
        rows: list[Sequence[str]] = []
        for number, texts in _lines(self._path, _LOSSES):
            if len(texts) != len(_LOSSES) or not _ITERATION.fullmatch(texts[0]):
                raise FileError(f"{self._path}:{number}: {','.join(texts)!r} is not a row of {','.join(_LOSSES)}")
            if int(texts[0]) < resume_from:
                rows.append(texts)
        return rows


def _line(values: Iterable[object]) -> str:
    """One line of CSV; a float as the shortest text that reads back as the same float."""
    return ",".join("" if value is None else str(value) for value in values) + "\n"


def _lines(path: str | Path, header: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """The line number and cells of each row below `header`.

    An incomplete last line, from a killed process, is left out.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise FileError(f"{path}: cannot be read: {reason}") from None
    first, *rows = text[: text.rfind("\n") + 1].split("\n")
    if first != ",".join(header):
        raise FileError(f"{path}: starts with {first[:60]!r}, wanted {','.join(header)}")
    for number, row in enumerate(rows[:-1], start=2):
        yield number, row.split(",")


SCHEMA: Final = "gcnsim.run/1"
RUN, ITERATIONS, TIMELINE = "run.json", "iterations.csv", "timeline.parquet"

_FROZEN: Final = ("inner", "boundary", "widths", "bytes", "peak_memory", "norms", "tensors")
"""Fields that are tuples, where JSON has lists."""


KnownShare: TypeAlias = Annotated[Share | None, "A share of one; null: not known."]
Sent: TypeAlias = Annotated[tuple[tuple[Count, ...], ...], "Bytes sent in the whole run, [sender][receiver]."]


class RecordedKnobs(TypedDict, total=False):
    """Of the method; more than these, numbers and words."""

    tau: Count
    epsilon: Share
    rate: Share


class RecordedOptions(TypedDict):
    """Every option of the run; of those that decide what happens, the types."""

    method: str
    model: str
    norm: str
    overlap: str
    device: str
    seed: Count
    save_trace: NotRequired[str | None]
    knobs: Annotated[Mapping[str, Any], As(RecordedKnobs, float | str | None)]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The facts of one training run, as `python -m runtime.train --out DIR` writes them to run.json. Seconds, bytes,
    shares of one."""

    versions: Versions
    hardware: Annotated[Mapping[str, Any], As(MachineFacts)]
    """The machine of worker 0."""
    emulation: Mapping[str, Any] | None
    """The cluster that runtime.emulate made; null on a real one."""
    backend: str
    """Of the process group: gloo or nccl."""
    options: Annotated[Mapping[str, Any], As(RecordedOptions, Any)]
    seed: Count
    workers: OneOrMore
    graph: Annotated[Mapping[str, str], As(Keys.of(("name", "hash"), str))]
    partition: Annotated[Mapping[str, str], As(Keys.of(("method", "hash"), str))]
    inner: tuple[Count, ...]
    """Inner nodes of each worker."""
    boundary: tuple[Count, ...]
    """Boundary nodes of each worker."""
    widths: Annotated[tuple[Count, ...], Within(min_items=2)]
    """Widths of the rows before the first and after each layer."""
    parameters: Count
    """Numbers in the model's parameters."""
    iterations: Count
    """Iterations done, those before a resume included."""
    finished: bool
    """Whether these are all that were asked for."""
    bytes: Annotated[
        Mapping[str, tuple[tuple[int, ...], ...]], As(Keys.of(("rows", "gradients", "ids", "norms", "cache"), Sent))
    ]
    """Payload of the messages between workers, by kind."""
    hit_rate: KnownShare
    peak_memory: Annotated[tuple[Mapping[str, int | None], ...], As(tuple[PeakMemory, ...])]
    """Of each worker's process; device_bytes is null without a GPU."""
    accuracy: Annotated[Mapping[str, float | None], As(Keys.of(("train", "val", "test"), KnownShare))]
    norms: tuple[Iteration, ...]
    """Iterations whose norms-<iteration>.bin belong to the run."""
    summary: Annotated[Mapping[str, Any] | None, As(Summary | None)]
    """Where the time went; null until the run has ended, or when nothing was recorded."""
    tensors: tuple[Mapping[str, Count], ...] | None = field(default=None, metadata=SINCE)
    """Of each worker, bytes of its tensors by component: features, adjacency, activations, boundary, cache, model,
    gradients, optimizer, evaluation. Not in older records; null until known and where they were not counted."""
    threads: OneOrMore | None = field(default=None, metadata=SINCE)
    """CPU threads that worker 0 computed with, as all of its machine did. Not in older records."""


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
    """A folder for the files of a run; created if needed.

    Raises FileError if it cannot be created, or contains something other than a run.
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
        """The rows below iteration `before` from an interrupted run; empty without its file. Raises FileError."""
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
    """Whether there is a folder with a run at `path`. Raises FileError if it could not become one."""
    refuse_foreign(path)
    return (path / RUN).exists()


def refuse_foreign(path: Path) -> None:
    """Raise FileError unless `path` can be created, or is an empty folder, or contains a run."""
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
    facts: dict[str, Any] = {entry.name: document.get(entry.name) for entry in fields(RunRecord)}
    record = RunRecord(**facts | {name: _tupled(facts[name]) for name in _FROZEN})
    rows = read_iterations(folder / ITERATIONS)
    if record.finished and (not rows or rows[-1].iteration + 1 != record.iterations):
        last = f"ends at iteration {rows[-1].iteration}" if rows else "has no iterations"
        raise FileError(f"{folder / ITERATIONS}: {last}, {RUN} says {record.iterations} are done")
    return Run(folder, record, rows)


def _is_run(path: Path) -> bool:
    """Whether `path` is a `run.json` of any version of gcnsim."""
    try:
        found = parse_json(read_text(path), path)
    except FileError:
        return False
    return isinstance(found, dict) and str(found.get("schema")).startswith("gcnsim.run/")


def _uneven(document: dict[str, Any]) -> str | None:
    """The first list of a `run.json` whose length differs from the number of workers."""
    workers = document["workers"]
    lists = {name: document[name] for name in ("inner", "boundary", "peak_memory")}
    for kind, table in document["bytes"].items():
        lists |= {f"bytes.{kind}": table} | {f"bytes.{kind}[{i}]": row for i, row in enumerate(table)}
    short = ((name, len(value)) for name, value in lists.items() if len(value) != workers)
    return next((f"{name} has {size} entries for {workers} workers" for name, size in short), None)


def _tupled(value: Any) -> Any:
    """`value` with tuples for lists."""
    if isinstance(value, list):
        return tuple(_tupled(item) for item in value)
    if isinstance(value, dict):
        return {name: _tupled(item) for name, item in value.items()}
    return value
