from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError, UnitError
from gcnsim.core.yaml_files import parse_yaml
from gcnsim.hardware import devices
from gcnsim.methods import Method, all_knobs, create_method
from gcnsim.scenario import (
    SCHEMA,
    ClusterSpec,
    PartitionSpec,
    Scenario,
    WorkloadSpec,
    from_mapping,
    load_scenario,
    scenario_hash,
    to_mapping,
)
from gcnsim.scenario.load import describe_schema
from gcnsim.scenario.specs import RunSpec
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.knobs import KNOBS

SCENARIOS = Path(__file__).parents[3] / "scenarios"


def read(body: str, *overrides: str) -> Scenario:
    return from_mapping(parse_yaml(f"schema: {SCHEMA}\n{body}", "f.yaml"), "f.yaml", overrides)


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_scenarios_load(path: Path) -> None:
    scenario = load_scenario(path)
    assert from_mapping(to_mapping(scenario), "again") == scenario


def test_the_shortest_scenario_is_all_defaults() -> None:
    scenario = read("")
    expected = Scenario("scenario", ClusterSpec(), WorkloadSpec(), PartitionSpec(), create_method("psc-gcn"), RunSpec())
    assert scenario == expected


def test_a_graph_takes_the_place_of_the_default_dataset() -> None:
    assert read("workload: {graph: g.npz}").workload.dataset is None
    assert read("", "workload.graph=g.npz").workload.graph == "g.npz"


@pytest.mark.parametrize(
    ("body", "kind", "message"),
    [
        ("cluster: {gpus: 0}", ScenarioError, "cluster.gpus: 0 is not allowed"),
        ("cluster: {gpus: '6'}", ScenarioError, "cluster.gpus: '6' is not a whole number"),
        ("cluster: {gpus: true}", ScenarioError, "cluster.gpus: True"),
        ("cluster: {bandwidth: 15}", UnitError, "cluster.bandwidth: 15 has no unit"),
        ("cluster: {bandwidth: 0Gbps}", ScenarioError, "a bandwidth of at least"),
        ("cluster: {bandwidth: 1e300Gbps}", ScenarioError, "cluster.bandwidth"),
        ("cluster: {bandwith: 15Gbps}", ScenarioError, "cluster.bandwith: unknown key; did you mean 'bandwidth'?"),
        (
            "cluster: {device: rxt-4090}",
            ScenarioError,
            "cluster.device: unknown device 'rxt-4090'; did you mean 'rtx-4090'?",
        ),
        ("cluster: []", ScenarioError, "cluster: a list is not a section"),
        ("clutser: {}", ScenarioError, "clutser: unknown key; did you mean 'cluster'?"),
        ("workload: {dataset: reddit, graph: g.npz}", ScenarioError, "both dataset"),
        ("method: {name: [psc-gcn]}", ScenarioError, "method.name: a list is not a method"),
        ("method: {epsilon: 0}", ScenarioError, "method.epsilon: 0 is not allowed"),
        ("method: {epsilon: .nan}", ScenarioError, "method.epsilon: nan"),
        ("method: {cache: 130%}", ScenarioError, "method.cache: '130%'"),
        ("cluster: {shared_cores: 1}", ScenarioError, "cluster.shared_cores: 1 is not true or false"),
        ("cluster: {shared_cores: null}", ScenarioError, "cluster.shared_cores: is empty, not true or false"),
        ("cluster: {calibration: ''}", ScenarioError, "cluster.calibration: '' is not a file name"),
        ("workload: {norm: batch}", ScenarioError, "workload.norm: unknown normalisation 'batch'"),
        ("method: {name: pipegcn, epsilon: 0.1}", ScenarioError, "pipegcn has no epsilon"),
        ("name: [a]", ScenarioError, "name: a list"),
        ('name: "two\\nlines"', ScenarioError, "one line"),
        ("run: {seed: 1, seed: 2}", FileError, "given twice"),
    ],
)
def test_bad_scenarios_are_refused_with_their_path(body: str, kind: type[GcnsimError], message: str) -> None:
    with pytest.raises(kind) as caught:
        read(body)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_aggregator_of_earlier_versions_is_left_out() -> None:
    assert read("workload: {model: graphsage, sage_aggregator: mean}") == read("workload: {model: graphsage}")


@pytest.mark.parametrize("mapping", [None, [], "x", {}, {"schema": "gcnsim.scenario/2"}, {"cluster": {}}])
def test_what_is_not_a_scenario_is_refused(mapping: object) -> None:
    with pytest.raises(ScenarioError, match=r"^f.yaml: .*gcnsim.scenario/1"):
        from_mapping(mapping, "f.yaml")


def test_a_misspelt_knob_names_those_of_its_method() -> None:
    with pytest.raises(ScenarioError, match=r"method.epsilom: unknown key; did you mean 'epsilon'\?") as caught:
        read("method: {name: psc-gcn, epsilom: 0.1}")
    assert "batch" not in str(caught.value), "a knob of other methods"


def test_overrides_go_over_the_file() -> None:
    scenario = read("cluster: {gpus: 6}", "cluster.gpus=8", "cluster.latency=20us", "method.cache=2GiB", "name=n")
    assert scenario.cluster.gpus == 8
    assert scenario.cluster.latency == pytest.approx(20e-6)
    assert scenario.method.cache == CacheSize(nbytes=2**31)
    assert scenario.name == "n"
    assert read("cluster: {latency: 1ms}", "cluster.latency=null").cluster.latency is None


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("cluster.gpu=3", "--set cluster.gpu: unknown path; did you mean 'gpus'?"),
        ("clutser.gpus=3", "did you mean 'cluster.gpus'?"),
        ("cluster", "write PATH=VALUE"),
        ("cluster=3", "unknown path"),
        ("cluster.gpus=[1]", "a list is not one value"),
        ("cluster.gpus=", "cluster.gpus: is empty, not a whole number"),
        ("cluster.gpus=0", "cluster.gpus: 0 is not allowed"),
    ],
)
def test_bad_overrides_are_refused(override: str, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        read("", override)
    assert message in str(caught.value)


def test_cores_calibration_norm_and_overlap_can_be_set() -> None:
    scenario = read("", "cluster.shared_cores=true", "cluster.calibration=c.json", "workload.norm=none")
    assert (scenario.cluster.shared_cores, scenario.cluster.calibration) == (True, "c.json")
    assert (scenario.workload.norm, read("").workload.norm) == ("none", "layer")
    assert not read("", "cluster.shared_cores=false").cluster.shared_cores
    for method in ("name: full-graph", "name: bns-gcn", "name: psc-gcn, tau: 0"):
        assert read(f"method: {{{method}, overlap: central}}").method.overlap == "central"


@pytest.mark.parametrize("method", ["name: pipegcn", "name: psc-gcn, tau: 2", "name: cagnet-1d", "name: dgl"])
def test_an_overlap_without_effect_is_refused(method: str) -> None:
    text = r"method.overlap: central is not allowed; \S+ at tau \d does not wait for its transfers"
    with pytest.raises(ScenarioError, match=text):
        read(f"method: {{{method}, overlap: central}}")


def test_each_of_them_makes_another_question() -> None:
    settings = (
        "cluster.shared_cores=true",
        "cluster.calibration=c.json",
        "workload.norm=none",
        "method.overlap=central",
    )
    scenarios = [read("", "method.tau=0", *setting) for setting in ((), *((setting,) for setting in settings))]
    assert len({scenario_hash(scenario) for scenario in scenarios}) == 5


def test_overrides_leave_the_mapping_alone() -> None:
    mapping: dict[str, Any] = {"schema": SCHEMA, "cluster": {"gpus": 6}}
    from_mapping(mapping, "m", ["cluster.gpus=8"])
    assert mapping["cluster"] == {"gpus": 6}


methods = st.one_of(
    st.sampled_from(["none", "central"]).map(lambda overlap: create_method("full-graph", overlap=overlap)),
    st.just(create_method("pipegcn")),
    st.builds(
        create_method,
        st.just("psc-gcn"),
        tau=st.integers(0, 9),
        epsilon=st.floats(1e-6, 1),
        cache=st.one_of(
            st.just(CacheSize.none()),
            st.builds(CacheSize, fraction=st.floats(1e-6, 1)),
            st.builds(CacheSize, nbytes=st.floats(1, 1e12)),
        ),
        cache_policy=st.sampled_from(["inclusion", "degree", "random"]),
        sampler=st.sampled_from(["vr", "uniform"]),
        norms=st.one_of(st.none(), st.just("norms.npz")),
    ),
)
clusters = st.builds(
    ClusterSpec,
    gpus=st.sampled_from([2, 4, 8]),
    gpus_per_server=st.sampled_from([1, 2, 3]),
    device=st.sampled_from(devices()),
    bandwidth=st.floats(1e6, 1e11),
    latency=st.one_of(st.none(), st.floats(0, 1)),
    pcie=st.one_of(st.none(), st.just("pcie4-x16")),
    shared_cores=st.booleans(),
    calibration=st.one_of(st.none(), st.just("calibration.json")),
)


@settings(deadline=None, max_examples=40)
@given(
    cluster=clusters,
    method=methods,
    imbalance=st.one_of(st.none(), st.floats(1, 5)),
    norm=st.sampled_from(["none", "layer"]),
)
def test_a_scenario_survives_being_written(
    cluster: ClusterSpec, method: Method, imbalance: float | None, norm: str
) -> None:
    workload = WorkloadSpec(cross_fraction=0.3, imbalance=imbalance, hidden=64, norm=norm)
    scenario = Scenario("any", cluster, workload, PartitionSpec(objective="cut"), method, RunSpec(seed=3))
    again = from_mapping(to_mapping(scenario), "again")
    assert again == scenario
    assert scenario_hash(again) == scenario_hash(scenario)


def test_what_metis_is_told_is_written_only_where_somebody_chose_it() -> None:
    plain = read("")
    assert scenario_hash(read("partition: {algorithm: kway, imbalance: null, balance: nodes}")) == scenario_hash(plain)
    assert not {"algorithm", "imbalance", "balance"} & set(to_mapping(plain)["partition"])
    chosen = read("partition: {objective: cut, algorithm: recursive, imbalance: 5%, balance: edges}")
    assert to_mapping(chosen)["partition"] == {
        "method": "metis",
        "objective": "cut",
        "seed": 0,
        "algorithm": "recursive",
        "imbalance": "5%",
        "balance": "edges",
        "file": None,
    }
    assert from_mapping(to_mapping(chosen), "again") == chosen
    assert scenario_hash(chosen) != scenario_hash(plain)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("algorithm: recursive", "partition.algorithm: recursive needs partition.objective: cut; it is vol"),
        ("algorithm: kwai", "partition.algorithm: unknown algorithm 'kwai'; did you mean 'kway'"),
        (
            "method: random, balance: edges",
            "partition.balance: only valid with METIS, not with partition.method random",
        ),
        ("file: a.part, imbalance: 5%", "partition.imbalance: only valid with METIS, not with partition.file a.part"),
        ("imbalance: 0%", "partition.imbalance: 0% is not allowed; a percentage of at least 0.1% and at most 100%"),
        ("imbalance: 5", "partition.imbalance: 5 has no unit"),
    ],
)
def test_what_metis_cannot_be_told_is_refused(fields: str, message: str) -> None:
    with pytest.raises((ScenarioError, UnitError)) as caught:
        read(f"partition: {{{fields}}}")
    assert message in str(caught.value)


def test_the_schema_describes_every_field_and_its_own_defaults() -> None:
    rows = describe_schema()
    paths = [row[0] for row in rows]
    assert len(paths) == len(set(paths)) > 25
    assert ("cluster.bandwidth", "Gbps") in {(row[0], row[1]) for row in rows}
    assert all(allowed and default and doc for _, _, allowed, default, doc in rows)
    own = {f"method.{knob}" for knob in all_knobs() if knob not in KNOBS or knob == "rate"}
    overrides = [f"{path}={default}" for path, _, _, default, _ in rows if path not in own]
    assert read("", *overrides).cluster.bandwidth == ClusterSpec().bandwidth


def test_a_device_alone_means_the_server_that_it_is_sold_in() -> None:
    """HGX H100: eight GPUs, a card of 400 Gbit/s each; the clusters of T4 and RTX 2080 Ti are the published ones."""
    board = read("cluster: {device: h100, gpus: 8}").cluster
    assert (board.host, board.gpus_per_server, board.servers) == ("hgx-h100-8", 8, 1)
    assert (board.bandwidth, board.link) == (4e11, "infiniband-ndr")
    for name in ("t4", "rtx-2080-ti"):
        published = read(f"cluster: {{device: {name}}}").cluster
        assert (published.host, published.gpus_per_server, published.bandwidth) == ("generic-16", 2, 1.875e9)
    mapping = to_mapping(read("cluster: {device: h100, gpus: 8}"))
    assert from_mapping(mapping, "again").cluster == board


def test_what_is_given_goes_before_the_server_of_a_device() -> None:
    given = read("cluster: {device: h100, gpus: 8, gpus_per_server: 2}").cluster
    assert (given.servers, given.bandwidth) == (4, 1e11), "two GPUs have the two cards next to them"
    ethernet = read("cluster: {device: h100, gpus: 16, bandwidth: 25Gbps}").cluster
    assert (ethernet.bandwidth, ethernet.link) == (3.125e9, "ethernet")
    plain = read("cluster: {device: h100, gpus: 8, host: generic-16}").cluster
    assert (plain.gpus_per_server, plain.bandwidth) == (2, 1.875e9)


def test_one_gpu_of_an_instance_has_the_adapters_next_to_it() -> None:
    one = read("cluster: {host: p4d.24xlarge, gpus: 4, gpus_per_server: 1}").cluster
    assert one.bandwidth == 12.5e9, "one of four adapters of 100 Gbit/s serves two of eight GPUs"
    assert read("cluster: {host: p4d.24xlarge, gpus: 8}").cluster.bandwidth == 50e9
