"""A reproduction as text and CSV: every cell, the errors, the null models, and what was fitted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gcnsim.report.evidence import left_out_lines, render_reproduction, write_reproduction


def cell(row: str, predicted: float | None, **more: Any) -> dict[str, Any]:
    content = {"paper": "A", "table": "T1", "row": row, "metric": "time", "published": 2.0, "reason": ""}
    numbers = {"predicted": predicted, "low": None, "high": None, "error": None}
    return content | numbers | more


def errors(cells: int, **nulls: Any) -> dict[str, Any]:
    numbers = {"median": 0.125, "largest": -0.5, "within": 0.75, "covered": None}
    return {"cells": cells, "predicted": cells - 1, "judged": cells - 2, "nulls": nulls} | numbers


PAYLOAD: dict[str, Any] = {
    "cells": [
        cell("one", 1.23456, low=1.0, high=2.5, error=-0.38272),
        cell("two", 20000.0),
        cell("three", None, reason="no law"),
        cell("four", None, reason="no law"),
        cell("five", None, paper="B", table="T2", reason="no figure"),
    ],
    "papers": {"A": errors(4, size={"cells": 2, "null": 0.5, "ours": 0.125}), "B": errors(3, size=None)},
    "all": errors(7, size={"cells": 2, "null": 0.5, "ours": 0.125}) | {"held": {"judged": 1, "median": 0.25}},
    "platforms": {
        "box": {
            "spmm_efficiency": 0.4,
            "stream_efficiency": None,
            "staging_bandwidth": 1.25e9,
            "rate_beside_copies": None,
        }
    },
}

WHOLE = """\
A
table  row  metric  predicted  low  high  published    error
T1     one  time        1.235    1   2.5          2  -38.3 %
T1     two  time        2e+04                     2

paper            cells  predicted  judged  median error  largest  within 25 %  in interval
A                    4          3       2        12.5 %  -50.0 %       75.0 %            -
B                    3          2       1        12.5 %  -50.0 %       75.0 %            -
all                  7          6       5        12.5 %  -50.0 %       75.0 %            -
all, not fitted                         1        25.0 %  -50.0 %       75.0 %            -

paper  null model  cells  its median error    ours
A      size            2            50.0 %  12.5 %
all    size            2            50.0 %  12.5 %

platform  SpMM efficiency  column by column  host side of a worker  rate beside transfers
box                40.0 %                 -              1.25 GB/s                      -
"""


def test_the_whole_text() -> None:
    assert render_reproduction(PAYLOAD) == WHOLE


def test_what_is_left_out_is_counted_by_its_reason() -> None:
    assert left_out_lines(PAYLOAD) == ["A T1: 2 cells: no law", "B T2: 1 cells: no figure"]


def test_every_cell_is_a_line_of_csv(tmp_path: Path) -> None:
    write_reproduction(tmp_path / "cells.csv", PAYLOAD)
    assert (tmp_path / "cells.csv").read_text(encoding="utf-8").splitlines() == [
        "paper,table,row,metric,predicted,low,high,published",
        "A,T1,one,time,1.23456,1.0,2.5,2.0",
        "A,T1,two,time,20000.0,,,2.0",
        "A,T1,three,time,,,,2.0",
        "A,T1,four,time,,,,2.0",
        "B,T2,five,time,,,,2.0",
    ]
