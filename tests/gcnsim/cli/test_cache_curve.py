from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from gcnsim.cli import main
from gcnsim.trace import cache_curve, read_trace
from tests.gcnsim.cli.conftest import RING, Refused


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


def call(*words: str | Path) -> int:
    return main([*CURVE, *(str(word) for word in words)])


def test_the_table_has_a_line_for_each_rule_size_and_worker(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(trace, "--size", "10%,50%") == 0
    short = capsys.readouterr().out.splitlines()
    assert short[0].startswith("ring, vr sampling at 0.2: 6 graphs, after 0 of warm-up")
    rules = ["random", "degree", "degree-ratio", "inclusion", "inclusion-refresh"]
    assert [line.split()[0] for line in short[2:-1]] == [rule for rule in rules for _ in range(2)]
    assert short[-1] == "note: inclusion-refresh never refreshes: every 20 graphs, and the trace has 6"
    assert call(trace, "--size", "10%,50%", "--workers", "--refresh", "2") == 0
    assert len(capsys.readouterr().out.splitlines()) == 2 + 10 * 4


def test_json_is_the_curve_and_the_same_each_time(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("libcachesim", reason="the extra gcnsim[caches] is not installed")
    assert call(trace, "--policy", "all", "--json") == 0
    first = capsys.readouterr().out
    assert call(trace, "--policy", "all", "--json") == 0
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
    assert call(trace, "--policy", "degree,inclusion", "--size", "30%", "--csv", table, "--html", page) == 0
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
        (("--size", "120%"), "size: 120% is outside 0%..100%"),
        (("--size", "30"), "--size: "),
        (("--size", ""), "--size: "),
        (("--refresh", "0"), "--refresh"),
        (("--warm-up", "6"), "warm-up: 6 graphs"),
        (("--order", "up"), "--order"),
        (("--csv", "a.out", "--html", "a.out"), "a.out: given to both"),
    ],
)
def test_bad_input_is_one_line(trace: Path, words: tuple[str, ...], message: str, refused: Refused) -> None:
    assert message in refused(*CURVE, trace, *words)


def test_a_missing_or_foreign_file_is_named(tmp_path: Path, refused: Refused) -> None:
    assert "none.trace" in refused(*CURVE, tmp_path / "none.trace")
    (tmp_path / "text.trace").write_text("not a trace")
    assert "text.trace" in refused(*CURVE, tmp_path / "text.trace")


def test_a_single_worker_needs_no_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str], refused: Refused) -> None:
    graph, out = tmp_path / "pair.txt", tmp_path / "alone.trace"
    graph.write_text("0 1\n1 2\n")
    assert main(["trace", "record", str(graph), "--parts", "1", "--out", str(out)]) == 0
    capsys.readouterr()
    assert f"{out}: none of its graphs needs a row" in refused(*CURVE, out)


def test_without_the_extra(
    trace: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, refused: Refused
) -> None:
    monkeypatch.setitem(sys.modules, "libcachesim", None)
    assert call(trace) == 0
    capsys.readouterr()
    assert "pip install 'gcnsim[caches]'" in refused(*CURVE, trace, "--policy", "all")
