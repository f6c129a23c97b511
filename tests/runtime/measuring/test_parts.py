"""Parts that are measured: their memory, the processes beside them, and what recorded runs trained."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from gcnsim.core.container import read_parquet_table
from gcnsim.core.processes import cores
from runtime.data import DatasetCache
from runtime.exchange import Mail
from runtime.measure import main
from runtime.measuring.document import KEY
from runtime.measuring.neighbours import Neighbours, cores_apart, on_cores
from runtime.measuring.part import PartRecord, PartRun, asked_bytes, free_bytes, needed_bytes, sizes_of
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import worked

HERE = sorted(os.sched_getaffinity(0))[: cores()]


@pytest.fixture
def neighbours(options: MakeOptions) -> Iterator[Neighbours]:
    """One process, which has read the graph."""
    settings = [options(method, knobs, workers=2) for method, knobs in (("full-graph", {}), ("psc-gcn", {"tau": 1}))]
    started = Neighbours(settings, [HERE[-1:]], None)
    try:
        started.wait()
        yield started
    finally:
        started.close()


def processor_s(process: int) -> float:
    """Seconds that the process ran."""
    with open(f"/proc/{process}/stat", encoding="utf-8") as file:
        fields = file.read().rsplit(") ", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_a_neighbour_trains_what_it_was_told_on_its_core(neighbours: Neighbours) -> None:
    (process,) = neighbours.processes
    for setting in (0, 1, 0):
        neighbours.train(setting)
        before, end = processor_s(process.pid), time.monotonic() + 30
        while processor_s(process.pid) < before + 0.3:
            assert time.monotonic() < end, f"setting {setting}: it does not train"
            time.sleep(0.02)
        assert neighbours.count == 1
    assert os.sched_getaffinity(process.pid) == set(HERE[-1:])
    process.kill()
    process.wait()
    assert neighbours.count == 0, "one that ended is not counted"
    neighbours.train(0)
    neighbours.wait()
    neighbours.close()
    assert neighbours.count == 0


def test_each_process_has_as_many_cores_as_a_part_has_threads() -> None:
    assert cores_apart(1, 99) == [[core] for core in HERE]
    assert cores_apart(1, 1) == [HERE[:1]]
    assert cores_apart(len(HERE), 99) == [HERE]
    assert cores_apart(len(HERE) + 1, 99) == [HERE]


def test_afterwards_a_thread_may_use_all_cores_again() -> None:
    with on_cores(HERE[:1]):
        assert os.sched_getaffinity(0) == set(HERE[:1])
    assert os.sched_getaffinity(0) >= set(HERE)


@pytest.fixture(autouse=True)
def _apart(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """In a folder of its own; memory and signals of the tests' process stay as they are."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("runtime.measuring.document.disable_malloc_trim", lambda: False)
    old = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, old)


def test_what_recorded_runs_trained_is_measured_once(crew: Crew, case: Case, tmp_path: Path) -> None:
    given = ["--graph", str(case.path), "--partition-method", "random", "--hidden", "8", "--threads", "1"]
    given += ["--iterations", "8", "--workers", "2", "--quiet"]
    for name, words in {"a": [], "b": ["--seed", "0"], "c": ["--method", "pipegcn"]}.items():
        trace = str(tmp_path / "runs" / name / "access.trace")
        crew.run(2, worked, [*given, "--out", f"runs/{name}", "--save-trace", trace, *words], str(tmp_path))
    assert main(["--runs", "runs", "--seconds", "0.4", "--quiet"]) == 0
    (path,) = (tmp_path / "measured").iterdir()
    head = json.loads(read_parquet_table(path).schema.metadata[KEY.encode()])
    assert [setting["method"] for setting in head["settings"]] == ["full-graph", "pipegcn"]
    before = path.stat().st_mtime_ns
    assert main(["--runs", "runs/a", "--runs", "runs/b", "--runs", "runs/c", "--seconds", "0.4", "--quiet"]) == 0
    assert path.stat().st_mtime_ns == before, "what is there is not measured again"


def test_sizes_are_those_of_the_parts(case: Case) -> None:
    owners = case.owners(3)
    for part in case.parts(3):
        found = sizes_of(case.graph, owners, part.rank)
        assert (found.inner, found.boundary, found.entries) == (part.inner_nodes, part.boundary_nodes, part.entries)


@pytest.mark.parametrize("method", ["full-graph", "psc-gcn"])
@pytest.mark.parametrize("model", ["gcn", "gat"])
def test_no_less_is_foretold_than_tensors_take(case: Case, options: MakeOptions, method: str, model: str) -> None:
    given = options(method, {}, model=model, workers=2)
    record = PartRecord(0)
    run = PartRun(record, replace(given, iterations=10**9), torch.device("cpu"), DatasetCache(), Mail())
    run.train(2, measured=False)
    run.close()
    assert record.peak_bytes is not None
    needed = needed_bytes(sizes_of(case.graph, case.owners(2), 0), given, (7, 6, 6, 4), 0)
    assert record.peak_bytes < needed < 10 * record.peak_bytes


def test_more_rows_ages_draws_and_stored_features_need_more(case: Case, options: MakeOptions) -> None:
    sizes, widths = sizes_of(case.graph, case.owners(2), 0), (7, 6, 6, 4)
    least = needed_bytes(sizes, options(), widths, 0)
    assert least < needed_bytes(sizes, options(), (70, 6, 6, 4), 0)
    assert least < needed_bytes(sizes, options(), widths, 50)
    drawn = [needed_bytes(sizes, options("psc-gcn", {"tau": tau}), widths, 0) for tau in (1, 4)]
    assert least < drawn[0] < drawn[1]


def test_free_memory_is_no_more_than_the_machine_has() -> None:
    free = free_bytes()
    assert free is None or 0 < free < 1 << 50


@pytest.mark.parametrize(
    ("message", "nbytes"),
    [
        ("CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of 14.6 GiB", 2.5 * (1 << 30)),
        ("CUDA out of memory. Tried to allocate 20.00 MiB.", 20 << 20),
        ("something else", 0),
    ],
)
def test_what_a_gpu_was_asked_for_is_in_its_message(message: str, nbytes: float) -> None:
    assert asked_bytes(message) == nbytes
