"""Fit what published platforms leave open to the rows that may be fitted: `python -m studies.fit_published`.

The free numbers, and what is made least, are in `studies/published_coefficients.py`. `rate_beside_copies` is a reading,
not fitted: 68 % where PipeGCN's Table 6 shows it (0.17 s of computation alone, 0.25 s beside transfers). Rows of use
`calibrate` alone are looked at. `--leave-one-out` fits again without each table, and predicts it from that fit.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import FloatArray
from gcnsim.evidence.published_facts import MAY_BE_ZERO, SHIPPED, read_published
from gcnsim.evidence.table_cells import TOLERANCE, Cell
from gcnsim.hardware import platforms
from gcnsim.hardware.catalogue import FOLDER
from studies.published_coefficients import COEFFICIENTS, Fit, Trials, all_cells, document, errors, fit

MANY_CELLS: Final = 10
FEW_ERROR: Final = 0.25
LEFT_OUT: Final = Path(__file__).resolve().parents[1] / "docs" / "reproduce.json"
"""What the fits without a table say of it."""

Table = tuple[str, str]


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the fit, and write it into the package where asked to; return the exit code."""
    parser = argparse.ArgumentParser(description="Fit published platforms.")
    parser.add_argument("--published", default=str(SHIPPED), help="folder of published facts")
    parser.add_argument("--leave-one-out", action="store_true", help="predict each table from a fit without it")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/platforms; docs/reproduce.json too")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        trials = Trials(read_published(given.published), Path(folder))
        found = fit(trials)
        sys.stdout.write("\n".join([*_coefficient_lines(found), ""]))
        if given.write:
            for name in platforms():
                write(FOLDER / f"{name}.yaml", name, found, trials.cells(name, found.values))
        if given.leave_one_out:
            left = left_out(trials, found)
            sys.stdout.write("\n".join([*table_lines(left), ""]))
            if given.write:
                with atomic_write(LEFT_OUT, text=True) as file:
                    file.write(json.dumps(left, indent=1) + "\n")
    return 0


def _coefficient_lines(found: Fit) -> list[str]:
    """One line for each coefficient."""
    lines = []
    for one in COEFFICIENTS:
        value = found.values[one.name]
        text = "fitted" if one.name in found.determined else f"assumed {one.assumed:.3g}"
        if one.name in found.at_bound:
            text += f", the fit ends at its bound {found.at_bound[one.name]:.3g}"
        lines.append(f"{one.name}: {value:.4g}, {text}")
    return lines


def left_out(trials: Trials, found: Fit) -> dict[str, Any]:
    """Of every table, the errors of its rows that may be compared: fitted, and from the fit without the table.

    A table that nothing is fitted to is predicted from the same fit.
    """
    whole = all_cells(trials, found.values)
    rows: list[dict[str, Any]] = []
    for table in sorted({(cell.paper, cell.table) for cell in whole}):
        own = _of(whole, table)
        without = fit(trials, table, found.values) if any(cell.fitted for cell in own) else found
        names = {
            name for name in found.determined if not np.isclose(without.values[name], found.values[name], rtol=0.05)
        }
        rows.append(
            {
                "paper": table[0],
                "table": table[1],
                "cells": len(own),
                "fitted": sum(cell.fitted for cell in own),
                "with": _figures(errors(own)),
                "without": _figures(errors(_of(all_cells(trials, without.values), table))),
                "moved": {name: _rounded(without.values[name]) for name in sorted(names)},
            }
        )
    return {
        "coefficients": {name: _rounded(found.values[name]) for name in sorted(found.determined)},
        "tables": rows,
        "median_of_medians": {
            key: _rounded(float(np.median([row[key]["median"] for row in rows]))) for key in ("with", "without")
        },
    }


def table_lines(left: dict[str, Any]) -> list[str]:
    """The errors as a table of the document."""
    lines = [
        "| paper | table | cells (fitted) | fitted with it: median (mean) "
        "| fitted without it: median (mean) | what moves |",
        "|---|---|---|---|---|---|",
    ]
    for row in left["tables"]:
        texts = [f"{100 * row[key]['median']:.1f} % ({100 * row[key]['mean']:+.1f})" for key in ("with", "without")]
        moved = "; ".join(f"{name} {_shown(name, value)}" for name, value in row["moved"].items())
        number = row["table"].removeprefix("table")
        lines.append(
            f"| {row['paper']} | {number} | {row['cells']} ({row['fitted']}) | {texts[0]} | {texts[1]} | "
            f"{moved or '-'} |"
        )
    ends = [f"{100 * left['median_of_medians'][key]:.1f} %" for key in ("with", "without")]
    return [*lines, f"| median of the medians | | | {ends[0]} | {ends[1]} | |"]


def _shown(name: str, value: float) -> str:
    if name.startswith("host call"):
        return f"{1e3 * value:.2g} ms"
    return f"{value / 1e9:.3g} GB/s" if name.startswith("host side") else f"{100 * value:.0f} %"


def _of(cells: Sequence[Cell], table: Table) -> list[Cell]:
    return [cell for cell in cells if (cell.paper, cell.table) == table]


def _figures(found: FloatArray) -> dict[str, float]:
    """Median of the absolute errors, mean of the signed ones."""
    return {"median": _rounded(float(np.median(np.abs(found)))), "mean": _rounded(float(np.mean(found)))}


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def expected_error(sizes: FloatArray, numbers: int) -> float:
    """Half the width of the 90 % interval, from absolute relative errors of cells that `numbers` figures are fitted to.

    Of many cells what nine of ten stay below; of few, normal errors with the freedom that the figures leave; no more
    cells than figures tell nothing, and FEW_ERROR stands for it.
    """
    if sizes.size >= MANY_CELLS:
        return float(np.percentile(sizes, 90))
    free = sizes.size - numbers
    return FEW_ERROR if free <= 0 else float(1.645 * np.sqrt((sizes**2).sum() / free))


def unexplained_seconds(cells: Sequence[Cell]) -> float:
    """Seconds by which parts of an iteration stay short of print, where by more than TOLERANCE: most of any row."""
    short: dict[str, float] = {}
    for cell in cells:
        if cell.metric in MAY_BE_ZERO and cell.error is not None and cell.error < -TOLERANCE:
            assert cell.published is not None
            assert cell.predicted is not None
            short[cell.row] = short.get(cell.row, 0.0) + cell.published - cell.predicted
    return max(short.values(), default=0.0)


def write(path: Path, name: str, found: Fit, cells: Sequence[Cell]) -> None:
    """Write the fitted figures of a platform, with the error to expect."""
    raw = yaml.safe_load(document(name, found.values, found))
    own = [cell for cell in cells if cell.fitted]
    rows = {(cell.paper, cell.table, cell.row) for cell in own}
    fed = [one for one in COEFFICIENTS if one.name in found.determined and any(item == name for item, _ in one.figures)]
    error = FEW_ERROR if len(rows) <= len(fed) else expected_error(np.abs(errors(own)), len(fed))
    date = raw["rate_beside_copies"]["date"]
    raw.pop("unexplained_s", None)
    raw.pop("error")
    if (short := unexplained_seconds(own)) and len(rows) <= len(fed):
        raw["unexplained_s"] = {
            "value": f"{short:.3g}s",
            "source": "fitted",
            "reference": "parts of a fitted row that stay short by over a quarter, together: the interval's upper end",
            "date": date,
        }
    few = error == FEW_ERROR
    raw["error"] = {
        "value": f"{100 * error:.3g}%",
        "source": "assumed" if few else "fitted",
        **({"low": "10%", "high": "50%"} if few else {}),
        "reference": "no more rows than figures"
        if few
        else "half of the 90 % interval of the errors of the rows fitted",
        "date": date,
    }
    with atomic_write(path, text=True) as file:
        file.write("# Written by `python -m studies.fit_published --write`; docs/reproduce.md says how.\n")
        file.write(yaml.safe_dump(raw, sort_keys=False, width=120))


if __name__ == "__main__":
    sys.exit(main())
