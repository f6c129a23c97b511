"""The engine against SimGrid, an independent simulator: the same flows and the same schedules end at the same times.

Both engines of gcnsim are compared with it: the one in use, and through `test_kernel` the other, which gives the same
bits. Times differ by rounding alone: the engine counts whole picoseconds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder
from gcnsim.timeline import PS_PER_S, OpKind
from tests.cases import Case, method
from tests.simgrid_peer import ABSENT, Flow, Route, ask_flows, ask_schedule, available

pytestmark = pytest.mark.skipif(not available(), reason=ABSENT)

RELATIVE = 1e-9

DOOR = 1e13
"""Units per second of the link that every flow crosses first: never full."""


def drawn(seed: int) -> tuple[list[float], list[Route], list[Flow]]:
    """Up to 8 links and 30 flows on up to 12 routes, some with caps; they start at few instants and at odd ones."""
    draw = stream(seed, "simgrid")
    links, many = int(draw.integers(2, 9)), int(draw.integers(4, 31))
    capacity = [DOOR, *draw.uniform(1e8, 1e9, links).tolist()]
    routes = []
    for _ in range(int(draw.integers(2, 13))):
        crossed = draw.choice(links, size=int(draw.integers(1, min(4, links) + 1)), replace=False) + 1
        cap = float(draw.uniform(2e7, 4e8)) if draw.random() < 0.3 else None
        routes.append(Route((0, *map(int, crossed)), cap))
    starts = np.where(draw.random(many) < 0.5, draw.integers(0, 2, many) / 2, draw.uniform(0.0, 1.0, many))
    sizes = np.where(draw.random(many) < 0.3, 1e8, np.floor(draw.uniform(1e6, 4e8, many)))
    ways = draw.integers(0, len(routes), many)
    flows = [Flow(*item) for item in zip(starts.tolist(), ways.tolist(), sizes.tolist(), strict=True)]
    return capacity, routes, flows


def ends(capacity: list[float], routes: list[Route], flows: list[Flow], latency: float) -> FloatArray:
    """When the engine's flows end, in seconds."""
    links = [Link(f"l{i}", "nic", "a", "b", LinkSpec(value, 0.0 if i else latency)) for i, value in enumerate(capacity)]
    builder = Builder("flows", Cluster((0,), tuple(links)), 1)
    ops = []
    for index, flow in enumerate(flows):
        waited = builder.compute(OpKind.LOSS, 0, flow.start, stream=f"s{index}")
        route = routes[flow.route]
        ops.append(
            builder.flow(OpKind.WIRE, 0, flow.amount, route.links, stream=f"s{index}", after=[waited], cap=route.cap)
        )
    schedule = builder.close([builder.compute(OpKind.STEP, 0, 0.0, after=ops)])
    return np.asarray(simulate(schedule, 1).ends[0, ops] / PS_PER_S)


def alone(capacity: list[float], routes: list[Route], flow: Flow) -> float:
    """When the flow would end without the others, seconds."""
    route = routes[flow.route]
    rates = [capacity[link] for link in route.links] + ([] if route.cap is None else [route.cap])
    return flow.start + flow.amount / min(rates)


@pytest.mark.parametrize("full", [True, False], ids=["full", "lazy"])
@pytest.mark.parametrize("seed", range(3))
def test_random_flows_end_when_those_of_simgrid_do(seed: int, full: bool) -> None:
    capacity, routes, flows = drawn(seed)
    found = ends(capacity, routes, flows, 0.0)
    np.testing.assert_allclose(found, ask_flows(capacity, routes, flows, full=full).ends, rtol=RELATIVE, atol=0.0)
    later = found / [alone(capacity, routes, flow) for flow in flows]
    assert later.max() > 1.1, "links were shared"


@pytest.mark.parametrize("seed", range(3))
def test_they_do_with_a_latency_that_all_routes_have(seed: int) -> None:
    capacity, routes, flows = drawn(seed)
    found = ends(capacity, routes, flows, 0.125)
    peer = ask_flows(capacity, routes, flows, latency=0.125)
    np.testing.assert_allclose(found, peer.ends, rtol=RELATIVE, atol=0.0)
    assert np.all(found > ends(capacity, routes, flows, 0.0))


METHODS = ("full-graph", "pipegcn", "bns-gcn", "psc-gcn", "sancus", "cagnet-1.5d", "roc")
"""Without threads on cores and queues, which SimGrid has none of."""


@pytest.mark.parametrize("startup", [0.0, 2e-5])
@pytest.mark.parametrize("name", METHODS)
def test_every_op_of_a_method_starts_and_ends_when_that_of_simgrid_does(
    facts: Callable[..., Case], name: str, startup: float
) -> None:
    given = facts(
        workers=4, tau=2, sampled=True, iterations=3, spread=0.6, slope=0.3, rows=900.0, rate=0.5, startup=startup
    )
    schedule = method(name)(given)
    run, iterations = simulate(schedule, 5), 5
    peer = ask_schedule(schedule, iterations)
    within = RELATIVE * peer.ends[-1].max() / iterations
    np.testing.assert_allclose(run.starts / PS_PER_S, peer.starts, rtol=0.0, atol=within)
    np.testing.assert_allclose(run.ends / PS_PER_S, peer.ends, rtol=0.0, atol=within)


def test_a_link_a_millionth_slower_is_noticed() -> None:
    capacity, routes, flows = drawn(0)
    slower = [value * (1.0 - 1e-6) for value in capacity]
    found, peer = ends(slower, routes, flows, 0.0), ask_flows(capacity, routes, flows).ends
    assert np.abs(found / peer - 1.0).max() > 100 * RELATIVE
