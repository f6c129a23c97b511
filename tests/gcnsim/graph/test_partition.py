"""Partitions: METIS' options, checks, their facts and how much they depend on the seed."""

from __future__ import annotations

import signal
from collections.abc import Callable
from math import exp, log

import numpy as np
import pymetis
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.errors import GraphError
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import METHODS, metis_owners, partition_graph
from gcnsim.graph.describe import FIGURES, FILE, Spread, partition_facts, partition_scatter, partition_warnings
from gcnsim.graph.parts import Partitioning, split


def _star(nodes: int) -> Graph:
    return build_csr(np.zeros(nodes - 1, dtype=np.int64), np.arange(1, nodes), nodes, "star")


def _path(nodes: int) -> Graph:
    return build_csr(np.arange(nodes - 1), np.arange(1, nodes), nodes, "path")


@settings(deadline=None, max_examples=60)
@given(st.integers(2, 24), st.data(), st.sampled_from(METHODS), st.sampled_from(["vol", "cut"]), st.booleans())
def test_every_part_owns_a_node_however_tiny_the_graph(
    nodes: int, data: st.DataObject, method: str, objective: str, star: bool
) -> None:
    parts = data.draw(st.integers(1, nodes))
    graph = _star(nodes) if star else _path(nodes)
    partitioning = partition_graph(graph, parts, method, objective)
    assert np.bincount(partitioning.owner, minlength=parts).min() >= 1
    assert (partitioning.nodes, partitioning.parts, partitioning.owner.dtype.name) == (nodes, parts, "int32")
    assert partitioning.graph_hash == graph.content_hash()


@pytest.mark.parametrize("method", ["random", "block"])
def test_random_and_block_sizes_differ_by_at_most_one(skewed: Graph, method: str) -> None:
    for parts in (1, 3, 7, 399, 400):
        sizes = np.bincount(partition_graph(skewed, parts, method).owner, minlength=parts)
        assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize(
    ("parts", "method", "objective", "message"),
    [
        (0, "metis", "vol", "skewed: 0 parts; at least 1 is needed"),
        (-2, "block", "vol", "skewed: -2 parts"),
        (401, "metis", "vol", "skewed: 400 nodes cannot make 401 parts; each needs a node"),
        (2, "metsi", "vol", "partition method 'metsi' is unknown: did you mean 'metis'? known: block, metis, random"),
        (2, "metis", "volume", "partition objective 'volume' is unknown: did you mean 'vol'? known: cut, vol"),
    ],
)
def test_impossible_requests_are_refused(skewed: Graph, parts: int, method: str, objective: str, message: str) -> None:
    with pytest.raises(GraphError) as caught:
        partition_graph(skewed, parts, method, objective)
    assert message in str(caught.value)


def test_what_metis_is_told_besides_is_in_the_label_and_changes_the_parts(skewed: Graph) -> None:
    labels = {
        "metis-cut-recursive": {"objective": "cut", "algorithm": "recursive"},
        "metis-vol-10%": {"imbalance": 0.1},
        "metis-vol-by-edges": {"balance": "edges"},
        "metis-cut-recursive-5%-by-edges": {
            "objective": "cut", "algorithm": "recursive", "imbalance": 0.05, "balance": "edges",
        },
    }  # fmt: skip
    owners = {label: partition_graph(skewed, 4, **options) for label, options in labels.items()}  # type: ignore[arg-type]
    assert [partitioning.method for partitioning in owners.values()] == list(labels)
    plain = [partition_graph(skewed, 4, objective=goal).owner for goal in ("vol", "cut")]
    assert (
        len({partitioning.owner.tobytes() for partitioning in owners.values()} | {owner.tobytes() for owner in plain})
        == 6
    )


def test_parts_are_as_even_as_was_asked_in_what_was_asked(skewed: Graph) -> None:
    def uneven(**options: object) -> tuple[float, float]:
        parts = split(skewed, partition_graph(skewed, 4, **options))  # type: ignore[arg-type]
        facts = partition_facts(parts)
        return facts.balance, facts.entry_balance

    assert uneven(balance="edges", imbalance=0.05)[1] < 1.06
    assert uneven(balance="edges")[1] < uneven()[1]
    assert uneven(imbalance=0.01)[0] <= 1.02
    assert uneven(objective="cut", algorithm="recursive")[0] <= 1.011


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"algorithm": "kwai"}, "partition algorithm 'kwai' is unknown: did you mean 'kway'? known: kway, recursive"),
        ({"balance": "edge"}, "partition balance 'edge' is unknown: did you mean 'edges'? known: edges, nodes"),
        ({"algorithm": "recursive"}, "partition objective 'vol' is not allowed with recursive; METIS bisects by: cut"),
    ],
)
def test_what_metis_does_not_do_is_refused(skewed: Graph, options: dict[str, str], message: str) -> None:
    with pytest.raises(GraphError) as caught:
        partition_graph(skewed, 4, **options)  # type: ignore[arg-type]
    assert message in str(caught.value)


@pytest.mark.parametrize("parts", [2, 5, 11])
def test_the_objectives_value_is_the_volume_or_the_cut_of_the_split(skewed: Graph, parts: int) -> None:
    for objective in ("vol", "cut"):
        owner, value = metis_owners(skewed, parts, objective, 0)
        chosen = partition_graph(skewed, parts, "metis", objective)
        assert np.array_equal(owner, chosen.owner)
        facts = partition_facts(split(skewed, chosen))
        assert value == (facts.communication_volume if objective == "vol" else facts.cut_entries // 2)


@pytest.mark.parametrize("parts", [4, 6])
def test_volume_sends_less_than_cut_and_both_less_than_random(real_graph: Callable[[str], Graph], parts: int) -> None:
    graph = real_graph("amazon_cs")
    volumes = [
        partition_facts(split(graph, partition_graph(graph, parts, method, objective))).communication_volume
        for method, objective in (("metis", "vol"), ("metis", "cut"), ("random", "vol"))
    ]
    assert volumes[0] < volumes[1] < 0.6 * volumes[2]


def test_no_signal_stays_blocked_after_an_error_of_metis(skewed: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """METIS jumps out of its handler of SIGTERM, which leaves the signal blocked."""

    def failing(*_: object, **__: object) -> tuple[int, list[int]]:
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        raise RuntimeError("metis error")

    monkeypatch.setattr(pymetis, "part_graph", failing)
    with pytest.raises(GraphError, match="METIS could not cut the graph into 2 parts"):
        metis_owners(skewed, 2, "vol", 0)
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, ())


def ring(nodes: int, edges: int) -> Graph:
    """A path of `edges` edges, and nodes without any."""
    ends = np.arange(edges)
    return build_csr(ends, ends + 1, nodes, "path")


@pytest.mark.parametrize(
    ("edges", "owners", "message"),
    [
        (11, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], ""),
        (11, [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2, 2], ""),
        (3, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "2 of 3 parts have nodes but no edges, one of 3 parts has 100 %"),
        (11, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 2], "one of 3 parts has 77 % of the edges"),
        (7, [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2], "1 of 3 parts has nodes but no edges"),
    ],
)
def test_a_degenerate_partition_is_told(edges: int, owners: list[int], message: str) -> None:
    graph = ring(12, edges)
    cut = Partitioning(np.array(owners, np.int32), 3, "file", 0, graph.name, graph.content_hash())
    found = partition_warnings(split(graph, cut))
    assert bool(found) == bool(message)
    assert not message or message in found[0]


def test_a_star_cut_off_its_centre_by_hand() -> None:
    graph = build_csr(np.zeros(4, dtype=np.int64), np.arange(1, 5), 5, "star")
    owner = np.array([0, 0, 1, 1, 1], dtype=np.int32)
    facts = partition_facts(split(graph, Partitioning(owner, 2, "block", 0, "star", graph.content_hash())))
    assert facts.inner == Spread(2.5, 2, 3)
    assert facts.boundary == Spread(2.0, 1, 3)  # part 0 borders on three leaves, part 1 on the centre
    assert (facts.cut_entries, facts.communication_volume) == (6, 4)
    assert facts.boundary_per_inner == pytest.approx(0.8)
    assert facts.replication == pytest.approx(1.8)
    assert facts.balance == pytest.approx(3 / 2.5)
    assert facts.entry_balance == pytest.approx(5 / 4)  # the centre's part has 4 + 1 of 8 entries


def test_of_each_figure_the_largest_measure_is_taken() -> None:
    for name, entry in read_yaml(FILE)["datasets"].items():
        for row in entry["rows"]:
            scatter = partition_scatter(name, row["parts"])
            for figure in FIGURES:
                counted = entry.get("counted", {}).get(figure, 0.0)
                wanted = max(row[figure], entry["neighbours"][figure], counted)
                assert getattr(scatter, figure) == pytest.approx(wanted), (name, row["parts"], figure)
        assert f"{entry['seeds']} seeds at {100 * entry['scale']:g} % of {name}" in scatter.source


def test_between_measured_numbers_it_lies_between_and_beyond_it_stays() -> None:
    four, eight, six = (partition_scatter("ogbn-products", parts).boundary_largest for parts in (4, 8, 6))
    assert min(four, eight) <= six <= max(four, eight)
    assert partition_scatter("reddit", 100) == partition_scatter("reddit", 16)


def test_a_dataset_that_was_not_measured_has_the_widest() -> None:
    known = [partition_scatter(name, 8) for name in ("reddit", "yelp", "ogbn-products")]
    found = partition_scatter("ogbn-papers100M", 8)
    assert found.boundary_largest == max(scatter.boundary_largest for scatter in known)
    assert found.source.endswith("the widest of them")
    assert partition_scatter("reddit-train", 8) == partition_scatter("reddit", 8)


@pytest.mark.parametrize("dataset", ["reddit", "yelp", "ogbn-products"])
def test_the_interval_of_the_largest_boundary_holds_one_and_is_no_wider_than_a_half(dataset: str) -> None:
    for parts in (2, 4, 6, 8, 16, 32):
        low, high = partition_scatter(dataset, parts).factors("boundary_largest")
        assert 0.5 < low < 1.0 < high < 2.0
        assert log(low) == pytest.approx(-log(high))
        wide = 1.645 * 2**0.5 * partition_scatter(dataset, parts).boundary_largest
        assert high == pytest.approx(exp(wide), rel=1e-3)
