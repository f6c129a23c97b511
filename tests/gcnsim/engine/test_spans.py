"""From a run to a timeline: every op that took time is a span, every wait of a compute stream one of its own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gcnsim.engine import simulate, timeline
from gcnsim.schedule import Builder
from gcnsim.timeline import KINDS, PS_PER_S, Direction, OpKind, Phase
from gcnsim.timeline.span import Span
from tests.cases import Case, method

S = PS_PER_S


def test_spans_of_a_run_by_hand(builder: Callable[..., Builder]) -> None:
    b = builder(10.0)
    one = b.compute(OpKind.UPDATE, 0, 1.0, layer=1, direction=Direction.FORWARD)
    sent = b.flow(OpKind.WIRE, 0, 20.0, (0,), stream="tx", after=[one], layer=1, direction=Direction.FORWARD, peer=0)
    b.flow(OpKind.WIRE, 0, 0.0, (0,), stream="none", after=[one])
    two = b.compute(OpKind.LOSS, 0, 1.0, after=[sent])
    spans = list(timeline(simulate(b.close([two]), 1)))
    assert spans == [
        Span(OpKind.UPDATE, 0, "gpu", 0, 1, Direction.FORWARD, -1, 0.0, 1.0, 0.0),
        Span(OpKind.WAIT, 0, "gpu", 0, -1, Direction.NONE, -1, 1.0, 3.0, 0.0),
        Span(OpKind.WIRE, 0, "tx", 0, 1, Direction.FORWARD, 0, 1.0, 3.0, 20.0),
        Span(OpKind.LOSS, 0, "gpu", 0, -1, Direction.NONE, -1, 3.0, 4.0, 0.0),
    ]


def test_the_compute_stream_has_no_gap_and_no_overlap(facts: Callable[..., Case]) -> None:
    run = simulate(method("psc-gcn")(facts(tau=2, sampled=True, iterations=5, spread=0.3, slope=0.1)), 12)
    spans = timeline(run)
    for stream in {int(s) for s in spans.stream[spans.kind == KINDS.index(OpKind.LOSS)]}:
        mine = spans.stream == stream
        assert spans.start_ps[mine][0] == 0
        assert (spans.start_ps[mine][1:] == spans.end_ps[mine][:-1]).all()


def test_bytes_of_spans_are_bytes_of_the_schedule(facts: Callable[..., Case]) -> None:
    schedule = method("psc-gcn")(facts(tau=1, sampled=True, iterations=3, spread=0.3))
    spans = timeline(simulate(schedule, 6))
    cpu = [op.route is not None and schedule.link_kinds[op.route[0]] == "cpu" for op in schedule.ops]
    flows = schedule.is_flow & ~np.array(cpu)
    assert spans.nbytes.sum() == 2 * schedule.demand[:, flows].sum()
    assert (spans.nbytes[spans.of_phase(Phase.COMPUTE, Phase.WAIT, Phase.OPTIMIZER)] == 0).all()


def test_spans_are_ordered_and_read_only(facts: Callable[..., Case]) -> None:
    spans = timeline(simulate(method("pipegcn")(facts()), 4))
    key = list(zip(spans.start_ps, spans.worker, spans.stream, strict=True))
    assert key == sorted(key)
    assert (spans.end_ps > spans.start_ps).all()
    assert not spans.start_ps.flags.writeable
    assert set(spans.iteration.tolist()) == {0, 1, 2, 3}
