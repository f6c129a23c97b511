"""Which part lies on which of unequal GPUs: nobody chose, so the interval holds every order."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.planning.study_cache import StudyCache
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.placement import PARTITION, PartOrder, Placed, placements
from gcnsim.simulation.propagation import factors
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.trace.counts import AccessCounts


def scenario(devices: str | None = "t4,v100-16", method: str = "full-graph", **more: Any) -> Scenario:
    cluster = {"gpus": 4, "gpus_per_server": 2, "bandwidth": "200Gbps", "devices": devices}
    # Reddit's own four parts, as counted, are too even for orders to matter by a fifth.
    workload = {"dataset": "reddit-train"}
    requested = {"schema": SCHEMA, "cluster": cluster, "method": {"name": method}, "run": {"iterations": 4}}
    return from_mapping(requested | {"workload": workload} | more, "test")


class Ordered(Placed):
    """The accesses with their parts in an order written down."""

    def __init__(self, source: Source, order: tuple[int, ...]) -> None:
        super().__init__(source, PartOrder.NUMBERED)
        self.order = np.array(order)

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        return self.source.counts(scenario, features, bound).placed(self.order)


@pytest.mark.parametrize("method", ["full-graph", "pipegcn"])
def test_the_interval_holds_every_order_of_the_parts(method: str) -> None:
    base = scenario(method=method)
    accesses = open_source(base)
    every = [simulate_scenario(base, Ordered(accesses, order)).metrics.iteration_s for order in permutations(range(4))]
    found = StudyCache(base).estimate(base)
    assert found.iteration_s == every[0], "as numbered"
    assert found.low_s is not None
    assert found.high_s is not None
    # Within what a pipeline's window may still drift.
    assert found.low_s <= min(every) * 1.001
    assert found.high_s >= max(every) * 0.999
    assert max(every) > 1.2 * min(every)
    ends = [
        simulate_scenario(base, Placed(accesses, placement)).metrics.iteration_s for placement in tuple(PartOrder)[1:]
    ]
    assert ends == pytest.approx([min(every), max(every)], rel=1e-3)


def test_of_blocks_the_best_and_the_worst_order_are_near_the_ends() -> None:
    # The extremes of all 24, found by trying them; products of blocks differ pair by pair, not by a part's work alone.
    base = scenario(method="cagnet-1d")
    found = StudyCache(base).estimate(base)
    assert found.low_s is not None
    assert found.high_s is not None
    for order in ((2, 1, 0, 3), (3, 0, 1, 2)):
        extreme = simulate_scenario(base, Ordered(open_source(base), order)).metrics.iteration_s
        assert found.low_s * 0.94 <= extreme <= found.high_s * 1.06, order


def test_the_interval_does_not_depend_on_which_server_is_named_first() -> None:
    either = [StudyCache(requested).estimate(requested) for requested in map(scenario, ("t4,v100-16", "v100-16,t4"))]
    assert either[0].low_s is not None
    assert either[0].high_s is not None
    assert either[0].low_s == pytest.approx(either[1].low_s, rel=1e-2)
    assert either[0].high_s == pytest.approx(either[1].high_s, rel=1e-2)
    assert either[0].low_s <= either[1].iteration_s <= either[0].high_s


def test_equal_gpus_and_parts_that_somebody_numbered_have_one_order() -> None:
    alone = (PartOrder.NUMBERED,)
    assert placements(scenario(None)) == placements(scenario("t4")) == placements(scenario("t4,t4")) == alone
    assert placements(scenario()) == tuple(PartOrder)
    numbered = scenario(workload={"graph": "a.npz"}, partition={"file": "a.parts"})
    assert placements(numbered) == alone
    traced = scenario(workload={"trace": str(Path("a.trace"))})
    assert placements(traced) == alone


def test_an_answer_says_so() -> None:
    requested = {"schema": SCHEMA, "method": {"name": "full-graph"}, "run": {"iterations": 2}}
    cluster = {"gpus": 4, "devices": "t4,v100-16"}
    payload = gcnsim.simulate(requested | {"cluster": cluster}).payload
    (row,) = (
        assumption for assumption in payload["provenance"]["assumptions"] if assumption["name"] == "placement of parts"
    )
    assert row["in_interval"]
    assert row["high"] == "most work on the slowest"
    plain = gcnsim.simulate(requested | {"cluster": {"gpus": 4}}).payload
    assert "placement of parts" not in {assumption["name"] for assumption in plain["provenance"]["assumptions"]}


def test_parts_change_places_with_all_they_have() -> None:
    base = scenario(method="psc-gcn")
    counts = open_source(base).counts(base, 602, RangeEnd.LIKELY)
    moved = counts.placed(np.array([2, 0, 3, 1]))
    assert (moved.rows[:, 0, 1] == counts.rows[:, 2, 0]).all()
    assert (moved.rows[:, 3, 2] == counts.rows[:, 1, 3]).all()
    assert (moved.inner_edges[:, 2] == counts.inner_edges[:, 3]).all()
    assert (moved.entries == counts.entries[[2, 0, 3, 1]]).all()
    back = moved.placed(np.array([1, 3, 0, 2]))
    assert all((getattr(back, name) == getattr(counts, name)).all() for name in ("rows", "hits", "inner_nodes"))


def test_other_partitions_are_open_in_every_order_of_the_parts() -> None:
    base = scenario("t4,v100-16", workload={"dataset": "reddit"})
    accesses = open_source(base)
    plain = factors(base, accesses, 0)
    assert PARTITION in plain.alone, "the workload shows nothing"
    for placement in placements(base):
        ordered = factors(base, Placed(accesses, placement), 0)
        # Where the fastest GPU has the most work, an evener partition is the slower one.
        low, high = sorted(ordered.alone[PARTITION])
        assert low < 1.0 < high
