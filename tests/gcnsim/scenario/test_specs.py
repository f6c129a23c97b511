from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import rule_of
from gcnsim.core.units import bandwidth
from gcnsim.methods import create_method, method_type, methods
from gcnsim.scenario import ClusterSpec, PartitionSpec, WorkloadSpec
from gcnsim.scenario.faults import FAULTS
from gcnsim.scenario.specs import RunSpec
from gcnsim.workload.caching import CacheSize


@pytest.mark.parametrize(
    "kind",
    [ClusterSpec, WorkloadSpec, PartitionSpec, RunSpec, *FAULTS.values(), *map(method_type, methods())],
    ids=lambda kind: kind.__name__,
)
def test_every_default_keeps_its_rule(kind: type[ClusterSpec]) -> None:
    # Specs do not check fields that have their defaults.
    for item in fields(kind):
        if (found := rule_of(item)) is None or item.default is MISSING or (item.default is None and found[2]):
            continue
        rule: Any = found[0]
        rule.check(item.default, item.name)
        assert getattr(rule, "canonical", lambda name: name)(item.default) == item.default


def test_defaults_are_the_published_platform() -> None:
    cluster = ClusterSpec()
    assert (cluster.gpus, cluster.gpus_per_server, cluster.servers) == (6, 2, 3)
    assert cluster.bandwidth == bandwidth("15Gbps")


def test_the_last_server_holds_what_is_left() -> None:
    assert ClusterSpec(gpus=5) == ClusterSpec(gpus=5, gpus_per_server=2)
    assert ClusterSpec(gpus=5).servers == 3
    assert ClusterSpec(gpus=6, gpus_per_server=4).servers == 2


def test_replace_is_checked_like_a_file() -> None:
    with pytest.raises(ScenarioError, match=r"cluster.gpus: 0 is not allowed"):
        replace(ClusterSpec(), gpus=0)
    with pytest.raises(ScenarioError, match=r"method.epsilon: 0 is not allowed"):
        create_method("psc-gcn").with_knobs(epsilon=0.0)
    with pytest.raises(ScenarioError, match=r"run.iterations: 0 is not allowed"):
        RunSpec(iterations=0)


@pytest.mark.parametrize("name", methods())
def test_every_method_stands_at_its_knobs(name: str) -> None:
    spec = create_method(name)
    stands = {"psc-gcn": (2, 0.1, 1.0), "bns-gcn": (0, 1.0, 0.1)}.get(name, (int(name.startswith("pipegcn")), 1.0, 1.0))
    assert (spec.tau, spec.epsilon, spec.rate) == stands
    assert spec.cache == (CacheSize(auto=True) if name == "pagraph" else CacheSize.none())
    assert all(value == knob.standard for value, knob in zip(spec.values().values(), spec.knobs(), strict=True))


def test_a_knob_a_method_lacks_is_refused_unless_it_stands_there_anyway() -> None:
    assert create_method("pipegcn", tau=1, epsilon=1.0, cache=CacheSize(fraction=0.0)).tau == 1
    with pytest.raises(ScenarioError, match=r"method.tau: 2 is not allowed; pipegcn has no tau \(it is 1\)"):
        create_method("pipegcn", tau=2)
    with pytest.raises(ScenarioError, match=r"method.cache: 30% is not allowed; full-graph has no cache"):
        create_method("full-graph", cache=CacheSize(fraction=0.3))
    with pytest.raises(ScenarioError, match=r"method.sampler: full-graph has no sampler; methods with it: psc-gcn"):
        create_method("full-graph", sampler="vr")
    with pytest.raises(ScenarioError, match=r"method.rate: 0.1 is not allowed; psc-gcn has no rate \(it is 1\)"):
        create_method("psc-gcn", rate=0.1)
    with pytest.raises(ScenarioError, match=r"method.epsilon: 0.1 is not allowed; bns-gcn has no epsilon"):
        create_method("bns-gcn", epsilon=0.1)
    with pytest.raises(ScenarioError, match="did you mean 'psc-gcn'"):
        create_method("psc-gnc")


@pytest.mark.parametrize("rate", [0.0, 0.1, 1.0])
def test_a_rate_of_nothing_and_of_everything_is_allowed(rate: float) -> None:
    assert create_method("bns-gcn", rate=rate).rate == rate
    for bad in (-0.1, 1.1):
        with pytest.raises(ScenarioError, match=r"method.rate: .* is not allowed; a number of at least 0 and"):
            create_method("bns-gcn", rate=bad)


def test_a_workload_is_a_dataset_or_a_graph() -> None:
    assert WorkloadSpec(dataset=None, graph="g.npz").graph == "g.npz"
    with pytest.raises(ScenarioError, match="both dataset"):
        WorkloadSpec(dataset="reddit", graph="g.npz")
    with pytest.raises(ScenarioError, match="neither"):
        WorkloadSpec(dataset=None)
    with pytest.raises(ScenarioError, match=r"workload.cross_fraction: 0% is not allowed"):
        WorkloadSpec(cross_fraction=0.0)
