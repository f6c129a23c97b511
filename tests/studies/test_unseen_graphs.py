"""The loop that leaves one graph out: who sees what, what is made again, what becomes of the figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.io.yaml_files import read_yaml
from studies import unseen_graphs
from studies.unseen_graphs import (
    SCENARIO_FILE,
    checks,
    data,
    finished,
    folds,
    make,
    planned,
    scenario_text,
    table,
    together,
)
from studies.validate import RULE, Planned
from studies.validation_tables import UNSEEN, write_kept, write_table


def rule() -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(RULE)
    return found


def test_no_graph_is_predicted_by_a_calibration_that_saw_it() -> None:
    runs, graphs = planned(rule()), list(rule()["unseen"]["iterations"])
    assert len(graphs) == 5
    every = folds(runs, graphs)
    for graph, (seen, held_out) in every.items():
        assert {run.graph for run in seen} == set(graphs) - {graph}
        assert {run.graph for run in held_out} == {graph}
        assert len(seen) == 12
        assert len(held_out) == 18
    predicted = {run.name for _, held_out in every.values() for run in held_out}
    assert predicted.isdisjoint(run.name for seen, _ in every.values() for run in seen)
    assert len({run.name for run in runs}) == len(runs) == 15 + 90


def test_a_draw_decides_the_bandwidths() -> None:
    other = rule()
    other["unseen"]["draw"] += 1
    first, again, changed = (
        [run.bandwidth for run in planned(entry) if not run.calibration] for entry in (rule(), rule(), other)
    )
    assert first == again
    assert sorted(first) != sorted(changed)


def test_graphs_without_labels_get_random_features(tmp_path: Path) -> None:
    np.savez(tmp_path / "amazon_cs.npz", allow_pickle=False, labels=np.zeros(3))
    np.savez(tmp_path / "cnr-2000.npz", allow_pickle=False, indptr=np.zeros(3))
    found = data(rule(), tmp_path)
    assert list(found) == ["amazon_cs", "cnr-2000"]
    assert found["amazon_cs"][:2] == ["--dataset", "amazon_cs"]
    assert found["cnr-2000"] == [
        *("--graph", str(tmp_path / "cnr-2000.npz")),
        *("--random-features", "128", "--random-classes", "10"),
    ]


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Names of runs as they are made, each of them nothing but a run.json."""
    names: list[str] = []

    def train(runs: tuple[Planned, ...], _rule: object, _graphs: object, within: Path) -> None:
        for run in runs:
            folder = within / "runs" / run.name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "run.json").write_text("{}", encoding="utf-8")
            names.append(run.name)

    monkeypatch.setattr(unseen_graphs, "FOLDER", tmp_path)
    monkeypatch.setattr(unseen_graphs, "train", train)
    return names


def test_what_is_made_is_not_made_again_unless_something_else_is_asked(trained: list[str], tmp_path: Path) -> None:
    graphs = {name: ["--dataset", name] for name in rule()["unseen"]["iterations"]}
    runs = planned(rule())[:7]
    assert make(runs, rule(), graphs, float("inf"))
    assert trained == [run.name for run in runs]
    assert make(runs, rule(), graphs, float("inf"))
    assert len(trained) == 7
    changed = [replace(runs[0], bandwidth="7Mbps"), *runs[1:]]
    assert make(changed, rule(), graphs, float("inf"))
    assert trained[7:] == [runs[0].name]
    (tmp_path / "runs" / runs[1].name / SCENARIO_FILE).unlink()
    assert not finished(runs[1], scenario_text(runs[1], []))


def test_no_run_begins_once_time_is_over(trained: list[str]) -> None:
    graphs = {name: ["--dataset", name] for name in rule()["unseen"]["iterations"]}
    assert not make(planned(rule()), rule(), graphs, -1.0)
    assert not trained


def answer(*errors: float) -> dict[str, Any]:
    rows = [{"error": error, "covered": abs(error) < 0.1} for error in errors]
    return {"runs": len(rows), "mape": 0.5, "p90_ape": 0.6, "bias": 0.1, "rows": rows}


def test_every_run_counts_alike_and_every_bound_can_be_missed() -> None:
    found = together({"a": answer(0.01, -0.01, 0.03), "b": answer(0.15)})
    assert found["runs"] == 4
    assert found["mape"] == pytest.approx(0.05)
    assert found["bias"] == pytest.approx(0.045)
    assert found["coverage"] == 0.75
    assert found["max_ape"] == 0.15
    bounds = rule()["unseen"]["bounds"]
    assert bounds == {"mape": 0.05, "p90": 0.12, "bias": 0.02}
    good = {"mape": 0.04, "p90_ape": 0.1, "bias": -0.01}
    assert all(kept for *_, kept in checks(good, bounds))
    for change in ({"mape": 0.06}, {"p90_ape": 0.13}, {"bias": 0.03}, {"bias": -0.03}):
        assert [kept for *_, kept in checks(good | change, bounds)].count(False) == 1, change
    text = table(found, checks(found, bounds))
    assert "| bias | within 2 % | +4.5 %, **missed** |" in text
    assert "| b | 1 | 50.0 % | 60.0 % | +10.0 % |" in text


def test_both_loops_keep_their_figures_side_by_side(tmp_path: Path) -> None:
    path = tmp_path / "validation.json"
    write_kept("", {"runs": 1, "old": 2}, path)
    write_kept(UNSEEN, {"runs": 3}, path)
    write_kept("", {"runs": 4}, path)
    assert read_yaml(path) == {"runs": 4, UNSEEN: {"runs": 3}}


def test_a_table_is_put_between_its_marks(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text("a\n<!-- x table: begin -->\nold\n<!-- x table: end -->\nb\n", encoding="utf-8")
    write_table("x", "new\n", path)
    assert path.read_text(encoding="utf-8") == "a\n<!-- x table: begin -->\nnew\n<!-- x table: end -->\nb\n"
    with pytest.raises(ValueError, match="has no table y"):
        write_table("y", "new\n", path)


def test_the_page_has_both_tables() -> None:
    from studies.validation_tables import PAGE

    page = PAGE.read_text(encoding="utf-8")
    for name in ("committed set", "unseen graphs"):
        assert page.count(f"<!-- {name} table: begin -->\n") == page.count(f"<!-- {name} table: end -->\n") == 1
