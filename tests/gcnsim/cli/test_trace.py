"""The commands of access traces, profiles and cache curves."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from gcnsim.cli import main
from gcnsim.graph import Graph, load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.describe import partition_scatter
from gcnsim.graph.generate import outline
from gcnsim.graph.owners import write_partition
from gcnsim.trace import cache_curve, read_trace
from gcnsim.trace.packaged_profiles import bundled_parts
from gcnsim.trace.sizes_only import mean_ratio
from gcnsim.trace.stored_profile import read_profile
from gcnsim.workload import dataset
from gcnsim.workload.samplers import write_norms
from tests.gcnsim.cli.conftest import RING, Refused


@pytest.fixture
def graph(ring: Path) -> Graph:
    return load_graph(ring)


def call(*words: str | Path) -> int:
    return main(["trace", *(str(word) for word in words)])


def test_record_then_info(ring: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.trace"
    assert call("record", ring, "--parts", "3", "--epsilon", "0.2", "--iterations", "4", "--out", out) == 0
    made = capsys.readouterr()
    assert made.err == ""
    assert f"\nwritten    {out}\n" in made.out
    assert call("info", out) == 0
    shown = capsys.readouterr().out
    assert shown == made.out.replace(f"written    {out}\n", "")
    assert "vr, epsilon 0.2, seed 0" in shown
    assert "4 on 3 workers" in shown


def test_info_json_holds_the_same_facts(ring: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "a.trace"
    call("record", ring, "--parts", "2", "--sampler", "uniform", "--iterations", "3", "--out", out)
    capsys.readouterr()
    assert call("info", out, "--json") == 0
    facts, stored = json.loads(capsys.readouterr().out), read_trace(out)
    assert facts["schema"] == "gcnsim.trace-info/1"
    assert (facts["iterations"], facts["parts"]) == (3, 2)
    assert facts["origin"]["sampler"] == "uniform"
    assert facts["origin"]["graph_hash"] == stored.origin.graph_hash
    assert facts["expected_rows"] == pytest.approx(stored.expected_rows)
    assert [worker["boundary_nodes"] for worker in facts["workers"]] == stored.boundary_nodes.tolist()


def test_a_partition_file_and_norms_are_used(
    graph: Graph, ring: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    owners, norms, out = tmp_path / "p", tmp_path / "n", tmp_path / "t"
    write_partition(owners, partition_graph(graph, 3, "block"))
    write_norms(norms, np.linspace(0, 1, 60, dtype=np.float32), graph.content_hash())
    words = ("--partition", owners, "--norms", norms, "--iterations", "2", "--out", out)
    assert call("record", ring, *words) == 0
    origin = read_trace(out).origin
    assert origin.partition_method == "block"
    assert origin.norms_hash is not None
    assert f"SHA-256 {origin.norms_hash[:12]}" in capsys.readouterr().out


def test_owners_of_others_are_recorded_and_profiled(
    graph: Graph, ring: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / "owner.npy", np.arange(60) // 20)
    (tmp_path / "graph.part.3").write_text("".join(f"{node // 20}\n" for node in range(60)))
    for name in ("owner.npy", "graph.part.3"):
        words = ("--partition", tmp_path / name, "--iterations", "2", "--out", tmp_path / f"{name}.trace")
        assert call("record", ring, *words) == 0
        assert "partition  file, seed 0" in capsys.readouterr().out
        assert call("profile", ring, "--partition", tmp_path / name, "--out", tmp_path / f"{name}.profile") == 0
        assert "partition    file, seed 0" in capsys.readouterr().out
    for kind in ("trace", "profile"):
        assert (tmp_path / f"owner.npy.{kind}").read_bytes() == (tmp_path / f"graph.part.3.{kind}").read_bytes()


def test_the_same_call_writes_the_same_bytes_in_any_number_of_processes(ring: Path, tmp_path: Path) -> None:
    for name, processes in (("a", "1"), ("b", "1"), ("c", "2")):
        words = ("--parts", "2", "--iterations", "2", "--processes", processes, "--out", tmp_path / name)
        assert call("record", ring, *words) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()


def test_users_errors_are_one_line(ring: Path, tmp_path: Path, refused: Refused) -> None:
    out, record = ("--out", tmp_path / "t"), ("trace", "record", ring)
    neither_nor_both = [refused(*record, *out), refused(*record, "--parts", "2", "--partition", "p", *out)]
    assert all("give either --parts or --partition" in line for line in neither_nor_both)
    assert "sampler: unknown 'unifrm'; did you mean 'uniform'?" in refused(
        *record, "--parts", "2", "--sampler", "unifrm", *out
    )
    assert "epsilon: 0 is outside (0, 1]" in refused(*record, "--parts", "2", "--epsilon", "0", *out)
    assert "60 nodes" in refused(*record, "--parts", "61", *out)
    assert "none.npz" in refused("trace", "record", "none.npz", "--parts", "2", *out)
    assert "allowed: 1.00 MiB" in refused(*record, "--parts", "2", "--max-memory", "1MiB", *out)
    assert "no/t: cannot be written" in refused(*record, "--parts", "2", "--out", tmp_path / "no" / "t")
    assert "is not a gcnsim file" in refused("trace", "info", ring)
    assert not (tmp_path / "t").exists()


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six graphs of the ring, in three parts."""
    folder = tmp_path_factory.mktemp("trace")
    graph, out = folder / "ring.txt", folder / "ring.trace"
    graph.write_text(RING)
    words = ("trace", "record", str(graph), "--parts", "3", "--epsilon", "0.2", "--iterations", "6", "--out", str(out))
    assert main(words) == 0
    return out


CURVE = ("trace", "cache-curve")


def curve_of(*words: str | Path) -> int:
    return main([*CURVE, *(str(word) for word in words)])


def test_the_table_has_a_line_for_each_rule_size_and_worker(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert curve_of(trace, "--size", "10%,50%") == 0
    short = capsys.readouterr().out.splitlines()
    assert short[0].startswith("ring, vr sampling at 0.2: 6 graphs, after 0 of warm-up")
    rules = ["random", "degree", "degree-ratio", "inclusion", "inclusion-refresh"]
    assert [line.split()[0] for line in short[2:-1]] == [rule for rule in rules for _ in range(2)]
    assert short[-1] == "note: inclusion-refresh never refreshes: every 20 graphs, and the trace has 6"
    assert curve_of(trace, "--size", "10%,50%", "--workers", "--refresh", "2") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 10 * 4


def test_json_is_the_curve_and_the_same_each_time(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libcachesim", reason="the extra gcnsim[caches] is not installed")
    assert curve_of(trace, "--policy", "all", "--json") == 0
    first = capsys.readouterr().out
    assert curve_of(trace, "--policy", "all", "--json") == 0
    assert capsys.readouterr().out == first
    found = json.loads(first)
    assert found["schema"] == "gcnsim.cache-curve/1"
    assert (found["graphs"], found["refresh"], found["warm_up"], found["order"], found["seed"]) == (
        6,
        20,
        0,
        "random",
        0,
    )
    curve = cache_curve(read_trace(trace), ["all"])
    assert len(found["points"]) == len(curve.points) == 12 * 5
    for text, point in zip(found["points"], curve.points, strict=True):
        assert (text["policy"], text["size"], text["hits"]) == (point.policy, point.size, point.total.hits)
        assert text["hit_rate"] == point.total.hit_rate
        assert [worker["hits"] for worker in text["workers"]] == [worker.hits for worker in point.workers]


def test_csv_and_page(trace: Path, tmp_path: Path) -> None:
    table, page = tmp_path / "a.csv", tmp_path / "a.html"
    assert curve_of(trace, "--policy", "degree,inclusion", "--size", "30%", "--csv", table, "--html", page) == 0
    rows = list(csv.DictReader(table.read_text().splitlines()))
    assert [(row["policy"], row["worker"]) for row in rows] == [
        (policy, worker) for policy in ("degree", "inclusion") for worker in ("all", "0", "1", "2")
    ]
    assert int(rows[0]["hits"]) == sum(int(row["hits"]) for row in rows[1:4])
    assert float(rows[0]["hit_rate"]) == int(rows[0]["hits"]) / int(rows[0]["requests"])
    text = page.read_text()
    assert "<h1>Hit rate by cache size</h1>" in text
    assert "ring, vr at 0.2, 6 graphs" in text
    assert 'data-head="30 % cached"' in text
    assert "<script src" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "lru2"), "cache policy: unknown 'lru2'; known: all, arc"),
        (("--size", "30"), "--size: "),
        (("--refresh", "0"), "--refresh"),
        (("--warm-up", "6"), "warm-up: 6 graphs"),
        (("--csv", "a.out", "--html", "a.out"), "a.out: given to both"),
    ],
)
def test_bad_input_is_one_line(trace: Path, words: tuple[str, ...], message: str, refused: Refused) -> None:
    assert message in refused(*CURVE, trace, *words)


def test_without_the_extra(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setitem(sys.modules, "libcachesim", None)
    assert curve_of(trace) == 0
    capsys.readouterr()
    assert "pip install 'gcnsim[caches]'" in refused(*CURVE, trace, "--policy", "all")


def test_a_profile_is_written_and_shown(ring: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ring.profile"
    assert call("profile", ring, "--gpus", "3", "--out", out) == 0
    made = capsys.readouterr().out
    assert f"\nwritten      {out}\n" in made
    assert call("info", out) == 0
    assert capsys.readouterr().out.startswith(made.split("\nwritten")[0])
    assert call("info", out, "--json") == 0
    facts, stored = json.loads(capsys.readouterr().out), read_profile(out)
    assert facts["schema"] == "gcnsim.profile-info/1"
    assert facts["source"] == "graph"
    assert facts["residuals"] == {}
    assert facts["inner_nodes_mean"] == 20.0
    assert facts["boundary_nodes_mean"] == stored.boundary_nodes.mean()
    assert facts["boundary_nodes_max"] == stored.boundary_nodes.max()
    assert facts["cross_edges_mean"] == pytest.approx(stored.boundary_entries.sum() / stored.boundary_nodes.sum())


def test_a_shipped_profile_says_how_other_partitions_differ(
    ring: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call("info", "--dataset", "reddit", "--gpus", "6") == 0
    assert "\nother seeds  -10 % to +11 % boundary nodes of the largest worker" in capsys.readouterr().out
    assert call("info", "--dataset", "reddit", "--gpus", "6", "--json") == 0
    low, high = json.loads(capsys.readouterr().out)["other_partitions"]["boundary_largest"]
    assert (low, high) == pytest.approx(partition_scatter("reddit", 6).factors("boundary_largest"))
    out = tmp_path / "ring.profile"
    assert call("profile", ring, "--gpus", "3", "--out", out) == 0
    capsys.readouterr()
    assert call("info", out, "--json") == 0
    assert json.loads(capsys.readouterr().out)["other_partitions"] is None


def test_the_same_call_writes_the_same_bytes(ring: Path, tmp_path: Path) -> None:
    for name, processes in (("a", "1"), ("b", "2")):
        out = tmp_path / name
        assert call("profile", ring, "--gpus", "2", "--processes", processes, "--out", out) == 0
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_users_errors_of_profiles_are_one_line(ring: Path, tmp_path: Path, refused: Refused) -> None:
    out = ("--out", tmp_path / "p")
    assert "give either GRAPH or --dataset" in refused("trace", "profile", "--gpus", "2", *out)
    assert "give either --gpus or --partition" in refused("trace", "profile", ring, *out)
    assert "--scale: 0.5 is only valid with --dataset" in refused(
        "trace", "profile", ring, "--gpus", "2", "--scale", "0.5", *out
    )
    assert "no surrogate of 'redit'; did you mean 'reddit'" in refused(
        "trace", "profile", "--dataset", "redit", "--gpus", "2", *out
    )
    assert "allowed: " in refused(
        "trace", "profile", "--dataset", "reddit", "--gpus", "2", "--max-memory", "1GiB", *out
    )
    assert "--scale: nan is not allowed; 0.001 to 1" in refused(
        "trace", "profile", "--dataset", "flickr", "--gpus", "3", "--scale", "nan", *out
    )
    assert "ring.txt: partitioning needs about " in refused(
        "trace", "profile", ring, "--gpus", "2", "--max-memory", "1MiB", *out
    )
    assert "yelp-surrogate: partitioning needs about " in refused(
        "trace", "profile", "--dataset", "yelp", "--gpus", "2", "--max-memory", "1.5GiB", *out
    )
    assert "give either FILE or --dataset" in refused("trace", "info")
    assert "--dataset and --gpus go together" in refused("trace", "info", "--dataset", "yelp")
    assert "unknown dataset 'yep'; did you mean 'yelp'" in refused("trace", "info", "--dataset", "yep", "--gpus", "2")
    assert not (tmp_path / "p").exists()


def test_a_shipped_profile_says_where_it_comes_from(capsys: pytest.CaptureFixture[str]) -> None:
    name = "yelp"
    for parts in (2, 7, 10):
        assert call("info", "--dataset", name, "--gpus", str(parts), "--json") == 0
        facts = json.loads(capsys.readouterr().out)
        assert facts["parts"] == parts
        between = parts in (7, 9)
        assert facts["source"] == facts["origin"]["source"] == ("interpolated" if between else "surrogate")
        assert (facts["interpolated"] is not None) == between
        if between:
            assert (facts["interpolated"]["low"], facts["interpolated"]["high"]) == (parts - 1, parts + 1)
            assert facts["interpolated"]["missed"].keys() == {"boundary", "largest", "cross_entries", "rows"}
            assert facts["origin"]["graph_hash"] == ""
        printed = {str(row.partitions) for row in dataset(name).boundary if row.partitions in bundled_parts(name)}
        assert facts["residuals"].keys() == printed
        assert all(abs(missed) <= 0.002 for missed in facts["residuals"].values())
        assert facts["inner_nodes_mean"] * parts == pytest.approx(dataset(name).nodes, rel=1e-3)
        assert facts["boundary_nodes_max"] > facts["boundary_nodes_mean"] > 70_000
        crossing = facts["cross_edges_mean"] * facts["boundary_nodes_mean"]
        assert facts["cross_entries_mean"] == pytest.approx(crossing)
        assert facts["note"].startswith("interpolated" if between else "profile at")


def test_an_outline_is_told_as_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("info", "--dataset", "ogbn-papers100M", "--gpus", "192", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["parts"], facts["source"], facts["residuals"]) == (192, "outline", {})
    ratio = facts["boundary_nodes_mean"] / facts["inner_nodes_mean"]
    assert ratio == pytest.approx(mean_ratio(outline("ogbn-papers100M"), 192), rel=1e-3)
    assert call("info", "--dataset", "ogbn-papers100M", "--gpus", "32") == 0
    content = capsys.readouterr().out
    assert "graph        outline of ogbn-papers100M, not drawn" in content
    assert "boundary against published counts: none published" in content


def test_what_if_takes_a_profile_for_its_graph(ring: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "ring.profile"
    assert call("profile", ring, "--gpus", "3", "--out", out) == 0
    capsys.readouterr()
    question = ["what-if", "--graph", str(out), "--method", "psc-gcn", "--iterations", "5"]
    assert main([*question, "--gpus", "3", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)["provenance"]["graph"]
    assert content["kind"] == "profile"
    assert content["text"].startswith(f"{out}: profile of ring: 60 nodes, 360 stored entries; metis-vol, seed 0:")
    assert main([*question, "--gpus", "2,3"]) == 2
    assert capsys.readouterr().err == (
        f"gcnsim: cluster.gpus: 2 is not allowed; {out} is a profile of 3 parts and answers for as many GPUs\n"
    )
    assert main(["what-if", "--set", f"workload.trace={out}", "--gpus", "3"]) == 2
    assert f"workload.trace: {out} is a profile; give it as workload.profile" in capsys.readouterr().err
    assert main(["graph", "info", str(out)]) == 2
    assert "ring.profile: is a profile file, not a graph; known: " in capsys.readouterr().err
