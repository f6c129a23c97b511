from __future__ import annotations

import json
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.graph.generate import outline
from gcnsim.graph.partition_facts import partition_scatter
from gcnsim.trace.packaged_profiles import bundled_parts, bundled_profile
from gcnsim.trace.sizes_only import mean_ratio
from gcnsim.trace.stored_profile import read_profile, write_profile
from gcnsim.workload import dataset
from tests.gcnsim.cli.conftest import Refused


def call(*words: str | Path) -> int:
    return main(["trace", *(str(word) for word in words)])


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


def test_users_errors_are_one_line(ring: Path, tmp_path: Path, refused: Refused) -> None:
    out = ("--out", tmp_path / "p")
    assert "give one of GRAPH and --dataset" in refused("trace", "profile", "--gpus", "2", *out)
    assert "give one of --gpus and --partition" in refused("trace", "profile", ring, *out)
    assert "--scale: 0.5 is for a surrogate" in refused("trace", "profile", ring, "--gpus", "2", "--scale", "0.5", *out)
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
    assert "give one of FILE and --dataset" in refused("trace", "info")
    assert "--dataset and --gpus go together" in refused("trace", "info", "--dataset", "yelp")
    assert "unknown dataset 'yep'; did you mean 'yelp'" in refused("trace", "info", "--dataset", "yep", "--gpus", "2")
    assert not (tmp_path / "p").exists()


def test_a_part_count_without_a_profile_is_refused(refused: Refused) -> None:
    found = refused("trace", "info", "--dataset", "yelp", "--gpus", "777")
    assert found == f"gcnsim: gpus: yelp has no profile at 777 parts; there are 2 to {bundled_parts('yelp')[-1]}\n"


@pytest.mark.parametrize("name", ["ogbn-products", "reddit", "yelp"])
def test_a_shipped_profile_says_where_it_comes_from(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for parts in range(2, 11):
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
    assert "boundary against the published: nothing published" in content


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


def test_what_if_tells_what_a_stored_surrogate_leaves_open(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stored = bundled_profile("yelp", 4)
    write_profile(tmp_path / "yelp.profile", stored)
    question = ["what-if", "--graph", str(tmp_path / "yelp.profile"), "--gpus", "4", "--method", "psc-gcn"]
    assert main([*question, "--iterations", "5", "--json"]) == 0
    value = json.loads(capsys.readouterr().out)["provenance"]
    assert "cross_edges" in {item["name"] for item in value["assumptions"] if item["in_interval"]}
    assert "widths 300-" in value["model"]
