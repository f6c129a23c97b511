"""The limit of an iteration: the resource without which it is shortest, by name, on runs by hand and on clusters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gcnsim.engine import simulate
from gcnsim.hardware.link_specs import LinkSpec, Paths
from gcnsim.hardware.topology import Cluster, build_cluster
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.schedule import Builder, Schedule
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.limit import Limit, find_limit
from gcnsim.simulation.metrics import measure
from gcnsim.simulation.removal import Removals
from gcnsim.timeline import OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]

FAST = {"nic": 1e13, "pcie": 1e13, "nic_latency": 0.0}


def limit(schedule: Schedule, iterations: int = 30, first: int = 10) -> Limit:
    run = simulate(schedule, iterations, endless=True)
    return find_limit(run, first, measure(run, first).iteration_s)


@pytest.mark.parametrize(
    ("name", "shape", "text", "kind"),
    [
        ("full-graph", FAST | {"slope": 0.1}, "GPU compute of worker 3", "compute"),
        ("pipegcn", FAST | {"slope": 0.1}, "GPU compute of worker 3", "compute"),
        ("pipegcn", FAST, "GPU compute of all workers", "compute"),
        ("full-graph", {"nic": 1e6, "slope": 0.5, "per_server": 1}, "NIC of server 3", "nic"),
        ("pipegcn", {"nic": 1e6, "slope": 0.5, "per_server": 1}, "NIC of server 3", "nic"),
        ("pipegcn", {"nic": 1e6, "per_server": 1}, "NICs of all servers", "nic"),
        ("psc-gcn", {"tau": 2, "sampled": True, "cores": 0.01}, "CPU cores of all servers (samplers)", "cpu"),
        ("full-graph", {"nic": 1e12, "pcie": 1e7, "slope": 0.5}, "PCIe of worker 3", "pcie"),
        ("pipegcn", {"nic": 1e12, "pcie": 1e7, "slope": 0.5}, "PCIe of worker 3", "pcie"),
        ("pipegcn", {"nic": 1e12, "pcie": 1e7}, "PCIe of all workers", "pcie"),
        ("pipegcn", {"per_server": 4, "rows": 1e6}, "host memory copies of server 0", "memory"),
        ("full-graph", {"nic": 1e12, "nic_latency": 1.0}, "latency of messages (NIC)", "nic"),
    ],
)  # fmt: skip
def test_the_limit_has_a_name(facts: MakeFacts, name: str, shape: dict[str, float], text: str, kind: str) -> None:
    found = limit(method(name)(facts(**shape)))
    assert (found.text, found.kind) == (text, kind)
    assert 0.05 < found.share <= found.kind_share <= 1.0


@pytest.mark.parametrize(
    ("name", "shape", "word"),
    [
        ("full-graph", {"nic": 1e13, "pcie": 1e13, "nic_latency": 0.0}, "GPU compute"),
        ("pipegcn", {"nic": 1e13, "pcie": 1e13, "nic_latency": 0.0}, "GPU compute"),
        ("full-graph", {"nic": 1e6}, "network (NIC)"),
        ("pipegcn", {"nic": 1e6}, "network (NIC)"),
        ("psc-gcn", {"tau": 2, "sampled": True, "nic": 1e6}, "network (NIC)"),
        ("psc-gcn", {"tau": 2, "sampled": True, "cores": 0.01}, "sampling on the CPU"),
        ("psc-gcn", {"tau": 0, "sampled": True, "cores": 0.01}, "sampling on the CPU"),
        ("full-graph", {"nic": 1e12, "pcie": 1e7}, "PCIe copies"),
        ("pipegcn", {"nic": 1e12, "pcie": 1e7}, "PCIe copies"),
        ("pipegcn", {"per_server": 4, "rows": 1e6}, "host memory copies"),
        ("full-graph", {"per_server": 4, "rows": 1e6}, "host memory copies"),
    ],
)
def test_the_kind_of_clear_cases(facts: MakeFacts, name: str, shape: dict[str, float], word: str) -> None:
    assert limit(method(name)(facts(**shape))).word == word


def test_the_link_with_most_to_do_has_its_server_and_the_worker_that_moves_most_over_it(facts: MakeFacts) -> None:
    found = limit(method("pipegcn")(facts(nic=1e6, slope=0.5, workers=6)))
    assert (found.text, found.worker, found.server) == ("NIC of server 2", 5, 2)
    assert found.link in ("nic2.tx", "nic2.rx")
    assert found.most == "NIC of server 2"
    assert found.busy == pytest.approx(1.0, abs=0.02)
    assert found.others is not None
    assert found.others[1] < found.busy


@pytest.fixture
def pair() -> Cluster:
    """Two servers of one GPU, every link 1 unit/s."""
    one = LinkSpec(1.0)
    return build_cluster(gpus=2, gpus_per_server=1, pcie=one, nic=one, memory=one, cores=one)


def summed(pair: Cluster, work: tuple[float, float], reduce_s: float) -> Schedule:
    """Two workers that compute `work` seconds, then an all-reduce of `reduce_s` seconds for which both wait."""
    b = Builder("test", pair, 1)
    done = [b.compute(OpKind.UPDATE, rank, work[rank]) for rank in range(2)]
    sent = [
        b.flow(
            OpKind.ALLREDUCE, rank, reduce_s, pair.between(rank, 1 - rank), stream="reduce", after=done, peer=1 - rank
        )
        for rank in range(2)
    ]
    return b.close([b.compute(OpKind.STEP, rank, 0.0, after=sent) for rank in range(2)])


def test_one_worker_is_named_where_it_alone_brings_more_than_anything_else(pair: Cluster) -> None:
    found = limit(summed(pair, (4.0, 1.0), 1.0), 12, 6)
    # 5 s; 2 s without the GPU of worker 0, 1 s without both, 4 s without the all-reduce.
    assert (found.text, found.worker) == ("GPU compute of worker 0", 0)
    assert (found.share, found.kind_share) == pytest.approx((3 / 5, 4 / 5))
    assert found.busy == pytest.approx(4 / 5)
    assert found.others == pytest.approx((1 / 5, 1 / 5))


def test_all_of_a_kind_are_named_where_one_of_them_brings_less_than_something_else(pair: Cluster) -> None:
    found = limit(summed(pair, (4.0, 3.5), 3.0), 12, 6)
    # 7 s; 6.5 s without the GPU of worker 0, 3 s without both, 4 s without the all-reduce.
    assert (found.text, found.worker) == ("GPU compute of all workers", 0)
    assert found.share == found.kind_share == pytest.approx(4 / 7)
    assert found.most == "GPU compute of worker 0"


def test_what_brings_as_much_is_named_too(pair: Cluster) -> None:
    found = limit(summed(pair, (3.0, 3.0), 3.0), 12, 6)
    assert set(found.text.split(" or ")) == {"GPU compute of all workers", "all-reduce (NIC)"}
    assert found.share == pytest.approx(1 / 2)
    assert found.most == ""


def test_of_work_that_overlaps_and_takes_as_long_no_single_resource_limits(pair: Cluster) -> None:
    b = Builder("test", pair, 1)
    work = [b.compute(OpKind.UPDATE, rank, 3.0) for rank in range(2)]
    sent = [
        b.flow(OpKind.WIRE, rank, 3.0, pair.between(rank, 1 - rank), stream="tx", after=[work[rank]], peer=1 - rank)
        for rank in range(2)
    ]
    ends = []
    for rank in range(2):
        ends.append(b.compute(OpKind.STEP, rank, 0.0, after=[(sent[1 - rank], 1)]))
    found = limit(b.close(ends), 40, 20)
    assert found.text.startswith("no single resource: ")
    assert "GPU compute of worker" in found.text
    assert "NIC of server" in found.text
    assert found.share == found.kind_share == pytest.approx(0.0, abs=1e-3)
    assert not found.only


def test_the_copies_that_others_wait_for_are_named(pair: Cluster) -> None:
    b = Builder("test", pair, 1)
    # Worker 0 computes most, but longest of all takes a copy of worker 1: 7 s, and 2 s without it.
    work = [b.compute(OpKind.UPDATE, rank, 2.0 - rank) for rank in range(2)]
    late = b.flow(OpKind.D2H, 1, 6.0, pair.to_host(1), stream="copy", after=[work[1]])
    found = limit(b.close([b.compute(OpKind.STEP, rank, 0.0, after=[late]) for rank in range(2)]), 12, 6)
    assert (found.kind, found.text, found.worker) == ("pcie", "PCIe of worker 1", 1)
    assert found.share == pytest.approx(5 / 7, abs=1e-5)


def test_an_all_reduce_that_is_waited_for_is_one(pair: Cluster) -> None:
    found = limit(summed(pair, (1.0, 1.0), 3.0), 12, 6)
    assert (found.text, found.kind, found.worker) == ("all-reduce (NIC)", "nic", None)
    assert found.share == pytest.approx(3.0 / 4.0)


def test_messages_that_wait_more_than_they_move_are_limited_by_latency(pair: Cluster) -> None:
    slow = replace(pair, links=tuple(replace(link, spec=LinkSpec(1.0, 2.0)) for link in pair.links))
    b = Builder("test", slow, 1)
    work = b.compute(OpKind.UPDATE, 0, 1.0)
    sent = b.flow(OpKind.WIRE, 0, 0.5, slow.route("host0", "host1"), stream="tx", after=[work], peer=1)
    ends = [b.compute(OpKind.STEP, rank, 0.0, after=[sent]) for rank in range(2)]
    found = limit(b.close(ends), 12, 6)
    assert (found.text, found.kind) == ("latency of messages (NIC)", "nic")
    assert found.share > 0.5


def test_of_a_route_the_busiest_link_is_the_limit() -> None:
    one = LinkSpec(1.0)
    paths = Paths(servers_per_rack=1, oversubscription=4.0)
    cluster = build_cluster(gpus=2, gpus_per_server=1, pcie=one, nic=one, memory=one, cores=one, paths=paths)
    b = Builder("test", cluster, 1)
    sent = b.flow(OpKind.WIRE, 0, 1.0, cluster.between(0, 1), stream="tx", peer=1)
    ends = [b.compute(OpKind.UPDATE, rank, 1.0, after=[sent]) for rank in range(2)]
    b.wait_for(sent, (ends[0], 1))
    found = limit(b.close(ends), 12, 6)
    # A message passes both uplinks: 5 s, and 2 s without them.
    assert (found.kind, found.text) == ("rack", "uplinks of all racks")
    assert found.share == pytest.approx(3.0 / 5.0, abs=1e-5)


def scenario(method: str = "psc-gcn", faults: tuple[dict[str, object], ...] = (), **cluster: object) -> Scenario:
    requested = {"schema": SCHEMA, "cluster": cluster, "method": {"name": method}, "run": {"iterations": 5}}
    return from_mapping(requested | {"faults": list(faults)}, "test")


def test_a_gpu_that_becomes_slow_is_named() -> None:
    """Passing faults make every iteration one of its own: the same ones are simulated without a resource."""
    slow = {"kind": "slow-gpu", "worker": 1, "factor": 5.0, "first": 1}
    found = simulate_scenario(scenario("pipegcn", (slow,), gpus=4, bandwidth="100Gbps")).limit
    assert (found.text, found.worker) == ("GPU compute of worker 1", 1)
    assert found.share > 0.4


def test_what_is_proven_is_no_less_than_what_is_simulated(facts: MakeFacts) -> None:
    for name, shape in (("full-graph", {}), ("psc-gcn", {"tau": 1, "sampled": True, "iterations": 4, "spread": 0.5})):
        run = simulate(method(name)(facts(slope=0.3, **shape)), 12, endless=True)
        removals = Removals(run, 4, measure(run, 4).iteration_s)
        assert {"compute", "nic", "pcie", "latency", "allreduce"} <= removals.kinds.keys()
        for kind in removals.kinds.values():
            assert removals.saved(kind) <= removals.at_most(kind, chains=True) <= removals.at_most(kind)
        every = removals.at_most_without(list(removals.kinds.values()))
        assert every >= max(map(removals.saved, removals.kinds.values()))


def test_kinds_that_gain_little_together_gain_no_more_alone() -> None:
    for name, gbps, share in (("full-graph", 50, 0.15), ("full-graph", 100, 0.1), ("bns-gcn", 25, 0.05)):
        result = simulate_scenario(scenario(name, gpus=8, bandwidth=f"{gbps}Gbps"))
        removals = Removals(result.run, result.warm_up, result.metrics.iteration_s)
        minor = removals.minor(share)
        assert {"latency", "packing", "allreduce", "other"} <= minor
        assert max(removals.saved(removals.kinds[kind]) for kind in minor) <= share
        assert removals.minor(0.0) == frozenset()
