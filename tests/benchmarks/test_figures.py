"""The table of benchmarks/README.md is that of benchmarks/figures.json, and new figures replace earlier ones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.figures import KEPT, PAGE, merged, replaced, table


def measured(value: float, *, benchmark: str = "what_if", limit: str = "<= 1.0", cpu: str = "x") -> dict[str, Any]:
    figure = {"name": "wall", "value": value, "unit": "s", "limit": limit}
    machine = {"cpu": cpu, "load_1min": 0.5}
    return {"benchmark": benchmark, "date": "2026-11-27", "machine": machine, "figures": [figure]}


def test_the_page_has_the_table_of_the_file() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert replaced(page, table(json.loads(KEPT.read_text(encoding="utf-8")))) == page
    with pytest.raises(ValueError, match="begin of the generated"):
        replaced("no marks", "")


def test_a_figure_replaces_the_one_before_on_the_same_processor() -> None:
    rows = merged([], [measured(2.0), measured(3.0, cpu="y")])
    assert merged(rows, [measured(2.0)]) == rows
    mine, other = merged(rows, [measured(1.0)])
    assert (mine["value"], mine["before"]) == (1.0, 2.0)
    assert (other["value"], other["before"]) == (3.0, None)
    assert "| 1 s | <= 1.0 | 0.50 |" in table([mine])
    assert "| 3 s | <= 1.0: missed |  |" in table([other])


def test_only_figures_with_a_limit_of_benchmarks_that_exist_are_kept() -> None:
    gone = [measured(1.0, benchmark="gone"), measured(1.0, benchmark="before"), measured(1.0, limit="")]
    assert merged([], gone) == []
