"""Traces that this version of the PyTorch profiler really exports are read (CPU, gloo)."""

from __future__ import annotations

from dataclasses import astuple
from pathlib import Path

import pytest

from gcnsim.records.profiled_run import read_profiled_run
from gcnsim.timeline import OpKind
from gcnsim.timeline.breakdown import iteration_s
from tests.runtime.conftest import MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.profiler_jobs import ACTIVE, plain_profiled, runtime_profiled


def test_code_that_is_not_ours(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    crew.run(2, plain_profiled, options("full-graph", {}, workers=2), str(tmp_path))
    run = read_profiled_run(tmp_path)
    assert (run.workers, run.devices, run.iterations.size) == (2, ("", ""), ACTIVE - 1)
    for own in run.parts:
        assert all(seconds >= 0.0 for seconds in astuple(own)[1:])
        assert min(own.compute_s, own.optimizer_s, own.exposed_sampling_s, own.reduce_s) > 0.0
        assert own.network_s + own.hidden_comm_s > 0.0
    assert iteration_s(run.parts[run.slowest]) == pytest.approx(run.iteration_s, rel=1e-6)
    assert run.iteration_s < 1.0
    names = {OpKind.SAMPLE, OpKind.UPDATE, OpKind.AGGREGATE, OpKind.WIRE, OpKind.ALLREDUCE, OpKind.STEP}
    assert names <= {span.kind for span in run.timeline}


def test_the_runtime_itself(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    crew.run(2, runtime_profiled, options("full-graph", {}, workers=2), str(tmp_path))
    run = read_profiled_run(tmp_path)
    assert (run.workers, run.iterations.size) == (2, ACTIVE - 1)
    assert min(own.compute_s for own in run.parts) > 0.0
    assert min(own.optimizer_s for own in run.parts) > 0.0
