"""Where parts lie, on unequal GPUs and servers."""

from __future__ import annotations

from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gcnsim
from gcnsim.api import simulate
from gcnsim.core.errors import ScenarioError
from gcnsim.methods import HOST, ON_GPU, UVA, Placement
from gcnsim.planning.study import Studies
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.batches import batch_memory_of, placement_of, sampler_of
from gcnsim.simulation.model import resolve_model
from gcnsim.simulation.open_assumptions import of_parts, other_orders
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.part_orders import PLACEMENT, placement_of_parts
from gcnsim.simulation.placement import PARTITION
from gcnsim.simulation.propagation import factors
from gcnsim.simulation.source import RangeEnd, Source, SourceView
from gcnsim.trace.counts import AccessCounts


def scenario(devices: str | None = "t4,v100-16", method: str = "full-graph", **more: Any) -> Scenario:
    cluster = {"gpus": 4, "gpus_per_server": 2, "bandwidth": "200Gbps", "devices": devices}
    # Reddit's own four parts, as counted, are too even for orders to matter by a fifth.
    workload = {"dataset": "reddit-train"}
    requested = {"schema": SCHEMA, "cluster": cluster, "method": {"name": method}, "run": {"iterations": 4}}
    return from_mapping(requested | {"workload": workload} | more, "test")


class Ordered(SourceView):
    """The accesses with their parts in an order written down."""

    placeable = False

    def __init__(self, source: Source, order: tuple[int, ...]) -> None:
        super().__init__(source)
        self.order = np.array(order)

    def counts(self, scenario: Scenario, features: int, bound: RangeEnd) -> AccessCounts:
        return self.source.counts(scenario, features, bound).placed(self.order)


def test_on_unequal_gpus_the_interval_holds_nearly_every_order_and_the_answer_is_in_its_middle() -> None:
    base = scenario()
    accesses = open_source(base)
    every = [simulate_scenario(base, Ordered(accesses, order)).metrics.iteration_s for order in permutations(range(4))]
    assert max(every) > 1.2 * min(every)
    found = Studies(base).estimate(base)
    assert found.low_s is not None
    assert found.high_s is not None
    assert np.mean([found.low_s <= seconds <= found.high_s for seconds in every]) >= 0.9
    assert min(every) <= found.iteration_s <= max(every)


def test_the_answer_does_not_depend_on_which_server_is_named_first() -> None:
    either = [Studies(requested).estimate(requested) for requested in map(scenario, ("t4,v100-16", "v100-16,t4"))]
    assert either[0].low_s is not None
    assert either[0].high_s is not None
    assert either[0].low_s <= either[1].iteration_s <= either[0].high_s


def wide(gpus: int = 16, placement: str | None = None, method: str = "full-graph", **cluster: Any) -> Scenario:
    machine = {"gpus": gpus, "gpus_per_server": 2, "device": "t4", "bandwidth": "15Gbps", "transport": "direct"}
    more = {} if placement is None else {"partition": {"placement": placement}}
    requested = {"schema": SCHEMA, "cluster": machine | cluster, "method": {"name": method}, "run": {"iterations": 2}}
    return from_mapping(requested | {"workload": {"dataset": "reddit"}} | more, "test")


def test_parity_of_the_gpus_decides_nothing() -> None:
    seconds = np.array([simulate_scenario(wide(gpus)).metrics.iteration_s for gpus in (14, 15, 16, 17)])
    assert (np.abs(np.diff(seconds)) / seconds[1:] < 0.05).all()
    numbered = [simulate_scenario(wide(gpus, "as-numbered")).metrics.iteration_s for gpus in (14, 15, 16, 17)]
    assert max(numbered) > 1.25 * min(numbered), "otherwise the data show nothing"


@pytest.mark.parametrize("method", ["full-graph", "psc-gcn"])
def test_the_answer_is_near_the_median_of_random_orders_which_its_interval_holds(method: str) -> None:
    base = wide(method=method)
    accesses = open_source(base)
    generator = np.random.default_rng(7)
    orders = [tuple(generator.permutation(16).tolist()) for _ in range(20)]
    random = [simulate_scenario(base, Ordered(accesses, order)).metrics.iteration_s for order in orders]
    now = simulate_scenario(base, accesses).metrics.iteration_s
    assert now == pytest.approx(np.median(random), rel=0.06)
    low, high = factors(base, accesses, 0).alone[PLACEMENT]
    assert np.mean([low * 0.99 <= seconds / now <= high * 1.01 for seconds in random]) >= 0.85
    assert (
        simulate_scenario(wide(placement="balanced", method=method), accesses).metrics.iteration_s < min(random) * 1.01
    )


def test_where_the_order_is_known_or_does_not_matter_nothing_is_drawn() -> None:
    accesses = open_source(wide())
    for one in (wide(placement="as-numbered"), wide(placement="balanced"), wide(gpus_per_server=1), wide(2)):
        assert other_orders(one, accesses) is None
        assert PLACEMENT not in factors(one, accesses, 0).alone
    assert PLACEMENT in factors(wide(), accesses, 0).alone
    assert PLACEMENT in factors(scenario(method="cagnet-1d"), open_source(scenario()), 0).alone, "first-order draws"


def test_parts_that_somebody_numbered_stay_as_numbered() -> None:
    assert placement_of_parts(wide()) == "random"
    numbered = scenario(workload={"graph": "a.npz"}, partition={"file": "a.parts"})
    traced = scenario(workload={"trace": str(Path("a.trace"))})
    table = scenario(partition={"statistics": "published"})
    assert {placement_of_parts(one) for one in (numbered, traced, table)} == {"as-numbered"}
    with pytest.raises(ScenarioError, match=r"partition\.placement: unknown placement 'best'"):
        wide(placement="best")


def test_cuts_into_different_numbers_of_parts_are_drawn_on_their_own() -> None:
    names = {name: of_parts(name, wide(gpus)) for gpus in (8, 16) for name in (PARTITION, PLACEMENT)}
    assert names == {PARTITION: "partition 16 x 2", PLACEMENT: "placement 16 x 2"}
    assert of_parts(PARTITION, wide(8)) != of_parts(PARTITION, wide(16))
    assert of_parts("workload", wide(8)) == of_parts("workload", wide(16))


def test_an_answer_says_so() -> None:
    requested = {"schema": SCHEMA, "method": {"name": "full-graph"}, "run": {"iterations": 2}}
    cluster = {"gpus": 4, "devices": "t4,v100-16"}
    payload = gcnsim.simulate(requested | {"cluster": cluster}).payload
    (row,) = (assumption for assumption in payload["provenance"]["assumptions"] if assumption["name"] == "placement")
    assert row["in_interval"]
    assert row["value"] == "the median of 64 random orders"
    plain = gcnsim.simulate(requested | {"cluster": {"gpus": 4, "gpus_per_server": 1}}).payload
    assert "placement" not in {assumption["name"] for assumption in plain["provenance"]["assumptions"]}


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


def mapping(name: str = "dgl", dataset: str = "reddit", knobs: dict[str, Any] | None = None, **cluster: Any) -> Any:
    return {
        "schema": SCHEMA,
        "cluster": {"gpus": 1, "gpus_per_server": 1, "device": "a100-80"} | cluster,
        "workload": {"dataset": dataset, "model": "graphsage"},
        "method": {"name": name} | (knobs or {}),
        "run": {"iterations": 2},
    }


def make_scenario(name: str = "dgl", dataset: str = "reddit", **cluster: Any) -> Scenario:
    return from_mapping(mapping(name, dataset, **cluster), "test")


def placed(scenario: Scenario) -> Placement:
    accesses = open_source(scenario)
    model = resolve_model(scenario.workload, accesses.declared)
    return placement_of(scenario, accesses.counts(scenario, model.features, RangeEnd.LIKELY), model.shapes)


@pytest.mark.parametrize(
    ("name", "implementation", "expected"),
    [
        ("dgl", "lean", Placement(True, 4, None)),
        ("pagraph", "lean", Placement(False, 16, HOST)),
        ("distdgl", "lean", Placement(False, 0, HOST)),
        ("graphsage", "lean", Placement(False, 0, HOST)),
        ("graphsaint", "lean", Placement(False, 4, HOST)),
        ("graphsaint", "released", Placement(False, 20, ON_GPU)),
        ("clustergcn", "lean", Placement(False, 12, HOST)),
        ("clustergcn", "released", Placement(False, 0, HOST)),
    ],
)
def test_what_people_run_and_what_the_scripts_choose(name: str, implementation: str, expected: Placement) -> None:
    assert sampler_of(make_scenario(name, implementation=implementation)) == expected


def test_what_is_asked_is_what_is_placed() -> None:
    scenario = make_scenario("dgl", sampler_device="cpu", sampler_threads=9, features="host")
    assert sampler_of(scenario) == placed(scenario) == Placement(False, 9, HOST)
    assert sampler_of(make_scenario("distdgl", sampler_device="gpu")).on_gpu
    assert sampler_of(make_scenario("distdgl", sampler_threads=3)) == Placement(False, 3, HOST)


def test_rows_lie_on_the_gpu_where_they_fit_beside_the_graph_and_a_batch() -> None:
    assert placed(make_scenario("dgl")).features == ON_GPU
    assert placed(make_scenario("dgl", "friendster")).features == UVA
    # Reddit's 0.56 GB of rows and 0.92 GB of neighbours: a question's own memory decides.
    for memory, lies in (("8GB", ON_GPU), ("2GB", UVA)):
        assert placed(make_scenario("dgl", figures=f"a100-80.memory={memory}")).features == lies


def test_what_lies_on_the_gpu_is_in_its_memory() -> None:
    scenario = make_scenario("dgl")
    accesses = open_source(scenario)
    model = resolve_model(scenario.workload, accesses.declared)
    counts = accesses.counts(scenario, model.features, RangeEnd.LIKELY)
    held = {}
    for features in (UVA, ON_GPU):
        (one,) = batch_memory_of(scenario, counts, model.shapes, Placement(True, 1, features)) or ()
        held[features] = one
    nodes, entries = 232_965, 114_615_892
    assert held[ON_GPU].features - held[UVA].features == 4 * nodes * 602
    assert held[ON_GPU].adjacency - held[UVA].adjacency == 8 * (nodes + entries)
    assert simulate_scenario(scenario).memory == (held[ON_GPU],)
    (drawn_by_host,) = batch_memory_of(scenario, counts, model.shapes, Placement(False, 1, ON_GPU)) or ()
    assert drawn_by_host.adjacency == held[UVA].adjacency


@pytest.mark.parametrize(
    ("name", "cluster", "message"),
    [
        ("dgl", {"sampler_threads": 8}, "cluster.sampler_threads: 8 needs cluster.sampler_device: cpu; dgl draws on"),
        ("dgl", {"features": "disk"}, "cluster.features: unknown place 'disk'"),
        ("pipegcn", {"features": "uva"}, "cluster.features: not modelled with pipegcn; methods with it: "),
    ],
)
def test_what_is_not_modelled_is_refused(name: str, cluster: dict[str, Any], message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        simulate_scenario(make_scenario(name, **cluster))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "knobs", "cluster", "message"),
    [
        (
            "full-graph",
            {},
            {"sampler_threads": 4},
            "sampler_threads: 4 would change nothing; full-graph as asked draws",
        ),
        ("psc-gcn", {"epsilon": 1}, {"sampler_device": "cpu"}, "would change nothing; psc-gcn as asked draws nothing"),
        (
            "bns-gcn",
            {"rate": 0.1, "sample": "edges"},
            {"sampler_threads": 2},
            "would change nothing; bns-gcn as asked draws on the GPU",
        ),
    ],
)
def test_a_sampler_where_nothing_is_drawn_is_refused(
    name: str, knobs: dict[str, Any], cluster: dict[str, Any], message: str
) -> None:
    with pytest.raises(ScenarioError) as caught:
        simulate(mapping(name, knobs=knobs, gpus=2, **cluster))
    assert message in str(caught.value)


def test_its_figures_are_assumptions_of_mini_batches_on_gpus_alone() -> None:
    own = {f"generic-16.{name}" for name in ("neighbour_draws_per_s", "uva_efficiency", "operation_s", "rebuild_bytes")}
    own |= {"generic-16.memory_bandwidth"}
    for name in ("dgl", "full-graph"):
        payload = simulate(mapping(name, host="generic-16")).payload
        content = {assumption["name"] for assumption in payload["provenance"]["assumptions"]}
        assert content & own == (own if name == "dgl" else set())


@pytest.mark.parametrize(
    ("name", "dataset", "cluster", "message"),
    [
        (
            "dgl",
            "friendster",
            {},
            "dgl: drawn by the GPU from a graph in host memory, rows read from host memory by the GPU, which does not "
            "hold them",
        ),
        (
            "pagraph",
            "reddit",
            {},
            "pagraph: drawn ahead by 16 threads of the host for each GPU, rows picked out of host memory by its cores",
        ),
        ("full-graph", "reddit", {}, None),
    ],
)
def test_the_answer_says_who_draws_and_where_rows_lie(
    name: str, dataset: str, cluster: dict[str, Any], message: str | None
) -> None:
    assert simulate(mapping(name, dataset, **cluster)).payload["provenance"].get("mini_batches") == message
