"""Readers of the project's own binary files: traces, profiles, timelines, sweeps; and of the profiler's traces."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

from gcnsim.boundary.files import is_profile, read_profile
from gcnsim.cli.trace_profile import _is_trace
from gcnsim.partition import partition_graph, split
from gcnsim.runs.measured import read_measured
from gcnsim.sweeps import read_question
from gcnsim.sweeps.executors import Cores
from gcnsim.sweeps.folder import begin, open_folder
from gcnsim.sweeps.points import points_of
from gcnsim.sweeps.run import run
from gcnsim.timeline.parquet import read_spans, write_spans
from gcnsim.torch_profiler.profiled_run import is_profiler_trace
from gcnsim.trace import AccessTrace, read_trace, record_trace, write_trace
from tests.fuzz.documents import DATA
from tests.fuzz.graphs import ring
from tests.fuzz.readers import Reader, file_named, put
from tests.gcnsim.timeline.test_parquet import timeline
from tests.gcnsim.torch_profiler import made_traces


@cache
def trace() -> AccessTrace:
    """Of two workers on the ring."""
    owners = partition_graph(ring(), 2, "block")
    return record_trace(split(ring(), owners), owners, sampler="uniform", epsilon=0.5, iterations=3, seed=1)


def _traces(home: Path) -> None:
    for number, each in enumerate((trace(), _plain())):
        (home / str(number)).mkdir()
        write_trace(home / str(number) / "a.trace", each)


def _plain() -> AccessTrace:
    """Without what batches use again, as older files are."""
    return replace(trace(), workers=tuple(replace(each, reuse=None) for each in trace().workers))


def _profiles(home: Path) -> None:
    smallest = min((DATA / "profiles").glob("*.profile"), key=lambda each: each.stat().st_size)
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
    asked = {"base": {"run": {"iterations": 2}, "cluster": {"gpus": 2, "gpus_per_server": 1}}, "interval": "none"}
    question = read_question(asked | {"axes": {"cluster.bandwidth": "5Gbps,10Gbps", "method.name": "full-graph"}})
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
    put(home / "1" / "t.json", json.dumps(made_traces.document(made_traces.cuda_events(0, steps=3))))


def _read_profiler(folder: Path) -> None:
    is_profiler_trace(folder)
    for each in folder.iterdir():
        is_profiler_trace(each)
    read_measured(folder)


def readers() -> Iterator[Reader]:
    """All of this file."""
    yield Reader("access trace", _traces, file_named(read_trace, "a.trace"))
    yield Reader("profile", _profiles, _profile)
    yield Reader("timeline", _spans, file_named(read_spans, "timeline.parquet"))
    yield Reader("folder of a sweep", _sweep, _read_sweep)
    yield Reader("profiler traces", _profiler, _read_profiler)
