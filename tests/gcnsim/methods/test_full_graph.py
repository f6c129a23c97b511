"""`full-graph` fixes staleness and rate, whatever the facts say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.timeline import Direction, OpKind
from tests.cases import Case, method


def test_tau_is_(facts: Callable[..., Case]) -> None:
    one, other = (method("full-graph")(facts(tau=tau, sampled=sampled)) for tau, sampled in ((5, True), (0, False)))
    assert one.ops == other.ops
    np.testing.assert_array_equal(one.demand, other.demand)
    reads = [op for op in one.ops if op.kind is OpKind.SCATTER]
    assert {lag for op in reads for _, lag in op.after} == {0}
    assert not any(op.kind in (OpKind.SAMPLE, OpKind.INDEX, OpKind.LOOKUP) for op in one.ops)


@pytest.mark.parametrize("direct", [False, True])
def test_a_message_moves_once_its_receiver_has_come_to_the_layer(facts: Callable[..., Case], direct: bool) -> None:
    """A synchronous transfer needs both ends: what a late receiver gets, leaves late."""
    given = facts(workers=4, per_server=2)
    if direct:
        given = replace(given, cluster=replace(given.cluster, direct_server=True))
    schedule = method("full-graph")(given)
    messages = [op for op in schedule.ops if op.kind is OpKind.WIRE]
    assert len(messages) == 12 * (2 * len(given.shapes) - 1)
    run = simulate(schedule, 3)
    for op in messages:
        made = [
            (item, 0)
            for item in schedule.ops
            if item.worker == op.peer
            and (item.kind, item.direction, item.layer)
            == (
                (OpKind.UPDATE, Direction.FORWARD, op.layer - 1)
                if op.direction is Direction.FORWARD
                else (OpKind.AGGREGATE, Direction.BACKWARD, op.layer)
            )
        ] or [(schedule.ops[schedule.ends[op.peer]], 1)]
        [(reached, lag)] = made
        assert (reached.index, lag) in op.after
        begun = run.starts[lag:, op.index]
        assert (begun >= run.ends[: 3 - lag, reached.index]).all()


def test_a_stale_message_does_not_wait_for_its_receiver_to_come(facts: Callable[..., Case]) -> None:
    schedule = method("pipegcn")(facts(workers=4, per_server=2))
    for op in schedule.ops:
        if op.kind is OpKind.WIRE:
            assert {schedule.ops[item].worker for item, _ in op.after} == {op.worker}
