"""Recorded timelines and profiler traces of trainings."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.records.profiled_run import read_profiled_run
from gcnsim.timeline import PHASE, Direction, OpKind, Phase
from gcnsim.timeline.breakdown import iteration_s
from gcnsim.timeline.span import Span
from gcnsim.trace import record_nodes, write_trace
from runtime.record.summary import summarise
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.profiler_jobs import ACTIVE, plain_profiled, runtime_profiled
from tests.runtime.reduce_jobs import Recorded, recorded
from tests.runtime.session_jobs import ran

ITERATIONS, LAYERS, WORKERS, WIDTHS = 6, 3, 3, (7, 6, 6, 4)
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

RUNS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "all": ("cagnet-1d", {}, {}),
    "sage": ("sancus", {}, {"model": "graphsage", "norm": "layer"}),
    "skipping": ("sancus", {"threshold": 1, "warm_iterations": 2}, {}),
    "skipping both ways": ("sancus", {"threshold": 1, "warm_iterations": 2, "skip_backward": "yes"}, {}),
    "once": ("sancus", {}, {"preaggregate": True}),
    "gap": ("sancus", {"stale_test": "gap", "threshold": 0.1, "warm_iterations": 1}, {}),
}
SENT = {"skipping": {0, 1, 4}, "skipping both ways": {0, 1, 4}}
"""Iterations in which blocks are sent, where not in all; two iterations old they are found, and sent in the next."""


@pytest.fixture(scope="module", params=list(RUNS))
def recorded_case(crew: Crew, options: MakeOptions, request: pytest.FixtureRequest) -> tuple[str, list[Recorded]]:
    """A run of `RUNS` and all its ranks."""
    method, knobs, fields = RUNS[request.param]
    usual: dict[str, Any] = {"dtype": "float32", "iterations": ITERATIONS, "record": True}
    return request.param, crew.run(WORKERS, recorded, options(method, knobs, workers=WORKERS, **(usual | fields)))


def of(recorded_case: Recorded, *kinds: OpKind) -> list[Span]:
    return [span for span in recorded_case.timeline if span.kind in kinds]


def where(spans: list[Span]) -> Counter[tuple[int, int, Direction]]:
    return Counter((span.iteration, span.layer, span.direction) for span in spans)


def every(count: int, first: int = 0) -> Counter[tuple[int, int, Direction]]:
    layers = range(first, LAYERS)
    return Counter(
        {(t, layer, way): count for t in range(ITERATIONS) for layer in layers for way in (FORWARD, BACKWARD)}
    )


def test_each_layer_multiplies_every_block_both_ways(recorded_case: tuple[str, list[Recorded]]) -> None:
    name, ranks = recorded_case
    for rank in ranks:
        assert where(of(rank, OpKind.AGGREGATE)) == every(WORKERS, 1 if name == "once" else 0)
        maps = where(of(rank, OpKind.UPDATE))
        for t in range(ITERATIONS):
            for layer in range(LAYERS):
                # Before the sum of the gradient, and after it; of layer 0 besides what is left when all is done.
                summed = layer > 0 or name != "once"
                assert maps[t, layer, BACKWARD] == 1 + summed + (summed and layer == 0)
                assert maps[t, layer, FORWARD] >= 1
                assert maps[t, layer, FORWARD] == 1 or name == "gap"
        assert len(of(rank, OpKind.ALLREDUCE)) == ITERATIONS * LAYERS


def test_blocks_go_around_when_they_are_sent(recorded_case: tuple[str, list[Recorded]]) -> None:
    name, ranks = recorded_case
    for rank in ranks:
        wire = [span for span in of(rank, OpKind.WIRE) if ".tx" in span.stream]
        broadcasts = where(wire)
        for t, layer, way in every(1, 1 if name == "once" else 0):
            sent = t in SENT.get(name, range(ITERATIONS)) or (way is BACKWARD and "both" not in name)
            if name == "gap" and way is FORWARD and t > 0:
                # Features never move; how far others do is told before each layer.
                assert broadcasts[t, layer, way] in (range(WORKERS) if layer else (0,))
                continue
            assert broadcasts[t, layer, way] == (WORKERS - 1 if sent else 0), (t, layer, way)
        assert bool(of(rank, OpKind.INDEX)) == (name == "gap")
        for span in wire:
            assert span.nbytes > 0
            assert span.nbytes % (4 * WIDTHS[span.layer + (span.direction is BACKWARD)]) == 0


def test_the_main_stream_does_one_thing_at_a_time_and_waits_for_what_travels(
    recorded_case: tuple[str, list[Recorded]],
) -> None:
    for rank, item in enumerate(recorded_case[1]):
        main = sorted((span.start_s, span.end_s) for span in item.timeline if span.stream == "compute")
        assert all(start >= end for (_, end), (start, _) in pairwise(main))
        seconds = np.diff(item.begins) / 1e12
        shares = summarise(item.timeline, seconds, workers=WORKERS, warmup=1).workers[rank]
        assert shares.hidden_transfer_s == pytest.approx(0.0, abs=1e-9)
        waits = [span for span in of(item, OpKind.WAIT) if span.layer >= 0]
        assert waits
        assert all(PHASE[span.kind] is not Phase.COMPUTE for span in waits)


def test_holders_of_a_block_share_its_products_and_add_them_up(crew: Crew, options: MakeOptions) -> None:
    usual: dict[str, Any] = {"dtype": "float32", "iterations": ITERATIONS, "record": True}
    for rank, item in enumerate(crew.run(4, recorded, options("cagnet-1.5d", workers=4, **usual))):
        assert where(of(item, OpKind.AGGREGATE)) == every(1)
        sums = [span for span in of(item, OpKind.ALLREDUCE) if span.stream == "replicas.ring"]
        assert where(sums) == every(1)
        assert {span.peer for span in sums} == {rank ^ 1}
        assert len(of(item, OpKind.ALLREDUCE)) == len(sums) + ITERATIONS * LAYERS
        # Member 0 of each block's holders multiplies block 0, member 1 block 1, which workers 0 and 3 have.
        sent = [span for span in of(item, OpKind.WIRE) if ".tx" in span.stream]
        assert where(sent) == (every(1) if rank in (0, 3) else Counter())
        main = sorted((span.start_s, span.end_s) for span in item.timeline if span.stream == "compute")
        assert all(start >= end for (_, end), (start, _) in pairwise(main))


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


BNS_WORKERS, BNS_ITERATIONS, SEED = 3, 6, 5


@pytest.mark.parametrize("rate", [0.0, 0.3])
def test_draws_are_the_simulators_byte_for_byte(
    crew: Crew, options: MakeOptions, case: Case, tmp_path: Path, rate: float
) -> None:
    requested = options(
        "bns-gcn",
        {"rate": rate},
        workers=BNS_WORKERS,
        iterations=BNS_ITERATIONS,
        seed=SEED,
        save_trace=str(tmp_path / "run.trace"),
        out=str(tmp_path / "run"),
    )
    crew.run(BNS_WORKERS, ran, requested)
    wanted = record_nodes(
        case.parts(BNS_WORKERS),
        case.owners(BNS_WORKERS),
        rate=rate,
        iterations=BNS_ITERATIONS,
        seed=SEED,
    )
    write_trace(tmp_path / "wanted.trace", wanted)
    assert (tmp_path / "run.trace").read_bytes() == (tmp_path / "wanted.trace").read_bytes()
