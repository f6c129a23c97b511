from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from gcnsim.cli import main
from gcnsim.graph import Graph, load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.owners import write_partition
from gcnsim.trace import read_trace
from gcnsim.workload.norms import write_norms
from tests.gcnsim.cli.conftest import Refused


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
    assert all("give one of --parts and --partition" in line for line in neither_nor_both)
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
