"""Who is behind the limit, and the same graph in even parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.diagnosis import EvenPartition, evened, straggler_of
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd, Source
from gcnsim.trace.counts import AccessCounts


def scenario(method: str = "psc-gcn", dataset: str = "reddit", **cluster: Any) -> Scenario:
    machine = {"gpus": 6, "bandwidth": "15Gbps"} | cluster
    requested = {"schema": SCHEMA, "cluster": machine, "method": {"name": method}, "run": {"iterations": 5}}
    return from_mapping(requested | {"workload": {"dataset": dataset}}, "test")


def counts_of(base: Scenario, accesses: Source) -> AccessCounts:
    return accesses.counts(base, resolve_model(base.workload, accesses.declared).features, RangeEnd.LIKELY)


def test_the_straggler_of_reddit_on_six_is_worker_four() -> None:
    base = scenario()
    accesses = open_source(base)
    straggler = straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses))
    assert straggler is not None
    assert (straggler.worker, straggler.load, straggler.amount) == (4, "boundary nodes", 145_864)
    assert straggler.mean == pytest.approx(89_463, abs=1)
    assert straggler.share_of_mean == pytest.approx(1.63, abs=0.005)
    assert straggler.busy > 0.98
    assert straggler.others_low is not None
    assert straggler.others_high is not None
    # The busiest sender has 1.19 times the mean, as counted, so other NICs wait less.
    assert 0.6 < straggler.others_low <= straggler.others_high < 0.78
    assert straggler.text.startswith(
        "worker 4 has 145,864 boundary nodes, 1.63 times the mean (89,463); NIC of server 2 is"
    )


def test_where_gpus_limit_the_straggler_has_more_edges() -> None:
    base = scenario("full-graph")
    accesses = open_source(base)
    straggler = straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses))
    assert straggler is not None
    assert (straggler.worker, straggler.load) == (4, "edges")
    assert "that of other workers" in straggler.text


def test_the_uplink_of_a_rack_is_compared_with_those_of_other_racks() -> None:
    base = scenario("pipegcn", servers_per_rack=1, oversubscription=8.0)
    accesses = open_source(base)
    found = straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses))
    assert found is not None
    assert "; uplink of rack 2 is busy " in found.text
    assert "% of the time, those of other racks " in found.text


@pytest.mark.parametrize(
    ("method", "cluster"),
    [
        ("full-graph", {"gpus": 1}),
        ("distdgl", {"gpus": 4}),
        ("pipegcn", {"gpus": 4, "gpus_per_server": 4, "host_memory": "2GB/s", "transport": "staged"}),
    ],
    ids=str,
)
def test_nobody_straggles_alone_in_mini_batches_or_on_a_link_that_all_share(
    method: str, cluster: dict[str, Any]
) -> None:
    base = scenario(method, **cluster)
    accesses = open_source(base)
    assert straggler_of(simulate_scenario(base, accesses), counts_of(base, accesses)) is None


def test_the_latency_of_messages_has_no_straggler() -> None:
    base = scenario("psc-gcn", "yelp", bandwidth="100Gbps", latency="50ms", device="h100")
    accesses = open_source(base)
    result = simulate_scenario(base, accesses)
    assert result.limit.text == "latency of messages (NIC)"
    assert straggler_of(result, counts_of(base, accesses)) is None


def test_an_even_partition_has_no_straggler_and_is_faster() -> None:
    base = scenario()
    accesses = open_source(base)
    even = EvenPartition(accesses)
    result, counts = simulate_scenario(base, even), counts_of(base, even)
    assert straggler_of(result, counts) is None
    assert result.metrics.iteration_s < 0.85 * simulate_scenario(base, accesses).metrics.iteration_s


@pytest.mark.parametrize("per_server", [1, 2, 4])
def test_evening_keeps_every_total_and_every_law_of_counts(per_server: int) -> None:
    base = scenario(gpus=6)
    counts = counts_of(base, open_source(base))
    even = evened(counts, per_server)
    for name in ("rows", "hits"):
        before, after = getattr(counts, name), getattr(even, name)
        assert (after.sum(axis=(1, 2)) == before.sum(axis=(1, 2))).all()
        assert not after[:, range(6), range(6)].any()
        server = np.arange(6) // per_server
        beside = (server[:, None] == server[None, :]) & ~np.eye(6, dtype=bool)
        assert (after[:, beside].sum(axis=1) == before[:, beside].sum(axis=1)).all()
    assert (even.hits <= even.rows).all()
    for name in ("inner_edges", "boundary_edges", "inner_nodes", "boundary_nodes", "entries", "cached_rows"):
        before, after = getattr(counts, name), getattr(even, name)
        assert (after.sum(axis=-1) == before.sum(axis=-1)).all()
        assert (np.ptp(after, axis=-1) <= 1).all()
    if 6 % per_server == 0:
        for axis in (1, 2):
            assert (np.ptp(even.rows.sum(axis=axis), axis=1) <= 2).all()
    assert counts.iterations == even.iterations


def test_two_workers_are_evened_and_one_has_nobody_to_share_with() -> None:
    for gpus, same in ((2, False), (1, True)):
        base = scenario("full-graph", gpus=gpus)
        counts = counts_of(base, open_source(base))
        even = evened(counts)
        assert (even is counts) == same
        assert int(np.ptp(even.boundary_nodes)) <= 1
        assert int(np.ptp(even.inner_nodes)) <= 1
    assert counts.boundary_nodes.sum() == 0


def test_mini_batches_are_returned_as_they_are() -> None:
    base = scenario("distdgl", gpus=4)
    counts = counts_of(base, open_source(base))
    assert evened(counts) is counts
