"""Groups whose links are partly never full are shared as a matrix, with the reference engine's own picoseconds."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.engine.kernel.driver import Kernel, layout
from gcnsim.engine.kernel.run import run as uncompiled
from gcnsim.hardware.link_specs import Link, LinkSpec
from gcnsim.hardware.topology import Cluster
from gcnsim.schedule import Builder, Schedule
from gcnsim.schedule.columns import FEW
from gcnsim.timeline import OpKind
from tests.gcnsim.engine.test_kernel import compare, kernel, many, scenario, unequal, written

__all__ = ["kernel"]


def workers(draw: Callable[..., Any], servers: int) -> Schedule:
    """Flows between all pairs of workers, two in a server, each with links of its own beside the server's: in most
    schedules those are never full before a server's, but where a server's are unlimited. Flows between the two of a
    server and flows to one of them cross none of the servers' links.
    """
    count, some = 2 * servers, st.sampled_from([1.0, 2.0, 3.0]) | st.floats(0.1, 9.0)
    own, unlimited = draw(st.sampled_from([2.0, 10.0, 40.0, 200.0])), draw(st.sampled_from([None, None, 0, 1]))
    outer = [draw(some) * (1e6 if index // 2 == unlimited else 1.0) for index in range(2 * servers)]
    capacity = [*outer, *[own] * (2 * count)]
    links = tuple(Link(f"l{index}", "nic", "a", "b", LinkSpec(item, 0.1)) for index, item in enumerate(capacity))
    builder = Builder("workers", Cluster((0,), links), 1)
    flows: list[int] = []
    for one, other in permutations(range(count), 2):
        inner = (2 * servers + 2 * one, 2 * servers + 2 * other + 1)
        across = () if one // 2 == other // 2 else (one // 2 * 2, other // 2 * 2 + 1)
        after = flows[-1:] if draw(st.integers(0, 4)) == 0 else []
        for route in ((inner[0], *across, inner[1]), *([across] if across and draw(st.booleans()) else [])):
            flows.append(builder.flow(OpKind.WIRE, 0, draw(some), route, stream=f"{one}>{other} {route}", after=after))
    for one in range(0, count, 3):
        route = (2 * servers + 2 * one + 1,)
        flows.append(builder.flow(OpKind.H2D, 0, draw(some), route, stream=f"{one}", after=flows[one : one + 1]))
    return builder.close(
        [builder.compute(OpKind.STEP, 0, 0.5, after=[(flow, index % 2) for index, flow in enumerate(flows)])]
    )


@settings(many, max_examples=12)
@given(st.data())
def test_all_pairs_of_workers(kernel: Kernel, data: st.DataObject) -> None:
    schedule = workers(data.draw, data.draw(st.integers(6, 8)))
    compare(schedule, 3, [kernel])


@pytest.mark.parametrize("bandwidth", ["50Gbps", "200Gbps"])
def test_links_that_are_never_full_are_left_out_of_the_matrix(kernel: Kernel, bandwidth: str) -> None:
    schedule = written(scenario("psc-gcn", cluster={"gpus": 12, "gpus_per_server": 2, "bandwidth": bandwidth}))
    links = layout(schedule, 1).links
    assert (links.planes.max() > 1) == (bandwidth != "200Gbps")
    compare(schedule, 1, [uncompiled, kernel])
    compare(unequal(schedule), 4, [kernel])


def test_the_groups_of_few_sets_of_links_are_kept() -> None:
    columns = written(scenario("full-graph", cluster={"gpus": 2})).columns
    made = [columns.lately("tried", key, lambda key=key: [key]) for key in range(2 * FEW)]  # type: ignore[misc]
    assert columns.lately("tried", 2 * FEW - 1, list) is made[-1]
    assert len(columns._found["tried"]) == FEW
