"""Block rows broadcast: what an iteration takes, against the bounds of its broadcasts and against fewer of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim.engine import Run
from gcnsim.schedule import Schedule
from gcnsim.timeline import OpKind
from gcnsim.workload.staleness import BlockRule
from tests.cases import Case, method

MakeFacts = Callable[..., Case]
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
    assert warm == pytest.approx((times[0] + times[1]) / 2, rel=1e-3)


def test_the_mean_holds_a_short_warm_up(facts: MakeFacts, period: Period) -> None:
    """In between nothing is sent in most iterations: the mean is that of both kinds by their shares."""
    given = facts(workers=4)

    def seconds(threshold: float, warmup: float = 0.0) -> float:
        return period(method("sancus")(replace(given, block_rule=BlockRule("fixed", threshold, warmup=warmup))))

    whole, never = seconds(0.0), seconds(1000.0)
    for warmup, share in ((0.02, 0.02 + 0.98 / 11), (50 / 300, 1 / 6 + 5 / 66)):
        assert seconds(10.0, warmup) == pytest.approx(share * whole + (1.0 - share) * never, rel=5e-3)


@pytest.mark.parametrize("threshold", [2.0, 6.0, 30.0])
def test_a_cycle_is_measured_whole(facts: MakeFacts, steady: Callable[..., tuple[Run, int]], threshold: float) -> None:
    schedule = method("sancus")(replace(facts(), block_rule=BlockRule("fixed", threshold)))
    run, first = steady(schedule)
    assert (run.iterations - first) % int(threshold + 1) == 0
