"""The commands of graphs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from gcnsim.cli.graph import group
from gcnsim.core.errors import FileError, GcnsimError, GraphError, ScenarioError
from gcnsim.core.ids import AnyArray
from gcnsim.graph import build_csr, load_graph
from gcnsim.graph.formats.nodes import read_nodes
from gcnsim.graph.owners import read_partition
from tests.gcnsim.graph.formats.layouts.published import (
    write_arrays,
    write_dgl,
    write_ogb_arrays,
    write_ogb_text,
)


@pytest.fixture
def cycle(tmp_path: Path) -> Path:
    path = tmp_path / "cycle.txt"
    path.write_text("0 1\n1 2\n2 3\n3 0\n3 3\n")
    return path


def _run(*words: str) -> str:
    result = CliRunner().invoke(group, list(words), catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_info_prints_aligned_columns(cycle: Path) -> None:
    lines = _run("info", str(cycle)).splitlines()
    assert "nodes           4" in lines
    assert "edges           4" in lines
    assert "degree          mean 2.0, median 2, 2..2" in lines
    assert "features        not in the file" in lines
    assert "cleaning        dropped 1 self-loop, added 4 reverse entries" in lines


def test_info_as_json(cycle: Path) -> None:
    found = json.loads(_run("info", str(cycle), "--json"))
    assert found["schema"] == "gcnsim.graph-info/1"
    assert (found["nodes"], found["edges"], found["entries"]) == (4, 4, 8)
    assert found["degree"] == {"mean": 2.0, "median": 2.0, "min": 2, "max": 2, "isolated": 0}
    assert found["degree_percentiles"] == dict.fromkeys(("p10", "p25", "p50", "p75", "p90", "p99"), 2.0)
    assert found["degree_distribution"][-1] == {"least": 2, "most": 3, "nodes": 4, "entries": 8}
    assert found["components"] == {"count": 1, "largest": 4}
    assert (found["homophily"], found["masks"]) == (None, None)
    assert found["cleaning"]["self_loops_dropped"] == 1
    assert found["content_hash"] == load_graph(cycle).content_hash()


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("x", np.nan), ("x_data", -np.inf)],
)
def test_info_looks_through_features(tmp_path: Path, name: str, wrong: float) -> None:
    ring, path = build_csr(np.arange(3), np.arange(1, 4), 4, "ring"), tmp_path / "g.npz"
    values: AnyArray = np.ones((4, 2) if name == "x" else 4)
    arrays: dict[str, AnyArray] = {"indptr": ring.indptr, "indices": ring.indices, name: values}
    if name == "x_data":
        arrays["x_shape"] = np.array([4, 2])
    np.savez(path, allow_pickle=False, **arrays)
    assert "features        2" in _run("info", str(path))
    values.flat[3] = wrong
    np.savez(path, allow_pickle=False, **arrays)
    with pytest.raises(FileError, match=rf"g\.npz: '{name}' holds values that are not finite in float32"):
        _run("info", str(path))


def test_partition_prints_writes_and_reads_back(cycle: Path, tmp_path: Path) -> None:
    out = tmp_path / "cycle.part"
    text = _run("partition", str(cycle), "--parts", "2", "--method", "block", "--out", str(out))
    assert "boundary/inner  1.00" in text
    assert "edges cut       2" in text
    assert "balance         1.000 of nodes, 1.000 of entries (largest part over mean)" in text
    assert re.search(r"^time            \d+\.\d\d s of one core$", text, re.MULTILINE)
    assert read_partition(out, load_graph(cycle)).owner.tolist() == [0, 0, 1, 1]


def test_partition_as_json(cycle: Path) -> None:
    found = json.loads(_run("partition", str(cycle), "--parts", "2", "--objective", "cut", "--json"))
    assert found["schema"] == "gcnsim.graph-partition/1"
    assert (found["method"], found["parts"], found["cut_entries"]) == ("metis-cut", 2, 4)
    assert found["inner"] == {"mean": 2.0, "least": 2, "most": 2}


def test_several_ways_to_cut_are_a_row_each(cycle: Path) -> None:
    names = ("--parts", "2,4", "--method", "metis,block", "--objective", "vol,cut")
    lines = _run("partition", str(cycle), *names).splitlines()
    assert lines[0].split()[:4] == ["method", "parts", "inner", "boundary"]
    found = [line.split()[:2] for line in lines[1:]]
    assert found == [[method, parts] for parts in "24" for method in ("metis-vol", "metis-cut", "block")]
    rows = json.loads(_run("partition", str(cycle), *names, "--json"))
    assert rows["schema"] == "gcnsim.graph-partitions/1"
    assert [row["cut_entries"] for row in rows["rows"] if row["parts"] == 4] == [8, 8, 8]
    assert all(row["seconds"] >= 0 for row in rows["rows"])


def test_what_metis_is_told_besides_multiplies_its_rows_alone(cycle: Path) -> None:
    names = ("--parts", "2", "--method", "metis,block", "--objective", "vol,cut", "--algorithm", "kway,recursive")
    rows = json.loads(_run("partition", str(cycle), *names, "--balance", "nodes,edges", "--imbalance", "5%", "--json"))
    assert [row["method"] for row in rows["rows"]] == [
        "metis-vol-5%",
        "metis-vol-5%-by-edges",
        "metis-cut-5%",
        "metis-cut-5%-by-edges",
        "metis-cut-recursive-5%",
        "metis-cut-recursive-5%-by-edges",
        "block",
    ]


@pytest.fixture
def split_cycle(tmp_path: Path) -> Path:
    """Four nodes in a circle; 0 and 1 train, 2 validates, 3 tests."""
    circle, nodes = build_csr(np.arange(4), np.array([1, 2, 3, 0]), 4, "circle"), np.arange(4)
    masks = {"train_mask": nodes < 2, "val_mask": nodes == 2, "test_mask": nodes == 3}
    np.savez(tmp_path / "split.npz", allow_pickle=False, indptr=circle.indptr, indices=circle.indices, **masks)
    return tmp_path / "split.npz"


def test_partition_prints_who_trains_validates_and_tests_in_the_parts(split_cycle: Path) -> None:
    lines = _run("partition", str(split_cycle), "--parts", "2", "--method", "block").splitlines()
    assert "training nodes    1 per part (0..2)" in lines
    assert "validation nodes  0.5 per part (0..1)" in lines
    assert "test nodes        0.5 per part (0..1)" in lines
    found = json.loads(_run("partition", str(split_cycle), "--parts", "2", "--method", "block", "--json"))
    assert found["training_nodes"] == {"mean": 1.0, "least": 0, "most": 2}


def test_training_nodes_can_be_balanced_and_compared(split_cycle: Path) -> None:
    names = ("--parts", "2", "--method", "metis,block", "--balance", "training-nodes")
    lines = _run("partition", str(split_cycle), *names).splitlines()
    assert "of entries  of training  edges cut" in lines[0]
    rows = {line.split()[0]: line.split()[7] for line in lines[1:]}
    assert rows == {"metis-vol-by-training-nodes": "1.000", "block": "2.000"}


def test_without_a_split_nothing_is_said_of_training_nodes(cycle: Path) -> None:
    assert "training" not in _run("partition", str(cycle), "--parts", "2")
    with pytest.raises(GcnsimError, match=r"cycle does not say who trains \(train_mask\)"):
        _run("partition", str(cycle), "--parts", "2", "--balance", "training-nodes")


def test_a_partition_that_is_there_is_described_and_written_as_ours(cycle: Path, tmp_path: Path) -> None:
    (tmp_path / "cycle.part.2").write_text("0\n1\n0\n1\n")
    out = tmp_path / "ours.part"
    lines = _run("partition", str(cycle), "--partition", str(tmp_path / "cycle.part.2"), "--out", str(out)).splitlines()
    assert {"method          from a file", "edges cut       4"} <= set(lines)
    assert not [line for line in lines if line.startswith("time")]
    assert read_partition(out, load_graph(cycle)).owner.tolist() == [0, 1, 0, 1]
    assert json.loads(_run("partition", str(cycle), "--partition", str(out), "--json"))["seconds"] is None


@pytest.mark.parametrize(
    ("words", "message"),
    [(["--balance", "edges"], "--balance: edges applies to a new partition, not to owner.txt")],
)
def test_how_to_cut_is_refused_beside_a_partition(cycle: Path, words: list[str], message: str) -> None:
    with pytest.raises(GcnsimError, match=message):
        _run("partition", str(cycle), "--partition", "owner.txt", *words)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--parts", "9" * 5000], "is not a number of parts"),
        (["--parts", "2,x"], "--parts: 'x' is not a number of parts"),
        (["--parts", "2", "--method", "metis,metiss"], "method 'metiss' is unknown: did you mean 'metis'"),
        (["--parts", "2", "--objective", "volume"], "objective 'volume' is unknown"),
        (["--parts", "2", "--imbalance", "3"], "--imbalance: '3' has no unit; write 3% or 0.03"),
        (["--parts", "2", "--imbalance", "0%"], "--imbalance: 0% is not allowed; a percentage of at least 0.1%"),
        (["--parts", "2", "--imbalance", "3%", "--method", "block"], "--imbalance: 3%: only valid with --method metis"),
        (["--parts", "2,4", "--out", "o.part"], "--out: o.part: 2 partitions were asked for; allowed: one"),
        (["--parts", "2", "--max-memory", "1MiB"], "partitioning needs about .* allowed: 1.00 MiB"),
    ],
)
def test_what_cannot_be_cut_is_one_line(cycle: Path, words: list[str], message: str) -> None:
    with pytest.raises(GcnsimError, match=message):
        _run("partition", str(cycle), *words)


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("heavy.graph", "4 3 010\n9 2\n1 1 3\n1 2 4\n1 3\n", "ignored: weights"),
        ("loop.txt", "0 1\n1 0\n1 1\n1 2\n", "dropped 1 self-loop, added 1 reverse entry"),
        ("plain.graph", "3 2\n2\n1 3\n2\n", "already clean"),
    ],
)
@pytest.mark.parametrize("parts", ["2", "1,2"])
def test_a_report_on_a_partition_says_what_reading_dropped(
    tmp_path: Path, name: str, text: str, says: str, parts: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    cleaning = asdict(load_graph(path).cleaning) | {"ignored": [*load_graph(path).cleaning.ignored]}
    assert json.loads(_run("partition", str(path), "--parts", parts, "--json"))["cleaning"] == cleaning
    if parts == "2":
        assert f"cleaning        {says}" in _run("partition", str(path), "--parts", parts).splitlines()


def test_a_report_on_a_partition_has_the_warnings_on_the_graph(tmp_path: Path) -> None:
    (tmp_path / "gaps.txt").write_text("0 1\n1 2\n2 9\n")
    found = json.loads(_run("partition", str(tmp_path / "gaps.txt"), "--parts", "2", "--method", "block", "--json"))
    assert [line for line in found["warnings"] if "isolated" in line and "--ids compact" in line]


def test_info_of_a_labelled_folder(tmp_path: Path) -> None:
    folder = write_arrays(tmp_path / "flickr")
    lines = _run("info", str(folder)).splitlines()
    assert "homophily       0.000 of 10 edges, -1.000 adjusted for class sizes" in lines
    assert "split           train 6, val 2, test 2" in lines
    assert "components      1, the largest with 10 nodes" in lines
    assert lines[-1].split() == ["2..3", "10", "100.0%", "100.0%"]
    found = json.loads(_run("info", str(folder), "--json"))
    assert found["homophily"] == {"edge": 0.0, "adjusted": -1.0, "edges": 10}
    assert found["masks"] == {"train_mask": 6, "val_mask": 2, "test_mask": 2}


def test_info_of_several_labels_a_node_claims_no_homophily(tmp_path: Path) -> None:
    folder = write_arrays(tmp_path / "yelp", y=np.tile([1, 1, 0], (10, 1)))
    assert "homophily       not computed: needs one class per node" in _run("info", str(folder))


def test_info_of_what_dgl_partitioned(tmp_path: Path) -> None:
    folder = write_dgl(tmp_path / "parts")
    lines = _run("info", str(folder)).splitlines()
    assert "inner nodes     6, 4" in lines
    assert "boundary nodes  in part*/graph.dgl, a binary that only DGL reads" in lines
    found = json.loads(_run("info", str(folder), "--json"))
    assert (found["schema"], found["inner_edges"], found["missing"]) == ("gcnsim.graph-dgl/1", [12, 8], [])


@pytest.mark.parametrize("write", [write_ogb_text, write_ogb_arrays, write_arrays])
def test_a_published_folder_converts_to_an_archive_with_everything(
    write: Callable[[Path], Path], tmp_path: Path
) -> None:
    folder, out = write(tmp_path / "data"), tmp_path / "data.npz"
    text = _run("convert", str(folder), str(out))
    assert "features      3 per node" in text
    assert "labels        one per node" in text
    assert "split         train 6, val 2, test 2" in text
    assert load_graph(out).content_hash() == load_graph(folder).content_hash()
    first, again = read_nodes(folder, 10), read_nodes(out, 10)
    assert first.features is not None
    assert again.features is not None
    assert first.features.tolist() == again.features.tolist()
    assert str(first.labels) == str(again.labels)
    assert str(first.masks) == str(again.masks)


def test_an_edge_list_holds_the_edges_alone(tmp_path: Path) -> None:
    folder, out = write_arrays(tmp_path / "data"), tmp_path / "data.txt"
    found = json.loads(_run("convert", str(folder), str(out), "--json"))
    assert found["schema"] == "gcnsim.graph-convert/1"
    assert (found["nodes"], found["edges"], found["features"], found["labels"], found["masks"]) == (10, 10, *[None] * 3)
    assert found["bytes"] == out.stat().st_size
    assert load_graph(out).content_hash() == found["content_hash"]


def test_a_source_without_node_arrays_says_so(cycle: Path, tmp_path: Path) -> None:
    assert "features      not in the source" in _run("convert", str(cycle), str(tmp_path / "again.npz"))


def test_what_cannot_be_converted_is_one_line(cycle: Path, tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"g\.pkl: cannot write '\.pkl'; known: \.csv, \.edges, \.npz, \.tsv, \.txt"):
        _run("convert", str(cycle), "g.pkl")
    with pytest.raises(FileError, match=r"nowhere/g\.npz: cannot be written"):
        _run("convert", str(cycle), str(tmp_path / "nowhere" / "g.npz"))
    with pytest.raises(GraphError, match="loading needs about"):
        _run("convert", str(cycle), str(tmp_path / "g.npz"), "--max-memory", "1MiB")
    with pytest.raises(GraphError, match="loading needs about"):
        _run("info", str(cycle), "--max-memory", "1MiB")
    assert not (tmp_path / "g.npz").exists()


BLOCK = ("block", "--nodes", "500", "--edges", "4000")


def _generated(*words: str) -> str:
    result = CliRunner().invoke(group, ["generate", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_block_model_is_drawn_written_and_read_back(tmp_path: Path) -> None:
    out = tmp_path / "g.npz"
    lines = _generated(*BLOCK, "--set", "communities=8", "--set", "reach=1", "--out", str(out)).splitlines()
    assert "model         block, seed 0" in lines
    assert "edges         4,000" in lines
    graph = load_graph(out)
    assert (graph.nodes, graph.entries) == (500, 8000)
    assert f"content hash  {graph.content_hash()}" in lines


def test_a_seed_and_a_setting_change_the_graph(tmp_path: Path) -> None:
    cases: tuple[list[str], ...] = ([], ["--seed", "0"], ["--seed", "1"], ["--set", "degree_spread=0.2"])
    hashes = [_json(tmp_path, *BLOCK, *case)["content_hash"] for case in cases]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 3


def test_a_surrogate_is_drawn_by_the_name_of_its_dataset(tmp_path: Path) -> None:
    found = _json(tmp_path, "flickr")
    assert (found["schema"], found["model"], found["seed"]) == ("gcnsim.graph-generate/1", "flickr", 1)
    assert (found["nodes"], found["entries"]) == (89_250, 899_756)
    assert load_graph(tmp_path / "g.npz").features == 500


def _json(folder: Path, *words: str) -> dict[str, object]:
    found = json.loads(_generated(*words, "--json", "--overwrite", "--out", str(folder / "g.npz")))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (["blok", "--nodes", "5"], GraphError, "unknown model 'blok'; did you mean 'block'"),
        (["flickr", "--nodes", "5"], ScenarioError, "--nodes: flickr does not take it; allowed: none"),
        ([*BLOCK, "--set", "reech=1"], ScenarioError, "--set: 'reech=1' is not NAME=VALUE; did you mean 'reach'"),
        ([*BLOCK, "--set", "communities"], ScenarioError, "--set communities: no value; allowed: communities=VALUE"),
        (["block", "--nodes", "5", "--edges", "11"], GraphError, "11 edges; 5 nodes allow 1 to 10"),
        (["reddit", "--max-memory", "1GiB"], GraphError, "need about .* allowed: 1.00 GiB"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(
    words: list[str], kind: type[GcnsimError], message: str, tmp_path: Path
) -> None:
    out = tmp_path / "g.npz"
    with pytest.raises(kind, match=message):
        CliRunner().invoke(group, ["generate", *words, "--out", str(out)], catch_exceptions=False)
    assert not out.exists()


def test_another_suffix_than_npz_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"plain\.txt: cannot write '\.txt'; allowed: \.npz"):
        _generated(*BLOCK, "--out", str(tmp_path / "plain.txt"))
    assert list(tmp_path.iterdir()) == []


def test_parts_are_numbered_for_servers_and_the_order_is_in_the_file(tmp_path: Path) -> None:
    # Two pairs of blocks with many edges between them: 0 with 2, and 1 with 3.
    edges = [(a, b) for one, other in ((0, 2), (1, 3)) for a in range(10 * one, 10 * one + 10) for b in _block(other)]
    edges += [(0, 10), (20, 30)]
    graph, out = tmp_path / "pairs.txt", tmp_path / "placed.part"
    graph.write_text("".join(f"{a} {b}\n" for a, b in edges))
    np.save(tmp_path / "owner.npy", np.repeat(np.arange(4), 10))
    words = ["partition", str(graph), "--partition", str(tmp_path / "owner.npy"), "--out", str(out), "--json"]
    found = json.loads(_run(*words, "--placement", "balanced", "--gpus-per-server", "2"))["placement"]
    assert found == {"gpus_per_server": 2, "numbered": 20, "balanced": 2}
    owner = read_partition(out, load_graph(graph)).owner
    assert owner[0] // 2 == owner[20] // 2 != owner[10] // 2 == owner[30] // 2
    result = CliRunner().invoke(group, [*words, "--placement", "balanced"])
    assert result.exit_code == 2
    assert "need each other" in result.output


def _block(number: int) -> range:
    return range(10 * number, 10 * number + 10)
