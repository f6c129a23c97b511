from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gcnsim.cli.graph import group
from gcnsim.core.errors import FileError, GcnsimError, GraphError, ScenarioError, UnitError
from gcnsim.graph import load_graph

BLOCK = ("block", "--nodes", "500", "--edges", "4000")


def _run(*words: str) -> str:
    result = CliRunner().invoke(group, ["generate", *words], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_block_model_is_drawn_written_and_read_back(tmp_path: Path) -> None:
    out = tmp_path / "g.npz"
    lines = _run(*BLOCK, "--set", "communities=8", "--set", "reach=1", "--out", str(out)).splitlines()
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
    found = json.loads(_run(*words, "--json", "--out", str(folder / "g.npz")))
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        (["blok", "--nodes", "5"], GraphError, "unknown model 'blok'; did you mean 'block'"),
        (["block", "--nodes", "5"], ScenarioError, "--edges: block needs it"),
        (["flickr", "--nodes", "5"], ScenarioError, "--nodes: flickr does not take it; allowed: none"),
        ([*BLOCK, "--set", "reech=1"], ScenarioError, "--set: 'reech=1' is not NAME=VALUE; did you mean 'reach'"),
        ([*BLOCK, "--set", "communities"], ScenarioError, "--set communities: no value; allowed: communities=VALUE"),
        ([*BLOCK, "--set", "fanout=2.5"], ScenarioError, "--set fanout: '2.5' is not a whole number"),
        (["block", "--nodes", "5", "--edges", "11"], GraphError, "11 edges; 5 nodes allow 1 to 10"),
        ([*BLOCK, "--max-memory", "1"], UnitError, "--max-memory: "),
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
        _run(*BLOCK, "--out", str(tmp_path / "plain.txt"))
    assert list(tmp_path.iterdir()) == []
