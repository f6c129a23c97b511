from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from gcnsim.cli.graph import group
from gcnsim.errors import FileError, GraphError
from gcnsim.graph import load_graph
from gcnsim.partition import read_partition


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
    assert "cleaning        dropped 1 self-loops, added 4 reverse entries" in lines


def test_info_as_json(cycle: Path) -> None:
    found = json.loads(_run("info", str(cycle), "--json"))
    assert found["schema"] == "gcnsim.graph-info/1"
    assert (found["nodes"], found["edges"], found["entries"]) == (4, 4, 8)
    assert found["degree"] == {"mean": 2.0, "median": 2.0, "min": 2, "max": 2, "isolated": 0}
    assert found["cleaning"]["self_loops_dropped"] == 1
    assert found["content_hash"] == load_graph(cycle).content_hash()


def test_partition_prints_writes_and_reads_back(cycle: Path, tmp_path: Path) -> None:
    out = tmp_path / "cycle.part"
    text = _run("partition", str(cycle), "--parts", "2", "--method", "block", "--out", str(out))
    assert "boundary/inner  1.00" in text
    assert "edges cut       2" in text
    assert read_partition(out, load_graph(cycle)).owner.tolist() == [0, 0, 1, 1]


def test_partition_as_json(cycle: Path) -> None:
    found = json.loads(_run("partition", str(cycle), "--parts", "2", "--objective", "cut", "--json"))
    assert found["schema"] == "gcnsim.graph-partition/1"
    assert (found["method"], found["parts"], found["cut_entries"]) == ("metis-cut", 2, 4)
    assert found["inner"] == {"mean": 2.0, "least": 2, "most": 2}


def test_user_errors_pass_through_to_the_door(cycle: Path) -> None:
    with pytest.raises(GraphError, match="4 nodes cannot make 5 parts"):
        _run("partition", str(cycle), "--parts", "5")
    with pytest.raises(FileError, match=r"none.npz: cannot be read"):
        _run("info", "none.npz")


@pytest.mark.parametrize("command", ["info", "partition"])
def test_help_holds_an_example(command: str) -> None:
    assert f"gcnsim graph {command} amazon_cs.npz" in _run(command, "--help")
