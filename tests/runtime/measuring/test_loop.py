"""A loop that is not ours: one recorder has the rows and the times, and its file predicts a cluster."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.nn.functional import cross_entropy, relu

import gcnsim
from gcnsim.core.errors import ScenarioError
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, Partitioning, split
from gcnsim.records.compute_facts import OpKey
from gcnsim.records.compute_reading import read_measured_compute
from gcnsim.timeline import Direction, OpKind
from gcnsim.trace import recorded_trace
from runtime.measuring.loop import LoopRecorder, Region, write_loop

WIDTHS = (8, 16, 4)
FORWARD, BACKWARD = Direction.FORWARD, Direction.BACKWARD

Cut = tuple[Graph, Partitioning, tuple[Part, ...]]


@pytest.fixture(scope="module")
def cut() -> Cut:
    """A graph of 400 nodes in two parts."""
    draw = np.random.default_rng(0)
    graph = build_csr(draw.integers(0, 400, 2400), draw.integers(0, 400, 2400), 400, "mine")
    owners = partition_graph(graph, 2, "metis")
    return graph, owners, split(graph, owners)


def trained(part: Part, iterations: int) -> LoopRecorder:
    """A part trained alone by a plain torch loop; rows of other parts are zeros."""
    recorder = LoopRecorder(part)
    places = torch.stack([torch.from_numpy(np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))),
                          torch.from_numpy(part.columns.astype(np.int64))])  # fmt: skip
    shape = (part.inner_nodes, part.inner_nodes + part.boundary_nodes)
    pattern = torch.sparse_coo_tensor(places, torch.ones(part.entries), shape, check_invariants=True)
    weights = [torch.randn(*pair, requires_grad=True) for pair in pairwise(WIDTHS)]
    optimizer = torch.optim.Adam(weights)
    x, labels = torch.randn(part.inner_nodes, WIDTHS[0]), torch.zeros(part.inner_nodes, dtype=torch.int64)
    for _ in range(iterations):
        h = x
        for layer, weight in enumerate(weights):
            received = torch.zeros(part.boundary_nodes, h.shape[1])
            with recorder.compute(layer, "forward"):
                h = torch.mm(pattern, torch.cat([h, received]) @ weight)
                h = relu(h) if layer == 0 else h
        with recorder.compute(None, "forward"):
            loss = cross_entropy(h, labels)
        with recorder.compute(None, "backward"):
            optimizer.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
        with recorder.compute(None, "step"):
            optimizer.step()
        recorder.add(part.boundary)
    return recorder


def test_a_plain_loop_predicts_a_cluster_and_records_its_accesses(cut: Cut, tmp_path: Path) -> None:
    graph, owners, parts = cut
    recorders = [trained(part, 12) for part in parts]
    trace = recorded_trace(owners, [each.arrays() for each in recorders], sampler="full", rate=1.0)
    assert (trace.iterations, trace.parts) == (12, 2)
    path = tmp_path / "loop.parquet"
    write_loop(str(path), graph, owners, recorders, widths=WIDTHS, method="full-graph")
    (setting,) = read_measured_compute(str(path)).settings
    for rank, recorder in enumerate(recorders):
        part = setting.parts[rank]
        assert part.seconds.shape[0] == 7
        kept = part.seconds.sum(axis=1).mean() + part.outside_s
        assert kept == pytest.approx(np.mean(recorder.seconds[5:]), rel=1e-6), "operations and the rest are all"
        assert part.drawn["rows"] == recorder.part.boundary_nodes
    cluster: dict[str, Any] = {"gpus": 2, "gpus_per_server": 1, "bandwidth": "1Gbps"}
    (row,) = gcnsim.what_if(graph=graph, measured_compute=str(path), method="full-graph", **cluster).rows
    work = max(float(np.mean(recorder.seconds[5:])) for recorder in recorders)
    assert 0 < row.compute_s < row.iteration_s
    assert row.iteration_s > 0.5 * work


@pytest.fixture
def ticking(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """A clock that stands still until it is told to go on, by seconds."""
    now = [0]
    for name in ("thread_time_ns", "perf_counter_ns"):
        monkeypatch.setattr(time, name, lambda: now[0])

    def tick(seconds: float) -> None:
        now[0] += round(seconds * 1e9)

    return tick


REGIONS: tuple[tuple[int | None, Region, float], ...] = (
    (0, "forward", 0.25),
    (0, "forward", 0.5),
    (1, "forward", 0.25),
    (None, "forward", 0.125),
    (None, "backward", 2.0),
    (None, "step", 0.0625),
)


def test_a_backward_pass_in_one_piece_is_shared_as_the_forward_one(cut: Cut, ticking: Callable[[float], None]) -> None:
    recorder = LoopRecorder(cut[2][0])
    for _ in range(3):
        for layer, region, seconds in REGIONS:
            with recorder.compute(layer, region):
                ticking(seconds)
            ticking(0.5)
        recorder.add([])
    record = recorder.record(2, 1)
    (ops,) = record.ops
    columns = ops.iteration, ops.kind, ops.layer, ops.direction, ops.seconds
    found = {
        OpKey(list(OpKind)[kind], layer, Direction(way)): seconds
        for t, kind, layer, way, seconds in zip(*(column.tolist() for column in columns), strict=True)
        if t == 1
    }
    assert found == {
        OpKey(OpKind.UPDATE, 0, FORWARD): 0.75,
        OpKey(OpKind.UPDATE, 1, FORWARD): 0.25,
        OpKey(OpKind.LOSS, -1, FORWARD): 0.125,
        OpKey(OpKind.UPDATE, 0, BACKWARD): 1.5,
        OpKey(OpKind.UPDATE, 1, BACKWARD): 0.5,
        OpKey(OpKind.STEP, -1, Direction.NONE): 0.0625,
    }
    assert record.seconds == [6.1875, 6.1875]
    assert record.outside_seconds == pytest.approx(3.0)


def test_what_is_missing_or_strange_is_named(cut: Cut, ticking: Callable[[float], None], tmp_path: Path) -> None:
    graph, owners, parts = cut
    recorder = LoopRecorder(parts[1])
    with pytest.raises(ScenarioError, match=r"compute: 0, 'step'; allowed: a layer or None with forward"):
        recorder.compute(0, "step").__enter__()
    with (
        pytest.raises(ScenarioError, match="inside another block"),
        recorder.compute(0, "forward"),
        recorder.compute(1, "forward"),
    ):
        pass
    recorder = LoopRecorder(parts[1])
    for _ in range(2):
        recorder.add([])
    with pytest.raises(ScenarioError, match=r"worker 1: 2 iterations; allowed: 7 or more, 5 of them to warm up"):
        recorder.record(1, 5)
    with pytest.raises(ScenarioError, match=r"worker 1: no compute\(0, 'forward'\) in an iteration"):
        recorder.record(1, 0)
    with pytest.raises(ScenarioError, match=r"recorders: of parts \[1\]; allowed: one for each of 2 parts, in order"):
        write_loop(str(tmp_path / "x"), graph, owners, [recorder], widths=WIDTHS, method="full-graph")
