"""Age of what is read: exactly tau iterations, and on a slow network the newest transfer is still on its way."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import Run, simulate
from gcnsim.schedule.schedule import Op
from gcnsim.timeline import OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]


def reads(run: Run) -> list[tuple[Op, Op]]:
    """Every op that takes boundary rows in, with the copy to the device that brings them."""
    ops = run.schedule.ops
    bring = {(op.worker, op.layer, op.direction): op for op in ops if op.kind is OpKind.H2D}
    return [(op, bring[op.worker, op.layer, op.direction]) for op in ops if op.kind is OpKind.SCATTER]


@pytest.mark.parametrize("tau", [1, 2, 4])
@pytest.mark.parametrize("nic", [2e7, 1e10])
def test_rows_are_read_when_those_of_tau_iterations_ago_have_arrived(facts: MakeFacts, tau: int, nic: float) -> None:
    run = simulate(method("psc-gcn")(facts(tau=tau, nic=nic, sampled=True, iterations=3, spread=0.2)), 3 * tau + 12)
    pairs = reads(run)
    assert len(pairs) == 4 * (3 + 2)
    for read, bring in pairs:
        assert (run.starts[tau:, read.index] >= run.ends[:-tau, bring.index]).all()


@pytest.mark.parametrize("tau", [1, 2, 4])
def test_on_a_slow_network_they_are_read_before_the_newer_ones_arrive(facts: MakeFacts, tau: int) -> None:
    run = simulate(method("psc-gcn")(facts(tau=tau, nic=2e7)), 3 * tau + 12)
    late = slice(run.iterations - 6, run.iterations)
    for read, bring in reads(run):
        assert (run.starts[late, read.index] < run.ends[late, bring.index]).all()


def test_without_staleness_rows_of_this_iteration_are_read(facts: MakeFacts) -> None:
    run = simulate(method("full-graph")(facts()), 5)
    for read, bring in reads(run):
        assert (run.starts[:, read.index] >= run.ends[:, bring.index]).all()


@pytest.mark.parametrize("tau", [1, 3])
def test_at_most_tau_transfers_of_a_layer_are_under_way(facts: MakeFacts, tau: int) -> None:
    run = simulate(method("psc-gcn")(facts(tau=tau, nic=2e7)), 4 * tau + 8)
    packs = {(op.worker, op.layer, op.direction): op.index for op in run.schedule.ops if op.kind is OpKind.PACK}
    for read, bring in reads(run):
        started = run.starts[:, packs[read.worker, read.layer, read.direction]]
        under_way = [int(np.sum((started <= now) & (run.ends[:, bring.index] > now)) > tau) for now in started]
        assert sum(under_way) == 0


def test_more_staleness_adds_no_bandwidth(facts: MakeFacts, period: Callable[..., float]) -> None:
    slow = [period(method("psc-gcn")(facts(tau=tau, nic=2e7))) for tau in (1, 2, 4)]
    assert slow == pytest.approx([slow[0]] * 3, rel=0.01)
