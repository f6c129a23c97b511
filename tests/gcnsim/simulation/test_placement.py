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


@pytest.mark.parametrize("method", ["full-graph"])
def test_the_interval_holds_every_order_of_the_parts(method: str) -> None:
    base = scenario(method=method)
    accesses = open_source(base)
    every = [simulate_scenario(base, Ordered(accesses, order)).metrics.iteration_s for order in permutations(range(4))]
    found = Studies(base).estimate(base)
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
    found = Studies(base).estimate(base)
    assert found.low_s is not None
    assert found.high_s is not None
    for order in ((2, 1, 0, 3), (3, 0, 1, 2)):
        extreme = simulate_scenario(base, Ordered(open_source(base), order)).metrics.iteration_s
        assert found.low_s * 0.94 <= extreme <= found.high_s * 1.06, order


def test_the_interval_does_not_depend_on_which_server_is_named_first() -> None:
    either = [Studies(requested).estimate(requested) for requested in map(scenario, ("t4,v100-16", "v100-16,t4"))]
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
        content = {assumption["name"] for assumption in simulate(mapping(name)).payload["provenance"]["assumptions"]}
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
