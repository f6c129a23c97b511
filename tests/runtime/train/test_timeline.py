"""Spans of recorded runs: which there are, that the main stream does one thing at a time, bytes, and overlap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.streams import stream
from gcnsim.graph import Graph
from gcnsim.timeline import PHASE, PS_PER_S, Direction, Intervals, OpKind, Phase
from gcnsim.timeline.span import Span
from runtime.methods import method_type
from runtime.options import Options
from runtime.record.summary import summarise
from tests.runtime.conftest import small_graph
from tests.runtime.crew import Crew
from tests.runtime.reduce_jobs import Recorded, recorded

ITERATIONS, LAYERS, FLOAT = 6, 3, 4
RUNS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "full": ("full-graph", {}, {}),
    "full-none": ("full-graph", {}, {"overlap": "none"}),
    "full-once": ("full-graph", {}, {"preaggregate": True}),
    "full-gat": ("full-graph", {}, {"model": "gat"}),
    "full-sage": ("full-graph", {}, {"model": "graphsage"}),
    "pipegcn-gf": ("pipegcn-gf", {}, {}),
    "pipegcn-gat": ("pipegcn", {}, {"model": "gat"}),
    "psc-0": ("psc-gcn", {"tau": 0, "epsilon": 0.3, "refresh": 2}, {}),
    "psc-2": ("psc-gcn", {"tau": 2, "epsilon": 0.3, "refresh": 2}, {}),
    "psc-gat": ("psc-gcn", {"tau": 2, "epsilon": 0.3, "refresh": 2}, {"model": "gat"}),
    "psc-2-cache": ("psc-gcn", {"tau": 2, "epsilon": 0.3, "refresh": 2, "cache": "30%"}, {}),
    "psc-2-whole": ("psc-gcn", {"tau": 2, "epsilon": 1.0, "cache": "30%"}, {}),
    "bns": ("bns-gcn", {"rate": 0.3}, {}),
}
TAU = {"pipegcn-gf": 1, "pipegcn-gat": 1, "psc-2": 2, "psc-gat": 2, "psc-2-cache": 2, "psc-2-whole": 2}

Run = Callable[[str], list[Recorded]]


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """1,500 nodes with 9 neighbours in the mean: products and messages long enough to meet."""
    made: Graph = small_graph(1500, 6000, 3)
    path = tmp_path_factory.mktemp("timeline") / "graph.npz"
    features = stream(3, "timeline").standard_normal((made.nodes, 48)).astype(np.float32)
    np.savez(path, indptr=made.indptr, indices=made.indices, x=features)
    return path


@pytest.fixture(scope="module")
def run(crew: Crew, graph: Path) -> Run:
    """Both ranks of a run of `RUNS`."""

    def make(name: str) -> list[Recorded]:
        method, knobs, fields = RUNS[name]
        options = Options(
            method=method,
            knobs=method_type(method).settled(knobs),
            **{
                "graph": str(graph),
                "random_classes": 5,
                "partition_method": "random",
                "iterations": ITERATIONS,
                "layers": LAYERS,
                "hidden": 32,
                **fields,
            },
        )
        return crew.run(2, recorded, options)

    return cache(make)


def of(content: Recorded, *kinds: OpKind, main: bool = False) -> list[Span]:
    return [span for span in content.timeline if span.kind in kinds and (not main or span.stream == "compute")]


def where(spans: list[Span]) -> Counter[tuple[int, int, Direction]]:
    return Counter((span.iteration, span.layer, span.direction) for span in spans)


def check_spans(name: str, ranks: list[Recorded]) -> None:
    """Every layer and direction has its spans."""
    fields = RUNS[name][2]
    gat, once = fields.get("model") == "gat", bool(fields.get("preaggregate"))
    every = [(t, layer) for t in range(ITERATIONS) for layer in range(LAYERS)]
    for content in ranks:
        maps = of(content, OpKind.UPDATE, OpKind.ATTENTION)
        assert {span.kind for span in maps} == {OpKind.ATTENTION if gat else OpKind.UPDATE}
        both = (Direction.FORWARD, Direction.BACKWARD)
        assert where(maps) == Counter((t, layer, way) for t, layer in every for way in both)
        sums = of(content, OpKind.AGGREGATE)
        # One product with the inner and one with the boundary columns; layer 0's gradient is nobody's.
        wanted = Counter(
            {
                (t, layer, way): 2
                for t, layer in every
                for way in both
                if not (layer == 0 and (way is Direction.BACKWARD or once)) and not gat
            }
        )
        assert where(sums) == wanted
        assert all(span.stream == "compute" for span in [*maps, *sums])
        halves = where(of(content, OpKind.LOSS))
        assert halves == Counter((t, -1, way) for t in range(ITERATIONS) for way in both)
        assert where(of(content, OpKind.STEP)) == Counter((t, -1, Direction.NONE) for t in range(ITERATIONS))
        assert where(of(content, OpKind.ALLREDUCE)) == Counter(
            {(t, -1, Direction.NONE): LAYERS for t in range(ITERATIONS)}
        )


def check_main_stream(name: str, ranks: list[Recorded]) -> None:
    """The main stream does one thing at a time, within the iteration."""
    for content in ranks:
        main = sorted(
            (round(span.start_s * PS_PER_S), round(span.end_s * PS_PER_S), span)
            for span in content.timeline
            if span.stream == "compute"
        )
        assert all(start <= end for start, end, _ in main)
        for (_, end, before), (start, _, after) in pairwise(main):
            assert start >= end, f"{after} begins before {before} ends"
        for start, end, span in main:
            assert content.begins[span.iteration] <= start <= end <= content.begins[span.iteration + 1], span


def check_bytes(name: str, ranks: list[Recorded]) -> None:
    """Bytes on the wire are rows times width times four."""
    once = bool(RUNS[name][2].get("preaggregate"))
    tau = TAU.get(name, 0)
    for me, content in enumerate(ranks):
        peer = 1 - me
        spans = of(content, OpKind.WIRE)
        received = [span for span in spans if ".rx" in span.stream]
        assert all(span.nbytes == 0.0 and span.peer == peer for span in received)
        sent = {(span.iteration, span.layer, span.direction): span for span in spans if ".tx" in span.stream}
        assert len(sent) + len(received) == len(spans)
        for (t, layer, way), span in sent.items():
            assert span.peer == peer
            if way is Direction.FORWARD:
                assert span.stream == f"f.tx{peer}"
                # What leaves in t is read in t + tau; of the last tau graphs this test has no counts.
                if t + tau < ITERATIONS:
                    rows = (content.misses if layer == 0 else content.asked)[t + tau][peer]
                    assert span.nbytes == rows * content.widths[layer] * FLOAT
            else:
                assert span.stream == f"b.tx{peer}"
                assert span.nbytes == content.rows[t][peer] * content.widths[layer] * FLOAT
        layers = range(1 if once else 0, LAYERS)
        forward = {(t, layer, Direction.FORWARD) for t in range(ITERATIONS) for layer in layers}
        backward = {(t, layer, Direction.BACKWARD) for t in range(ITERATIONS) for layer in range(1, LAYERS)}
        assert set(sent) == forward | backward
        assert where(received) == Counter(forward | backward)
        assert content.asked == [ranks[peer].rows[t][::-1] for t in range(ITERATIONS)]


def intervals(content: Recorded, wanted: Callable[[Span], bool]) -> Intervals:
    chosen = np.array([wanted(span) for span in content.timeline])
    return Intervals.of(content.timeline.start_ps[chosen], content.timeline.end_ps[chosen])


@pytest.mark.parametrize("name", list(TAU))
def test_stale_transfers_run_beneath_the_computation(run: Run, name: str) -> None:
    for content in run(name):
        compute = intervals(content, lambda span: PHASE[span.kind] is Phase.COMPUTE)
        wires = intervals(content, lambda span: span.kind is OpKind.WIRE)
        assert wires.intersection(compute).length > 0
        # A row sent in t is not waited for in t: nothing of iteration t stands between a layer and the next.
        assert all(span.iteration >= TAU[name] for span in of(content, OpKind.WAIT) if span.layer >= 0)


def test_rows_of_the_same_iteration_can_be_waited_for(run: Run) -> None:
    waits = [span for content in run("full") for span in of(content, OpKind.WAIT, main=True) if span.layer >= 0]
    assert waits
    assert all(span.start_s <= span.end_s for span in waits)


def check_phases(name: str, ranks: list[Recorded]) -> None:
    """The phases of the main stream add up to the iteration."""
    for content in ranks:
        covered = np.zeros(ITERATIONS)
        for span in content.timeline:
            if span.stream == "compute":
                covered[span.iteration] += span.end_s - span.start_s
        share = covered / (np.diff(content.begins) / PS_PER_S)
        assert (share <= 1.0).all()
        # The best iteration: on a busy machine any may be interrupted between two spans.
        assert share[1:].max() > 0.6, f"{share.round(2)} of the iterations"


@pytest.mark.parametrize("name", list(RUNS))
def test_spans_streams_bytes_and_phases_of_a_run(run: Run, name: str) -> None:
    for check in (check_spans, check_main_stream, check_bytes, check_phases):
        check(name, run(name))


def test_without_overlap_no_transfer_is_hidden(run: Run) -> None:
    for rank, content in enumerate(run("full-none")):
        seconds = np.diff(content.begins) / PS_PER_S
        shares = summarise(content.timeline, seconds, workers=2, warmup=1).workers[rank]
        assert shares.transfer_s > 0
        assert shares.wait_s > 0
        assert shares.hidden_transfer_s < 0.1 * shares.transfer_s


@pytest.mark.parametrize("name", ["psc-0", "psc-2", "psc-2-cache", "bns"])
def test_sampling_has_spans_of_its_own(run: Run, name: str) -> None:
    for content in run(name):
        drawn = {span.iteration for span in of(content, OpKind.SAMPLE)}
        requested = {span.iteration for span in of(content, OpKind.INDEX)}
        assert drawn >= set(range(1, ITERATIONS))
        assert requested >= set(range(1, ITERATIONS))
        streams = {span.stream for span in of(content, OpKind.SAMPLE, OpKind.INDEX, OpKind.CACHE_REFRESH)}
        # Its ids must be there before anything else of the iteration: the main stream does this itself.
        assert streams == {"compute" if name == "bns" else "sampler"}
        assert bool(of(content, OpKind.LOOKUP, OpKind.CACHE_REFRESH)) == (name == "psc-2-cache")
