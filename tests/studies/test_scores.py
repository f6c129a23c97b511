"""Scores of measured rows: what can be expressed is judged, everything else is counted."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from studies import score_operators, score_systems
from studies.scores import ScoredRow, judged, medians

SUM = {"paper": "a", "op": "spmm", "gpu": "rtx-3090", "rows": 1e6, "entries": 1e7, "degree_cv": 1.0, "width": 64}
PRODUCT = {"paper": "a", "op": "gemm (torch linear)", "gpu": "V100-PCIe-32", "shape": [512, 768, 768], "ms": 0.1}
EPOCH = {
    "paper": "a", "dataset": "cora", "model": "gcn", "layers": 2, "hidden": 16, "method": "full-graph one GPU (dgl)",
    "gpu": "v100-16", "gpus": 1, "servers": 1, "metric": "epoch_s", "value": 0.002,
}  # fmt: skip


def last_line(module: Any, rows: list[dict[str, Any]], folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    path = folder / "rows.yaml"
    path.write_text(yaml.safe_dump({"papers": {}, "rows": json.loads(json.dumps(rows))}), encoding="utf-8")
    assert module.main([str(path)]) == 0
    return json.loads(capsys.readouterr().out.splitlines()[-1])


def test_a_median_is_of_the_rows_that_can_be_expressed() -> None:
    rows = [judged(("a",), "k", value, (1.0, 0.5, 2.0)) for value in (0.5, 1.0, 4.0)]
    assert [row.error for row in rows] == [1.0, 0.0, -0.75]
    assert [row.inside for row in rows] == [True, True, False]
    found = medians([*rows, ScoredRow(("a",), "k", reason="unknown")])
    assert found["k"] == 0.75
    assert found["all"] == {"n": 3, "median": 0.75, "bias": 0.08333, "inside": 0.6667, "not_expressible": 1}


@pytest.mark.parametrize("value", [None, True, "fast", 0.0, float("nan"), [1.0]])
def test_what_is_no_positive_number_is_counted(value: object) -> None:
    assert judged(("a",), "k", value, (1.0, 1.0, 1.0)).error is None


def test_operators_that_no_law_or_device_knows_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    odd: list[dict[str, Any]] = [
        SUM | {"gpu": "abacus", "ms": 1.0}, SUM | {"gpu": None, "ms": 1.0}, SUM | {"library": "my kernel", "ms": 1.0},
        {"paper": "a", "op": "spmm", "gpu": "t4", "graph": "nobody's", "width": 4, "ms": 1.0}, SUM,
        SUM | {"width": "wide", "ms": 1.0}, PRODUCT | {"shape": "flat"}, PRODUCT | {"precision": "int3"},
        {"op": "sort"}, {"ms": 1},
    ]  # fmt: skip
    found = last_line(score_operators, [*odd, SUM | {"ms": 4.0}, PRODUCT], tmp_path, capsys)
    assert found["all"]["n"] == 2
    assert found["all"]["not_expressible"] == len(odd)
    assert {"spmm", "gemm", "sort"} <= found.keys()


def test_systems_that_no_schedule_or_dataset_knows_are_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd: list[dict[str, Any]] = [
        EPOCH | {"gpu": "abacus"}, EPOCH | {"dataset": "nobody's"}, EPOCH | {"method": "magic"},
        EPOCH | {"metric": "colour"}, EPOCH | {"layers": "many"}, EPOCH | {"gpus": 3, "servers": 2}, {"paper": "a"},
        EPOCH | {"method": "sampled (dgl 0.8)", "batch": 10, "fanout": "5,5", "features": "on the moon"},
    ]  # fmt: skip
    found = last_line(score_systems, [*odd, EPOCH], tmp_path, capsys)
    assert found["all"]["n"] == 1
    assert found["all"]["not_expressible"] == len(odd)
    assert found["epoch_s"] < 1.0


def test_a_file_that_holds_no_rows_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "rows.yaml"
    path.write_text("[1]", encoding="utf-8")
    assert score_operators.main([str(path)]) == score_systems.main([str(path)]) == 2
    assert "is not a file of measured rows" in capsys.readouterr().err
