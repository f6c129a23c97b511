"""Fields of a cluster: figures, odd rates, their rules."""

from __future__ import annotations

from dataclasses import MISSING, fields, replace
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError, UnitError
from gcnsim.core.fields import rule_of
from gcnsim.methods import create_method, method_type, methods
from gcnsim.scenario import ClusterSpec, PartitionSpec, Scenario, WorkloadSpec, from_mapping, scenario_hash, to_mapping
from gcnsim.scenario.catalogue_fields import CatalogueFigures
from gcnsim.scenario.faults import FAULTS
from gcnsim.scenario.odd_rates import rate_warnings
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


TEXT = "ethernet.latency_s=20us,generic-16.cores=32,t4.launch_s=0s,t4.spmm_efficiency=50%"
VALUES = (("ethernet.latency_s", 2e-5), ("generic-16.cores", 32.0), ("t4.launch_s", 0.0), ("t4.spmm_efficiency", 0.5))


def scenario(**cluster: object) -> Scenario:
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": cluster}, "test")


def read(raw: object) -> Any:
    return CatalogueFigures().read(raw, "cluster.figures")


def test_they_are_written_back_without_loss() -> None:
    rule = CatalogueFigures()
    assert rule.write(VALUES) == TEXT
    assert rule.write(()) == "none"
    odd = tuple((name, value) for name, value in (("t4.flops_fp32", 7.123456789e12), ("t4.spmm_efficiency", 1 / 3)))
    assert [value for _, value in read(rule.write(odd))] == pytest.approx([value for _, value in odd], rel=1e-9)
    base = scenario(figures=TEXT)
    assert base.cluster.figures == VALUES
    assert from_mapping(to_mapping(base), "again") == base


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (
            "rxt-4090.spmm_efficiency=50%",
            "cluster.figures: unknown device, link or host 'rxt-4090'; did you mean 'rtx-4090'",
        ),
        ("t4.spm_efficiency=50%", "cluster.figures: t4 has no figure 'spm_efficiency'; did you mean 'spmm_efficiency'"),
        ("ethernet.cores=3", "cluster.figures: ethernet has no figure 'cores'"),
        ("t4.spmm_efficiency=120%", "t4.spmm_efficiency=120% is not allowed; above 0% and at most 100%"),
        ("generic-16.cores=-1", "generic-16.cores=-1 is not allowed; above 0"),
        ("generic-16.cores=nan", "generic-16.cores=nan is not allowed; above 0"),
        ("ethernet.latency_s=20", "cluster.figures: ethernet.latency_s: '20' has no unit"),
        ("t4.launch_s=1us,t4.launch_s=2us", "cluster.figures: t4.launch_s is given twice"),
        ("t4.launch_s", "cluster.figures: 't4.launch_s' is not allowed; NAME.FIGURE=VALUE separated by commas"),
    ],
)
def test_a_bad_figure_is_one_clear_line(raw: object, message: str) -> None:
    with pytest.raises((ScenarioError, UnitError)) as refused:
        read(raw)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


def test_scenarios_without_them_are_written_and_hashed_as_before() -> None:
    plain = scenario(gpus=2)
    assert "figures" not in to_mapping(plain)["cluster"]
    assert scenario_hash(plain) == scenario_hash(scenario(gpus=2, figures="none"))
    assert scenario_hash(plain) != scenario_hash(scenario(gpus=2, figures="t4.launch_s=1us"))
    # As before there was such a field: a hash names stored answers.
    assert scenario_hash(from_mapping({"schema": "gcnsim.scenario/1"}, "test")) == HASH


HASH = "ebcd38dcf598550702720728d26b6b22e4c7bca2670104ce484e9f3f1757531f"


def scenario_with(**cluster: object) -> Scenario:
    given = {"gpus": 8, "gpus_per_server": 8} | cluster
    return from_mapping({"schema": "gcnsim.scenario/1", "cluster": given}, "test")


P4D = {"host": "p4d.24xlarge", "device": "a100-40", "bandwidth": "400Gbps"}


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        ({"device": "h100", "nvlink": "900GB/s"}, ("more than h100 has", "450 GB/s", "both directions")),
        ({"device": "h100", "nvlink": "9000GB/s"}, ("more than h100 has", "added?")),
        ({"device": "a100-80", "nvlink": "2400GB/s"}, ("GB/s) for bits",)),
        ({"host": "g6.12xlarge", "device": "t4", "gpus": 4, "gpus_per_server": 4}, ("sold with l4, not t4",)),
        ({"device": "t4", "nvlink": "50GB/s"}, ("knows no NVLink of t4",)),
        (
            {"gpus": 4, "gpus_per_server": 2, "devices": ["h100", "v100-16"], "nvlink": "300GB/s"},
            ("more than v100-16 has",),
        ),
        ({"device": "t4", "bandwidth": "3200Gbps"}, ("one adapter carries (400Gbps", "all adapters of an instance")),
        ({"device": "t4", "bandwidth": "100GB/s"}, ("100 GB/s for 100 Gbps?",)),
        ({"device": "h100", "bandwidth": "6400Gbps"}, ("a hgx-h100-8 has", "8 adapters together", "both directions")),
        ({"link": "ethernet-25g", "bandwidth": "100Gbps"}, ("25Gbps, ethernet-25g",)),
        (P4D | {"bandwidth": "800Gbps"}, ("a p4d.24xlarge has", "4 adapters together", "both directions")),
        (P4D | {"gpus": 24, "bandwidth": "1200Gbps"}, ("all 3 servers added?",)),
        ({"figures": "pcie3-x16.bandwidth=32GB/s"}, ("2.03 times the datasheet's", "both directions")),
        ({"device": "h100", "figures": "h100.flops_fp16=1979TFLOP/s"}, ("with sparsity?",)),
        ({"host_memory": "900GB/s"}, ("more than the memory of a generic-16 moves",)),
    ],
)
def test_a_rate_above_what_there_is_names_the_mix_up(cluster: dict[str, object], words: tuple[str, ...]) -> None:
    (warning,) = rate_warnings([scenario_with(**cluster)])
    assert all(word in warning for word in words), warning
    assert "\n" not in warning


@pytest.mark.parametrize(
    "cluster",
    [
        {},
        {"device": "h100", "nvlink": "450GB/s"},
        {"device": "h100", "bandwidth": "3200Gbps"},
        P4D | {"nvlink": "300GB/s"},
        {"figures": "pcie3-x16.bandwidth=12GB/s"},
        {"link": "infiniband-ndr", "bandwidth": "400Gbps"},
    ],
)
def test_what_there_is_raises_no_warning(cluster: dict[str, object]) -> None:
    assert list(rate_warnings([scenario_with(**cluster)])) == []
