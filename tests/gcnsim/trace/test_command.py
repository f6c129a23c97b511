"""The `gcnsim trace` commands, as a user calls them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner, Result

from gcnsim.cli.trace import trace
from gcnsim.errors import FileError, ScenarioError
from gcnsim.partition import write_partition
from gcnsim.record import write_norms
from gcnsim.trace import read_trace


def call(*words: str | Path) -> Result:
    return CliRunner().invoke(trace, [str(word) for word in words])


@pytest.fixture
def graph_file(small: Any, tmp_path: Path) -> Path:
    path = tmp_path / "small.npz"
    np.savez(path, indptr=small.graph.indptr, indices=small.graph.indices)
    return path


def test_record_then_info(graph_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.trace"
    made = call("record", graph_file, "--parts", "3", "--epsilon", "0.2", "--iterations", "4", "--out", out)
    assert made.exit_code == 0, made.output
    assert f"written        {out}" in made.output
    shown = call("info", out)
    assert shown.exit_code == 0
    assert shown.output == made.output.rsplit("written", 1)[0]
    assert "vr, epsilon 0.2, seed 0" in shown.output
    assert "4 on 3 workers" in shown.output


def test_info_json_holds_the_same_facts(graph_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "a.trace"
    call("record", graph_file, "--parts", "2", "--sampler", "uniform", "--iterations", "3", "--out", out)
    facts = json.loads(call("info", out, "--json").output)
    stored = read_trace(out)
    assert facts["schema"] == "gcnsim.trace-info/1"
    assert (facts["iterations"], facts["parts"]) == (3, 2)
    assert facts["origin"]["sampler"] == "uniform"
    assert facts["origin"]["graph_hash"] == stored.origin.graph_hash
    assert facts["expected_rows"] == pytest.approx(stored.expected_rows)
    assert [worker["boundary_nodes"] for worker in facts["workers"]] == stored.boundary_nodes.tolist()


def test_a_partition_file_and_norms_are_used(small: Any, graph_file: Path, tmp_path: Path) -> None:
    owners, norms, out = tmp_path / "p", tmp_path / "n", tmp_path / "t"
    write_partition(owners, small.owners)
    write_norms(norms, np.linspace(0, 1, 300, dtype=np.float32), small.graph.content_hash())
    made = call("record", graph_file, "--partition", owners, "--norms", norms, "--iterations", "2", "--out", out)
    assert made.exit_code == 0, made.output
    origin = read_trace(out).origin
    assert origin.partition_method == "block"
    assert origin.norms_hash is not None
    assert f"SHA-256 {origin.norms_hash[:12]}" in made.output


def test_the_same_call_writes_the_same_bytes(graph_file: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        call("record", graph_file, "--parts", "2", "--iterations", "2", "--out", tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_users_errors_come_before_any_work(graph_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "t"
    for words in ((), ("--parts", "2", "--partition", "p")):
        refused = call("record", graph_file, *words, "--out", out)
        assert refused.exit_code == 2
        assert "give one of --parts and --partition" in refused.output
    assert isinstance(call("record", "none.npz", "--parts", "2", "--out", out).exception, FileError)
    wrong = call("record", "none.npz", "--parts", "2", "--sampler", "vrr", "--out", out)
    assert isinstance(wrong.exception, ScenarioError)
    assert isinstance(
        call("record", "none.npz", "--parts", "2", "--epsilon", "0", "--out", out).exception, ScenarioError
    )
    assert isinstance(call("info", graph_file).exception, FileError)
    assert not out.exists()


@pytest.mark.parametrize("command", ["record", "info"])
def test_help_shows_an_example(command: str) -> None:
    assert f"gcnsim trace {command} amazon_cs" in call(command, "--help").output
