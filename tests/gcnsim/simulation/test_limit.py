"""The limit of an iteration by name: which link, stage or worker, and how busy it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gcnsim.cluster import Cluster, LinkSpec, Paths, build_cluster
from gcnsim.engine import simulate
from gcnsim.scenario import SCHEMA, from_mapping
from gcnsim.schedule import Builder, Schedule, bounds
from gcnsim.simulation import Limit, measure, study
from gcnsim.timeline import OpKind
from tests.cases import Case, method

MakeFacts = Callable[..., Case]

FAST = {"nic": 1e13, "pcie": 1e13, "nic_latency": 0.0}


def limit(schedule: Schedule, iterations: int = 30, first: int = 10) -> Limit:
    return measure(simulate(schedule, iterations), first, bounds(schedule)).limit


@pytest.mark.parametrize(
    ("name", "shape", "text", "kind"),
    [
        ("full-graph", FAST | {"slope": 0.1}, "GPU compute of worker 3", "compute"),
        ("pipegcn", FAST | {"slope": 0.1}, "GPU compute of worker 3", "compute"),
        ("full-graph", {"nic": 1e6, "slope": 0.1, "per_server": 1}, "NIC of server 3", "nic"),
        ("pipegcn", {"nic": 1e6, "slope": 0.1, "per_server": 1}, "NIC of server 3", "nic"),
        ("psc-gcn", {"tau": 2, "sampled": True, "cores": 0.01}, "CPU cores of server 0 (samplers)", "cpu"),
        ("full-graph", {"nic": 1e12, "pcie": 1e7, "slope": 0.1}, "PCIe of worker 3", "pcie"),
        ("pipegcn", {"nic": 1e12, "pcie": 1e7, "slope": 0.1}, "PCIe of worker 3", "pcie"),
        ("pipegcn", {"per_server": 4, "rows": 1e6}, "host memory copies of server 0", "memory"),
        ("full-graph", {"nic": 1e12, "nic_latency": 1.0}, "all-reduce (NIC)", "nic"),
    ],
)  # fmt: skip
def test_the_limit_has_a_name(facts: MakeFacts, name: str, shape: dict[str, float], text: str, kind: str) -> None:
    found = limit(method(name)(facts(**shape)))
    assert (found.text, found.kind) == (text, kind)
    assert 0.2 < found.share <= 1.0


def test_a_saturated_link_is_named_with_its_server_and_the_worker_that_moves_most_over_it(facts: MakeFacts) -> None:
    found = limit(method("pipegcn")(facts(nic=1e6, slope=0.1, workers=6)))
    assert (found.text, found.worker, found.server) == ("NIC of server 2", 5, 2)
    assert found.link in ("nic2.tx", "nic2.rx")
    assert found.share == pytest.approx(1.0, abs=0.02)


@pytest.fixture
def pair() -> Cluster:
    """Two servers of one GPU, every link 1 unit/s."""
    one = LinkSpec(1.0)
    return build_cluster(gpus=2, gpus_per_server=1, pcie=one, nic=one, memory=one, cores=one)


def test_a_worker_that_others_wait_for_is_named(pair: Cluster) -> None:
    b = Builder("test", pair, 1)
    # Worker 0 computes most, but longest of all takes a copy of worker 1.
    work = [b.compute(OpKind.UPDATE, rank, 2.0 - rank) for rank in range(2)]
    late = b.flow(OpKind.D2H, 1, 6.0, pair.to_host(1), stream="copy", after=[work[1]])
    schedule = b.close([b.compute(OpKind.STEP, rank, 0.0, after=[late]) for rank in range(2)])
    found = measure(simulate(schedule, 12), 6, bounds(schedule))
    assert found.worker == 0
    assert (found.limit.kind, found.limit.text, found.limit.worker) == ("peer", "waiting for worker 1", 1)
    assert found.limit.share == pytest.approx(5.0 / 7.0)
    assert found.bottleneck == "waiting for a slower worker"


def test_an_all_reduce_that_is_waited_for_is_one(pair: Cluster) -> None:
    b = Builder("test", pair, 1)
    work = [b.compute(OpKind.UPDATE, rank, 1.0) for rank in range(2)]
    summed = [
        b.flow(OpKind.ALLREDUCE, rank, 3.0, pair.between(rank, 1 - rank), stream="reduce", after=work, peer=1 - rank)
        for rank in range(2)
    ]
    found = limit(b.close([b.compute(OpKind.STEP, rank, 0.0, after=summed) for rank in range(2)]), 12, 6)
    assert (found.text, found.kind) == ("all-reduce (NIC)", "nic")
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
    assert (found.kind, found.text) == ("rack", "uplink of rack 0")
    assert found.share == pytest.approx(4.0 / 5.0)


def test_the_straggling_server_of_the_readme_is_named() -> None:
    cluster = {"gpus": 6, "bandwidth": "15Gbps"}
    asked = from_mapping({"schema": SCHEMA, "cluster": cluster, "run": {"iterations": 5}}, "test")
    found = study(asked).metrics.limit
    assert (found.text, found.kind, found.worker, found.server) == ("NIC of server 2", "nic", 4, 2)
    assert found.share > 0.98


def test_two_gpus_of_any_kind_wait_for_the_sampler_on_the_host() -> None:
    for device in ("t4", "a100-40"):
        cluster = {"gpus": 2, "device": device}
        asked = from_mapping({"schema": SCHEMA, "cluster": cluster, "run": {"iterations": 5}}, "test")
        assert study(asked).metrics.limit.text == "sampler of worker 0 (host CPU)"
