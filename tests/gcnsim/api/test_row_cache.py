"""Rows asked for again and again in one process are those that a new one gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gcnsim.api import RowCache, row_cache, what_if

SETTINGS: tuple[dict[str, Any], ...] = (
    {"method": "psc-gcn", "gpus": 2, "tau": 1, "epsilon": 0.3},
    {"method": "full-graph", "gpus": 2},
    {"method": "bns-gcn", "gpus": 4},
)


def test_warm_rows_are_those_of_the_command() -> None:
    warm_rows = RowCache()
    for bandwidth in ("15Gbps", "5Gbps"):
        found = [row for setting in SETTINGS for row in warm_rows.rows(**setting, bandwidth=bandwidth)]
    for setting, row in zip(SETTINGS, found, strict=True):
        content = what_if(**setting, bandwidth="5Gbps").rows[0]
        # The whole answer also judges rows, and simulates draws where settings compete.
        for name in ("iteration_s", "epoch_s", "compute_s", "exposed_comm_s", "speedup_vs_full_graph", "nic_bytes"):
            assert getattr(row, name) == getattr(content, name), (setting, name)


@pytest.mark.parametrize("most", [row_cache.MOST_PAIRS, 1])
def test_what_was_asked_before_changes_nothing(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MOST_PAIRS", most)
    warm_rows = RowCache()
    for bandwidth in ("15Gbps", "5Gbps", "15Gbps"):
        for setting in SETTINGS:
            question = setting | {"bandwidth": bandwidth}
            assert warm_rows.rows(**question) == RowCache().rows(**question)


def test_schedules_are_kept_for_few_pairs_of_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_cache, "MOST_PAIRS", 24)
    warm_rows = RowCache()
    for gpus in (2, 4, 2, 4, 2):
        warm_rows.rows(method="full-graph", gpus=gpus)
    assert [template.cluster.gpus for template in warm_rows._templates] == [4, 2]
    warm_rows.rows(method="full-graph", gpus=6)
    assert [template.cluster.gpus for template in warm_rows._templates] == [6]


def test_a_changed_graph_is_read_again(tmp_path: Path) -> None:
    warm_rows, graph = RowCache(), tmp_path / "ring.csv"
    found = []
    for nodes in (60, 400):
        graph.write_text("".join(f"{node},{(node + 1) % nodes}\n" for node in range(nodes)), encoding="utf-8")
        question = SETTINGS[1] | {"graph": str(graph)}
        found.append(warm_rows.rows(**question))
        assert found[-1] == RowCache().rows(**question)
    assert found[0] != found[1]
