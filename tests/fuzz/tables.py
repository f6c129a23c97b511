"""Readers of the project's own binary files: traces, profiles, timelines, sweeps; and of the profiler's traces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.cli.trace_profile import _is_trace
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
from gcnsim.planning.sweep_axes import read_axis
from gcnsim.planning.sweep_folder import begin, open_folder
from gcnsim.planning.sweep_points import points_of
from gcnsim.planning.sweep_question import read_question
from gcnsim.planning.sweep_run import run
from gcnsim.planning.sweep_table import read_filters
from gcnsim.planning.sweep_work import Cores
from gcnsim.records.recorded_run import read_measured
from gcnsim.records.trace_events import is_profiler_trace
from gcnsim.timeline.span import read_spans, write_spans
from gcnsim.trace import AccessTrace, read_trace, record_trace, write_trace
from gcnsim.trace.batches import BatchOrigin, BatchTrace, packed, read_batch_trace, write_batch_trace
from gcnsim.trace.stored_profile import is_profile, read_profile
from tests.fuzz.documents import DATA
from tests.fuzz.graphs import ring
from tests.fuzz.readers import Reader, file_named, put, text
from tests.gcnsim.records import made_traces
from tests.gcnsim.timeline.test_parquet import timeline


@cache
def trace() -> AccessTrace:
    """Of two workers on the ring."""
    owners = partition_graph(ring(), 2, "block")
    return record_trace(split(ring(), owners), owners, sampler="uniform", epsilon=0.5, iterations=3, seed=1)


def _traces(home: Path) -> None:
    (home / "0").mkdir()
    write_trace(home / "0" / "a.trace", trace())


def _profiles(home: Path) -> None:
    smallest = min((DATA / "profiles").glob("*.profile"), key=lambda path: path.stat().st_size)
    (home / "0").mkdir()
    shutil.copy(smallest, home / "0" / "a.profile")


def _profile(folder: Path) -> None:
    path = folder / "a.profile"
    is_profile(path)
    _is_trace(str(path))
    read_profile(path)


def _spans(home: Path) -> None:
    for number, size in enumerate((0, 40)):
        (home / str(number)).mkdir()
        write_spans(home / str(number) / "timeline.parquet", timeline(size), {"note": "fuzz"})


def _sweep(home: Path) -> None:
    """A finished sweep, and one that has parts."""
    requested = {"base": {"run": {"iterations": 2}, "cluster": {"gpus": 2, "gpus_per_server": 1}}, "interval": "none"}
    question = read_question(requested | {"axes": {"cluster.bandwidth": "5Gbps,10Gbps", "method.name": "full-graph"}})
    for name in ("0", "1"):
        run(question, home / name, lambda: Cores(1))
        (home / name / ".lock").unlink(missing_ok=True)
    (home / "1" / "parts").mkdir(exist_ok=True)
    (home / "1" / "results.parquet").rename(home / "1" / "parts" / "00000000-0.parquet")


def _read_sweep(folder: Path) -> None:
    found = open_folder(folder)
    begin(folder, found.question, found.points, {})
    found.table()
    found.done()
    next(iter(points_of(found.question)), None)


def _profiler(home: Path) -> None:
    made_traces.folder(home / "0")
    (home / "0" / "settings.json").unlink()
    sound = json.dumps(made_traces.document(made_traces.cuda_events(0, steps=3)))
    put(home / "1" / "t.json", sound)
    # With a number that JSON does not have.
    put(home / "2" / "t.json", sound.replace("{", '{"loss": NaN, "most": -Infinity, ', 1))


def _read_profiler(folder: Path) -> None:
    is_profiler_trace(folder)
    for path in folder.iterdir():
        is_profiler_trace(path)
    read_measured(folder)


def _batches(home: Path) -> None:
    """Of three iterations of two workers on ten nodes."""
    inputs = np.zeros((2, 3, 10), np.bool_)
    inputs[:, :, :4] = True
    levels = np.tile(np.array([4, 3, 2], np.int64), (3, 2, 1))
    found = BatchTrace(
        BatchOrigin("ring", "ab12", "distdgl", 0, 2),
        10,
        levels,
        levels[:, :, :2] * 2,
        levels[:, :, 0] * 3,
        tuple(packed(item) for item in inputs),
        tuple(packed(np.arange(10) < 3 * rank) for rank in range(2)),
        np.full(2, 10, np.int64),
        (np.arange(10) % 2).astype(np.int32),
    )
    for number, batch_trace in enumerate((found, replace(found, owner=None))):
        (home / str(number)).mkdir()
        write_batch_trace(home / str(number) / "a.trace", batch_trace)


AXES: Final = (read_axis("cluster.bandwidth", "5Gbps,10Gbps", ""), read_axis("method.tau", "0..2", ""))
FILTERS: Final = (
    "iteration_s < 0.5\ncluster.bandwidth >= 10Gbps",
    "method in psc-gcn,pipegcn",
    "method.tau <= 1 if cluster.bandwidth < 10Gbps",
)
POINT: Final = {"cluster.bandwidth": "5Gbps", "method.tau": 1, "iteration_s": 0.25, "method": "psc-gcn"}


def _filter(folder: Path) -> None:
    lines = (folder / "where.txt").read_bytes().decode("utf-8", "replace").splitlines()
    read_filters(lines, AXES)(POINT)


def readers() -> Iterator[Reader]:
    """All of this file."""
    yield Reader("access trace", _traces, file_named(read_trace, "a.trace"))
    yield Reader("batch trace", _batches, file_named(read_batch_trace, "a.trace"))
    yield Reader("filter of a sweep", text("where.txt", *FILTERS), _filter)
    yield Reader("profile", _profiles, _profile)
    yield Reader("timeline", _spans, file_named(read_spans, "timeline.parquet"))
    yield Reader("folder of a sweep", _sweep, _read_sweep)
    yield Reader("profiler traces", _profiler, _read_profiler)
