"""Block rows broadcast: what an iteration takes, against the bounds of its broadcasts and against fewer of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.engine import Run
from gcnsim.methods import Facts, method
from gcnsim.schedule import Schedule
from gcnsim.staleness import BlockRule
from gcnsim.timeline import OpKind

MakeFacts = Callable[..., Facts]
Period = Callable[[Schedule], float]


def test_no_less_than_the_lower_bound_of_its_broadcasts(facts: MakeFacts, period: Period) -> None:
    schedule = method("cagnet-1d")(facts(workers=4, per_server=1))
    nbytes = (3 * 64 + 2 * 64 + 16) * 20_000 * 4 * 4
    products = [op.index for op in schedule.ops if op.kind is OpKind.AGGREGATE and op.worker == 0]
    least = nbytes / 1e9 + 24 * 5e-5 + float(schedule.demand[0, products].sum())
    assert least <= period(schedule) <= 1.5 * least


def test_rarer_broadcasts_are_never_slower_and_the_warm_up_costs(facts: MakeFacts, period: Period) -> None:
    given = facts(workers=4, slope=0.1)
    times = [
        period(method("sancus")(replace(given, block_rule=BlockRule("fixed", threshold))))
        for threshold in (0.0, 1.0, 3.0, 7.0)
    ]
    assert np.all(np.diff(times) < 0)
    warm = period(method("sancus")(replace(given, block_rule=BlockRule("fixed", 1.0, warmup=0.5))))
    assert warm == pytest.approx((times[0] + times[1]) / 2, rel=0.02)


@pytest.mark.parametrize("threshold", [2.0, 6.0, 30.0])
def test_a_cycle_is_measured_whole(facts: MakeFacts, steady: Callable[..., tuple[Run, int]], threshold: float) -> None:
    schedule = method("sancus")(replace(facts(), block_rule=BlockRule("fixed", threshold)))
    run, first = steady(schedule)
    assert (run.iterations - first) % int(threshold + 1) == 0
