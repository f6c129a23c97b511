"""Facts of a workload: shapes, data sets, norms, knobs."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.core.container import write_sections
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.graph import Graph, build_csr
from gcnsim.methods import all_knobs
from gcnsim.workload import MODELS, LayerShape, dataset, datasets, knobs, layer_shapes
from gcnsim.workload.samplers import read_norms, write_norms


def test_gcn_of_reddit() -> None:
    shapes = layer_shapes("gcn", 602, 256, 4, 41)
    assert [(shape.d_in, shape.d_out) for shape in shapes] == [(602, 256), (256, 256), (256, 256), (256, 41)]
    assert shapes[0].weights == 602 * 256 + 256


def test_graphsage_multiplies_the_row_and_its_mean() -> None:
    assert layer_shapes("graphsage", 10, 4, 1, 3) == (LayerShape(10, 3, 2 * 10 * 3 + 3),)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 9), st.integers(1, 99), st.integers(1, 99), st.integers(1, 99))
def test_layers_chain(layers: int, features: int, hidden: int, classes: int) -> None:
    shapes = layer_shapes("gcn", features, hidden, layers, classes)
    assert len(shapes) == layers
    assert (shapes[0].d_in, shapes[-1].d_out) == (features, classes)
    assert all(a.d_out == b.d_in for a, b in itertools.pairwise(shapes))


def test_bad_models_are_refused() -> None:
    with pytest.raises(ScenarioError, match=r"workload.model: unknown model 'gnc'; did you mean 'gcn'"):
        layer_shapes("gnc", 1, 1, 1, 1)
    with pytest.raises(ScenarioError, match=r"workload.layers: 0 is not allowed"):
        layer_shapes("gcn", 1, 1, 0, 1)
    with pytest.raises(ScenarioError, match=r"workload.classes: 0 is not allowed"):
        layer_shapes("gcn", 1, 1, 1, 0)


def test_reddit_as_published() -> None:
    reddit = dataset("reddit")
    assert (reddit.features, reddit.classes, reddit.model, reddit.layers, reddit.hidden) == (602, 41, "gcn", 4, 256)
    assert reddit.entries == 114_615_892
    counted = {row.partitions: row.boundary for row in reddit.boundary}
    assert sorted(counted) == [2, 3, 4, 8, 16, 32, 64]
    assert (counted[4], counted[32]) == (100_880.0, 72_569.0)
    assert [(row.partitions, row.boundary) for row in reddit.elsewhere] == [(6, 89_400.0)]


@pytest.mark.parametrize("name", [name for name in datasets() if dataset(name).boundary])
def test_counts_of_a_dataset_have_one_source(name: str) -> None:
    facts = dataset(name)
    (source,) = {row.source for row in facts.boundary}
    assert dict(facts.citations)["boundary"] == source
    assert source not in {row.source for row in facts.elsewhere}


@pytest.mark.parametrize("name", datasets())
def test_every_fact_is_cited_and_adds_up(name: str) -> None:
    facts = dataset(name)
    cited = dict(facts.citations)
    counted = {"boundary"} if facts.boundary else set()
    assert set(cited) == {"nodes", "entries", "features", "classes", "model", "layers", "hidden"} | counted
    assert all("," in text for text in cited.values())
    assert facts.model in MODELS
    assert 0.0 < facts.train <= 1.0
    assert (facts.degree_spread is None) == (not facts.degree_source)
    for row in facts.boundary:
        assert row.partitions * row.inner == pytest.approx(facts.nodes, rel=2e-3)
        assert 0 < row.boundary <= facts.nodes - row.inner


def test_edges_count_in_both_directions() -> None:
    assert dataset("ogbn-products").entries == 2 * 61_859_140
    assert dataset("yelp").entries == 2 * 7_000_000
    assert dataset("ogbn-papers100M").entries == 2 * 1_615_685_872
    assert dataset("orkut").entries == 2 * 117_185_083
    assert dataset("ogbn-arxiv").directed < dataset("ogbn-arxiv").entries <= 2 * dataset("ogbn-arxiv").directed


def ring(nodes: int) -> Graph:
    return build_csr(np.arange(nodes), (np.arange(nodes) + 1) % nodes, nodes, "ring")


def test_norms_come_back_as_they_were(tmp_path: Path) -> None:
    graph, norms = ring(5), np.array([0.0, 1.5, 2.0, 3.25, 1e-20], np.float32)
    write_norms(tmp_path / "n", norms, graph.content_hash())
    assert np.array_equal(read_norms(tmp_path / "n", graph), norms)


def test_another_graph_is_refused(tmp_path: Path) -> None:
    graph, other = ring(5), build_csr(np.array([0, 1, 2]), np.array([1, 2, 4]), 5, "path")
    write_norms(tmp_path / "n", np.ones(5, np.float32), graph.content_hash())
    with pytest.raises(FileError, match="norms of another graph than path"):
        read_norms(tmp_path / "n", other)
    with pytest.raises(FileError, match="norms of 5 nodes, graph ring has 6"):
        read_norms(tmp_path / "n", ring(6))


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_values_that_are_no_norms_are_refused(tmp_path: Path, bad: float) -> None:
    graph, norms = ring(4), np.array([1.0, 1.0, bad, 1.0], np.float32)
    with pytest.raises(ValueError, match="norm of node 2 is"):
        write_norms(tmp_path / "n", norms, graph.content_hash())
    meta = {"graph_hash": graph.content_hash()}
    write_sections(tmp_path / "n", kind="norms", version=1, meta=meta, arrays={"norms": norms})
    with pytest.raises(FileError, match="norm of node 2 is"):
        read_norms(tmp_path / "n", graph)


def test_foreign_truncated_and_altered_files_are_refused(tmp_path: Path) -> None:
    graph, path = ring(64), tmp_path / "n"
    write_sections(path, kind="norms", version=1, meta={}, arrays={"norms": np.ones(64)})
    with pytest.raises(FileError, match="no float32 section 'norms'"):
        read_norms(path, graph)
    write_norms(path, np.ones(64, np.float32), graph.content_hash())
    whole = path.read_bytes()
    path.write_bytes(whole[:-100])
    with pytest.raises(FileError, match="truncated"):
        read_norms(path, graph)
    path.write_bytes(whole[:-1] + b"\x01")
    with pytest.raises(FileError, match="altered"):
        read_norms(path, graph)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("tau", -1, "at.tau: -1 is not allowed; a whole number of at least 0 and at most 1000"),
        ("tau", 1.5, "at.tau: 1.5 is not a whole number of at least 0"),
        ("tau", True, "True is not a whole number"),
        ("tau", 10**400, "a number of more than 300 digits is not allowed"),
        ("epsilon", 0.0, "above 0 and at most 1"),
        ("epsilon", "0.1", "'0.1' is not a number above 0"),
        ("cache", 0.3, "0.3 is not a cache size"),
        ("cache_policy", "degre", "did you mean 'degree'?"),
        ("refresh", math.inf, "inf is not a whole number"),
    ],
)
def test_bad_values_are_refused_with_path_and_range(name: str, value: object, message: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        knobs.KNOBS[name].rule.check(value, f"at.{name}")
    assert str(caught.value).startswith(f"at.{name}: ")
    assert message in str(caught.value)


def test_edges_of_the_ranges_are_allowed() -> None:
    for name, value in (("tau", 0), ("epsilon", 1), ("epsilon", 1e-9), ("norms", "f"), ("rate", 0.0), ("rate", 1)):
        knobs.KNOBS[name].rule.check(value, name)


def test_every_kind_of_knob_has_its_rule_in_a_scenario() -> None:
    amounts = [knob for knob in all_knobs().values() if knob.kind == "list"]
    assert amounts
    for amount in amounts:
        assert amount.rule.read("25,10", "p") == (25, 10)
        shares = "or shares (10%)" in amount.rule.allowed
        assert shares == (amount.unit == "%")
    for knob in all_knobs().values():
        assert knob.rule.allowed
        if knob.kind in ("int", "real") and knob.low is not None:
            with pytest.raises(ScenarioError):
                knob.rule.check(knob.low - 1, "p")
