"""What links carried, read off a run: rates worked out by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.engine import simulate
from gcnsim.engine.run import begun, link_rates
from gcnsim.schedule import Builder
from gcnsim.timeline import PS_PER_S, OpKind

MakeBuilder = Callable[..., Builder]


def pairs(found: tuple[np.ndarray, np.ndarray]) -> list[tuple[float, float]]:
    """(second, bytes per second from then on)."""
    instants, rates = found
    return [(when / PS_PER_S, rate) for when, rate in zip(instants.tolist(), rates.tolist(), strict=True)]


def test_a_second_flow_takes_half_while_it_is_under_way(builder: MakeBuilder) -> None:
    # 30 B over both links from 0 s; 10 B over the second alone from 1 s: 10 B/s, then 5 and 5 until 3 s, then 10.
    b = builder(10.0, 10.0, 7.0)
    b.flow(OpKind.WIRE, 0, 30.0, (0, 1), stream="a")
    late = b.compute(OpKind.LOSS, 0, 1.0)
    other = b.flow(OpKind.WIRE, 0, 10.0, (1,), stream="b", after=(late,))
    run = simulate(b.close([other]), 1)
    found = link_rates(run)
    assert list(found) == ["wire0", "wire1"], "a link that carries nothing is left out"
    assert pairs(found["wire0"]) == [
        (0.0, pytest.approx(10)),
        (1.0, pytest.approx(5)),
        (3.0, pytest.approx(10)),
        (4.0, 0),
    ]
    assert pairs(found["wire1"]) == [(0.0, pytest.approx(10)), (4.0, 0)]
    assert (begun(run) == run.starts).all(), "nothing waits for a connection"


def test_links_without_a_common_flow_are_told_apart_and_caps_hold(builder: MakeBuilder) -> None:
    b = builder(10.0, 8.0)
    b.flow(OpKind.WIRE, 0, 12.0, (0,), stream="a", cap=4.0)
    last = b.flow(OpKind.WIRE, 0, 8.0, (1,), stream="b")
    found = link_rates(simulate(b.close([last]), 1))
    assert pairs(found["wire0"]) == [(0.0, pytest.approx(4)), (3.0, 0)]
    assert pairs(found["wire1"]) == [(0.0, pytest.approx(8)), (1.0, 0)]


def test_the_bytes_of_every_iteration_are_carried(builder: MakeBuilder) -> None:
    b = builder(10.0)
    b.flow(OpKind.WIRE, 0, 20.0, (0,), stream="a")
    last = b.compute(OpKind.LOSS, 0, 5.0)
    run = simulate(b.close([last]), 3)
    instants, rates = link_rates(run)["wire0"]
    carried = float((np.diff(instants) * rates[:-1]).sum()) / PS_PER_S
    assert carried == pytest.approx(3 * 20.0)
    assert rates[-1] == 0.0
