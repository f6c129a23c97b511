"""Measured times predicted without fitted figures: the bound on their ranges; the file is what is found now."""

from __future__ import annotations

from statistics import mean
from typing import Any

import pytest
import yaml

from studies.given_rows import OUT, given_rows

ROWS: list[dict[str, Any]] = yaml.safe_load(OUT.read_text(encoding="utf-8"))


def test_ranges_hold_between_80_and_97_per_cent_of_the_measured_times() -> None:
    assert 0.80 <= mean(row["inside"] for row in ROWS) <= 0.97


def test_rows_are_calibrated_by_other_tables_of_their_servers_alone() -> None:
    calibrated = {(row["paper"], row["table"]) for row in ROWS if row["calibrated_error"] is not None}
    assert {("pipegcn", "table4"), ("pipegcn", "table5"), ("bns_gcn", "table11")} <= calibrated
    assert not calibrated & {("psc_gcn", "table3"), ("bns_gcn", "table6")}, "the one fitted table of their servers"
    assert all((row["calibrated_error"] is None) == (row["calibrated_inside"] is None) for row in ROWS)


def test_a_row_that_stands_for_more_workers_is_counted_with_all_of_them() -> None:
    (row,) = (row for row in ROWS if (row["paper"], row["table"]) == ("bns_gcn", "table6"))
    assert (row["gpus"], row["servers"]) == (192, 32)


@pytest.mark.slow
def test_the_file_holds_what_is_found_now() -> None:
    found = given_rows()
    assert len(found) == len(ROWS)
    for now, kept in zip(found, map(dict, ROWS), strict=True):
        errors = [pytest.approx(kept.pop(name), abs=1e-3) for name in ("error", "calibrated_error")]
        assert [now.pop(name) for name in ("error", "calibrated_error")] == errors, kept
        assert now == kept
