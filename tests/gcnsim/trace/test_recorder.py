"""A trace recorded from somebody's own loop is the one that gcnsim would have recorded of the same draws."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.trace import (
    AccessRecorder,
    AccessTrace,
    read_trace,
    record_nodes,
    record_trace,
    recorded_trace,
    write_trace,
)


def again(case: Any, trace: AccessTrace, *, edges: bool, rng: np.random.Generator) -> AccessTrace:
    """What a loop that drew the graphs of `trace` records."""
    gathered = []
    for rank, part in enumerate(case.parts):
        recorder = AccessRecorder(part)
        for t, needed in enumerate(trace.workers[rank].needed()):
            kept = tuple(trace.edges[t, rank].tolist())
            recorder.add(rng.permutation(part.boundary[needed]), kept if edges else None)
        gathered.append(recorder.arrays())
    origin = trace.origin
    return recorded_trace(case.owners, gathered, rate=origin.epsilon, sampler=origin.sampler, seed=origin.seed)


def test_graphs_of_drawn_nodes_are_recorded_as_they_were_drawn(small: Any, tmp_path: Path) -> None:
    wanted = record_nodes(small.parts, small.owners, rate=0.3, iterations=5, seed=2)
    access_trace = again(small, wanted, edges=False, rng=np.random.default_rng(0))
    write_trace(tmp_path / "own.trace", access_trace)
    for trace in (access_trace, read_trace(tmp_path / "own.trace")):
        assert trace.origin == wanted.origin
        assert trace.edges.tolist() == wanted.edges.tolist()
        assert trace.inner_nodes.tolist() == wanted.inner_nodes.tolist()
        assert trace.entries.tolist() == wanted.entries.tolist()
        for own, other in zip(trace.workers, wanted.workers, strict=True):
            assert own.bits.tobytes() == other.bits.tobytes()
            assert own.boundary_ptr.tolist() == other.boundary_ptr.tolist()
            assert own.boundary_degree.tolist() == other.boundary_degree.tolist()
            assert own.inclusion.tolist() == np.float32(other.needed().mean(axis=0)).tolist()


def test_graphs_of_drawn_edges_say_how_many_they_kept(small: Any) -> None:
    wanted = record_trace(small.parts, small.owners, sampler="uniform", epsilon=0.3, iterations=4, seed=2)
    access_trace = again(small, wanted, edges=True, rng=np.random.default_rng(0))
    assert access_trace.edges.tolist() == wanted.edges.tolist()
    assert (access_trace.origin.sampler, access_trace.origin.epsilon) == ("uniform", 0.3)


def test_whatever_is_no_boundary_node_is_refused(small: Any) -> None:
    part = small.parts[1]
    recorder = AccessRecorder(part)
    for stranger in (int(part.inner[0]), -1, 10**6):
        with pytest.raises(ScenarioError, match=rf"^nodes: {stranger} is not a boundary node of worker 1$"):
            recorder.add([stranger])
    with pytest.raises(ScenarioError, match=r"^nodes: float64 are not ids of nodes; give whole numbers$"):
        recorder.add([0.5])
    with pytest.raises(ScenarioError, match=r"^worker 1: no iteration is recorded$"):
        recorder.arrays()


def test_more_entries_than_there_are_are_refused(small: Any) -> None:
    recorder = AccessRecorder(small.parts[0])
    for kept in ((10**9, 0), (0, 1), (-1, 0)):
        with pytest.raises(ScenarioError, match=r"^edges: "):
            recorder.add([], kept)


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ({"rate": 1.5}, r"^rate: "),
        ({"rate": float("nan")}, r"^rate: "),
        ({"rate": 1.0, "sampler": "unifrom"}, r"^sampler: unknown 'unifrom'.*uniform"),
    ],
)
def test_how_it_was_drawn_is_checked(small: Any, given: dict[str, Any], line: str) -> None:
    recorders = [AccessRecorder(part) for part in small.parts]
    for recorder in recorders:
        recorder.add([])
    with pytest.raises(ScenarioError, match=line):
        recorded_trace(small.owners, [access_recorder.arrays() for access_recorder in recorders], **given)


def test_every_worker_is_needed_with_as_many_iterations(small: Any) -> None:
    recorders = [AccessRecorder(part) for part in small.parts]
    for recorder in recorders:
        recorder.add([])
    recorders[2].add([])
    gathered = [access_recorder.arrays() for access_recorder in recorders]
    with pytest.raises(ScenarioError, match=r"^workers: have 1, 1, 2, 1 iterations; all need the same number$"):
        recorded_trace(small.owners, gathered, rate=1.0)
    with pytest.raises(ScenarioError, match=r"^workers: 3 were recorded, the partition has 4$"):
        recorded_trace(small.owners, gathered[:3], rate=1.0)
