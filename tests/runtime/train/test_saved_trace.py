"""The access trace of a run: the bytes that the simulator records for the same draws, replayed there unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.api import simulate
from gcnsim.evidence.recorded_run import refuse_other_trace, scenario_of
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.trace import AccessTrace, read_trace, record_trace, write_trace
from gcnsim.trace.access import counts
from gcnsim.workload.caching import parse_cache
from runtime.options import Options
from runtime.record import read_run
from tests.runtime.conftest import Case, MakeOptions, mostly
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran, ran_keeping, refused

WORKERS, ITERATIONS = 3, 8


def _saving(options: MakeOptions, folder: Path, method: str, knobs: dict[str, Any], **fields: Any) -> Options:
    usual = {"workers": WORKERS, "iterations": ITERATIONS, "seed": 5, "save_trace": str(folder / "run.trace")}
    return options(method, knobs, **(usual | {"out": str(folder / "run")} | fields))


def _drawn_by_the_simulator(case: Case, path: Path, sampler: str, epsilon: float) -> bytes:
    trace = record_trace(
        case.parts(WORKERS),
        case.owners(WORKERS),
        sampler=sampler,
        epsilon=epsilon,
        iterations=ITERATIONS,
        seed=5,
    )
    write_trace(path, trace)
    return path.read_bytes()


@pytest.mark.parametrize(("cache", "tau"), mostly([("0%", 0), ("40%", 2)], ("0%", "40%"), (0, 2)))
def test_uniform_draws_are_the_simulators_byte_for_byte(
    crew: Crew, options: MakeOptions, case: Case, tmp_path: Path, tau: int, cache: str
) -> None:
    knobs = {"tau": tau, "epsilon": 0.3, "sampler": "uniform", "cache": cache}
    crew.run(WORKERS, ran, _saving(options, tmp_path, "psc-gcn", knobs))
    wanted = _drawn_by_the_simulator(case, tmp_path / "wanted.trace", "uniform", 0.3)
    assert (tmp_path / "run.trace").read_bytes() == wanted


@pytest.mark.parametrize(
    ("method", "knobs"),
    [
        ("full-graph", {}),
        ("pipegcn", {}),
        ("psc-gcn", {"epsilon": 1.0}),
        ("bns-gcn", {"rate": 1.0}),
        ("sancus", {}),
        ("cagnet-1.5d", {"replication": 3}),
    ],
    ids=["full-graph", "pipegcn", "psc-gcn", "bns-gcn", "sancus", "cagnet-1.5d"],
)
def test_whole_graphs_are_the_simulators_too(
    crew: Crew, options: MakeOptions, case: Case, tmp_path: Path, method: str, knobs: dict[str, Any]
) -> None:
    crew.run(WORKERS, ran, _saving(options, tmp_path, method, knobs))
    wanted = _drawn_by_the_simulator(case, tmp_path / "wanted.trace", "full", 1.0)
    assert (tmp_path / "run.trace").read_bytes() == wanted


def test_a_trace_whose_beginning_was_not_saved_is_refused(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    requested = _saving(options, tmp_path, "full-graph", {}, iterations=3, checkpoint_every=3, save_trace=None)
    crew.run(WORKERS, ran, requested)
    content = crew.run(WORKERS, refused, _saving(options, tmp_path, "full-graph", {}, resume=str(tmp_path / "run")))
    assert content[0].endswith(
        "checkpoints/000003: saved without --save-trace: the graphs of its 3 iterations are gone"
    )


def test_a_record_has_its_trace_and_goes_on_from_a_checkpoint(
    crew: Crew, options: MakeOptions, tmp_path: Path, case: Case
) -> None:
    knobs, home = {"tau": 2, "epsilon": 0.3, "sampler": "uniform"}, tmp_path / "run"
    usual: dict[str, Any] = {"save_trace": None, "record": True, "threads": None, "dtype": "float32"}
    crew.run(WORKERS, ran, _saving(options, tmp_path, "psc-gcn", knobs, iterations=3, checkpoint_every=3, **usual))
    crew.run(WORKERS, ran, _saving(options, tmp_path, "psc-gcn", knobs, resume=str(home), **usual))
    wanted = _drawn_by_the_simulator(case, tmp_path / "wanted.trace", "uniform", 0.3)
    assert (home / "access.trace").read_bytes() == wanted
    assert json.loads((home / "run.json").read_text())["threads"] == 1
    run = read_recorded_run(home)
    refuse_other_trace(run, scenario_of(run))  # what validate needs of a run is there by default


def test_a_record_keeps_the_first_graphs_and_a_trace_that_was_asked_for_all(
    crew: Crew, options: MakeOptions, tmp_path: Path
) -> None:
    for name, requested in (("record", None), ("asked", str(tmp_path / "all.trace"))):
        usual: dict[str, Any] = {"record": True, "out": str(tmp_path / name), "save_trace": requested}
        crew.run(WORKERS, ran_keeping, _saving(options, tmp_path, "psc-gcn", {"epsilon": 0.3}, **usual), 3)
    access_trace = read_trace(tmp_path / "record" / "access.trace")
    whole = read_trace(tmp_path / "all.trace")
    assert (access_trace.iterations, whole.iterations) == (3, ITERATIONS)
    assert np.array_equal(access_trace.edges, whole.edges[:3])


def test_a_record_that_goes_on_from_a_checkpoint_without_graphs_has_no_trace(
    crew: Crew, options: MakeOptions, tmp_path: Path
) -> None:
    usual: dict[str, Any] = {"save_trace": None}
    crew.run(WORKERS, ran, _saving(options, tmp_path, "full-graph", {}, iterations=3, checkpoint_every=3, **usual))
    requested = _saving(options, tmp_path, "full-graph", {}, resume=str(tmp_path / "run"), record=True, **usual)
    crew.run(WORKERS, ran, requested)
    assert (tmp_path / "run" / "timeline.parquet").exists()
    assert not (tmp_path / "run" / "access.trace").exists()


def test_a_trace_drawn_by_norms_says_which_and_replays(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    knobs = {"tau": 2, "epsilon": 0.3, "refresh": 3}
    crew.run(WORKERS, ran, _saving(options, tmp_path, "psc-gcn", knobs, record=False))
    assert read_trace(tmp_path / "run.trace").origin.norms_hash is not None, (
        "the norms that were measured, recorded or not"
    )
    scenario = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": WORKERS},
        "workload": {"dataset": None, "trace": str(tmp_path / "run.trace"), "features": 16},
        "method": {"name": "psc-gcn", "tau": 2, "epsilon": 0.3, "sampler": "vr", "cache": "20%"},
        "run": {"iterations": 12},
    }
    assert simulate(scenario).payload["result"]["iteration_s"] > 0


@pytest.mark.parametrize(
    ("method", "knobs"),
    [
        ("psc-gcn", {"tau": 0, "epsilon": 0.3, "refresh": 3}),
        ("psc-gcn", {"tau": 0, "epsilon": 0.3, "refresh": 3, "cache": "30%", "sampler": "uniform"}),
        ("bns-gcn", {"rate": 0.3}),
        ("full-graph", {}),
    ],
    ids=["vr", "uniform, cached", "bns", "full"],
)
def test_the_trace_says_which_rows_were_sent(
    crew: Crew, options: MakeOptions, tmp_path: Path, method: str, knobs: dict[str, Any]
) -> None:
    """Bytes of rows per pair of workers, counted where they were sent, are those of the rows in the trace."""
    requested = _saving(options, tmp_path, method, knobs, record=True, dtype="float32")
    asked_of_caches = [run.drawn for run in crew.run(WORKERS, ran, requested)]
    record, trace = read_run(tmp_path / "run").record, read_trace(tmp_path / "run.trace")
    rows = _rows(trace)
    assert [wanted for _, wanted in asked_of_caches] == rows.sum(axis=1).tolist()
    widths = (7, requested.hidden, requested.hidden)
    sent = 4 * sum(widths) * rows.T
    if knobs.get("cache"):
        hits = counts(trace, parse_cache("30%"), "inclusion", widths[0], 5).hits.sum(axis=0)
        sent = 4 * (widths[0] * (rows - hits) + sum(widths[1:]) * rows).T
    assert record.bytes["rows"] == tuple(map(tuple, sent.tolist()))


def _rows(trace: AccessTrace) -> Any:
    """Rows that worker n needed of worker m, over all graphs, int64[P, P]."""
    every = [worker.needed().sum(axis=0, dtype=np.int64) for worker in trace.workers]
    return np.array(
        [
            [int(needed[worker.boundary_ptr[m] : worker.boundary_ptr[m + 1]].sum()) for m in range(trace.parts)]
            for worker, needed in zip(trace.workers, every, strict=True)
        ]
    )


def test_a_trace_is_saved_into_the_folder_that_the_run_makes(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    inside = tmp_path / "newrun" / "access.trace"
    requested = _saving(
        options, tmp_path, "full-graph", {}, out=str(inside.parent), save_trace=str(inside), record=True
    )
    crew.run(WORKERS, ran, requested)
    assert read_trace(inside).parts == WORKERS
