"""Groups of links and bundles of flows, driven by SimPy's calendar alone."""

from __future__ import annotations

import pytest
from simpy.core import Environment

from gcnsim.engine.fluid import Call, Fluid
from gcnsim.timeline import PS_PER_S

S = PS_PER_S
Flow = tuple[tuple[int, ...], float | None]
Log = list[tuple[str, int]]


class Network:
    """Links of 10 units/s and a log of arrivals."""

    def __init__(self, links: int, flows: list[Flow]) -> None:
        self.env = Environment(initial_time=0)
        self.log: Log = []
        self.fluid = Fluid(self.env, [10.0] * links, flows, lambda token: self.log.append((token, int(self.env.now))))

    def send(self, flow: Flow, units: float, token: str, at: int = 0) -> None:
        group, bundle = self.fluid.place[flow]
        Call(self.env, lambda _: group.join(bundle, units, token), at)

    def run(self) -> Log:
        self.env.run()
        return self.log


def test_flows_of_equal_route_and_cap_are_one_bundle() -> None:
    place = Network(2, [((0,), None), ((0,), None), ((0,), 1.0), ((1,), None)]).fluid.place
    assert set(place) == {((0,), None), ((0,), 1.0), ((1,), None)}
    assert place[(0,), None][0] is place[(0,), 1.0][0]
    assert place[(0,), None][1] != place[(0,), 1.0][1]


def test_links_are_of_one_group_when_a_chain_of_routes_connects_them() -> None:
    place = Network(5, [((0, 1), None), ((1, 2), None), ((3,), None), ((4,), None)]).fluid.place
    groups = [id(place[route, None][0]) for route in ((0, 1), (1, 2), (3,), (4,))]
    assert groups[0] == groups[1]
    assert len(set(groups)) == 3


@pytest.mark.parametrize("others", [[], [((0,), 3.0)]])
def test_a_flow_may_join_and_leave_while_others_are_under_way(others: list[Flow]) -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow, *others])
    net.send(flow, 100.0, "long")
    net.send(flow, 10.0, "short", at=2 * S)
    # 20 units alone, then halves until the short one has its 10 at 4 s, then 70 alone.
    assert net.run() == [("short", 4 * S), ("long", 11 * S)]


def test_a_flow_that_starts_when_another_ends_has_the_link_from_then_on() -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow])
    net.send(flow, 10.0, "one")
    net.send(flow, 10.0, "two", at=S)
    assert net.run() == [("one", S), ("two", 2 * S)]


def test_equal_flows_arrive_in_the_order_they_joined() -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow])
    for token in "cab":
        net.send(flow, 10.0, token)
    assert net.run() == [("c", 3 * S), ("a", 3 * S), ("b", 3 * S)]


def test_counts_return_to_zero() -> None:
    flow: Flow = ((0,), None)
    net = Network(1, [flow])
    for start in range(20):
        net.send(flow, 1.0 + start, f"{start}", at=start * S // 10)
    net.run()
    assert net.fluid.place[flow][0].counts == [0]
    assert len(net.log) == 20
    # A link that is never idle has carried everything when its bytes are through.
    assert net.log[-1][1] == pytest.approx(sum(range(1, 21)) / 10.0 * S, abs=20)
