"""Fit each published platform's two numbers to the rows that may be fitted: `python -m studies.fit_published`.

Free: `spmm_efficiency`, at which sparse sums read rows that the device's cache does not hold (a share of the memory
bandwidth, so at most 1), and `staging_bandwidth`, what the host side of one worker moves. `rate_beside_copies` is a
reading, not fitted: 68 % where PipeGCN's Table 6 shows it (0.17 s of computation alone, 0.25 s beside transfers), and
elsewhere the one of 68 % and 100 % that leaves less. Rows of use `calibrate` alone are looked at; the sum of squared
logarithms of predicted over published is least, large ones damped.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import yaml
from scipy.optimize import least_squares

from gcnsim.hardware import Figure, Platform, platform, platforms
from gcnsim.hardware.platforms import FOLDER
from gcnsim.ids import FloatArray
from gcnsim.io.atomic import atomic_write
from gcnsim.reproduction import SHIPPED, Cell, Row, RowScenario, asked, is_fitted, read_published, reproduce
from gcnsim.reproduction.facts import MAY_BE_ZERO
from gcnsim.reproduction.table_cells import TOLERANCE

LOW, HIGH = np.log([0.1, 0.02]), np.log([1.0, 50.0])
"""Bounds of the logarithms: a share of one, and GB/s."""

START = np.log([0.5, 3.0])
STARTS = {"bns-gcn-v100": np.log([0.15, 0.05])}
"""Where a fit starts elsewhere: from START up nothing depends on the staging."""

DAMPED = 0.15
MANY_CELLS, FEW_ERROR = 10, 0.25
READINGS = {"rtx-2080-ti-server": (0.68,), "sancus-2080-ti": (1.0,), "sancus-a100": (1.0,), "bns-gcn-v100": (1.0,)}
EITHER = (0.68, 1.0)
SLOWED = "reading, not fitted: computation of PipeGCN Table 6, 2 GPUs: 0.17 s alone, 0.25 s with transfers beside it"
UNSLOWED = "reading, not fitted: no slower beside transfers, which leaves less than 68% does"
HALF = "half of the 90 % interval of the errors of the rows fitted"
ALONE = "nothing overlaps in its tables"

HELD = {"sancus-a100": "sancus-2080-ti"}
"""Platforms with fewer cells than numbers: the efficiency of the same code on another, fitted before."""


@dataclass(frozen=True, slots=True)
class Found:
    """One fit. cells: those it was made of. cost: what least squares made least."""

    point: FloatArray
    beside: float
    cells: Sequence[Cell]
    cost: float

    @property
    def errors(self) -> FloatArray:
        """Absolute relative errors of the cells."""
        return np.abs(errors(self.cells))


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the fits, and write them into the package where asked to; return the exit code."""
    parser = argparse.ArgumentParser(description="Fit published platforms.")
    parser.add_argument("--published", default=str(SHIPPED), help="folder of published facts")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/platforms")
    given = parser.parse_args(arguments)
    rows = read_published(given.published)
    points: dict[str, FloatArray] = {}
    for name in platforms():
        held = points[HELD[name]][0] if name in HELD else None
        readings = READINGS.get(name, EITHER)
        found = min((fit(rows, name, beside, held) for beside in readings), key=lambda one: one.cost)
        points[name] = found.point
        efficiency, staging = np.exp(found.point)
        sys.stdout.write(
            f"{name}: spmm_efficiency {efficiency:.3f}, staging {staging:.2f} GB/s, beside copies {found.beside:.0%}; "
            f"{len(found.cells)} cells, median {np.median(found.errors):.1%}, largest {found.errors.max():.1%}\n"
        )
        if given.write:
            write(FOLDER / f"{name}.yaml", name, found)
    return 0


def fit(rows: Sequence[Row], name: str, beside: float, held: float | None = None) -> Found:
    """The two numbers of a platform under one reading; held: the logarithm of its efficiency, not to be fitted."""
    with tempfile.TemporaryDirectory() as folder:
        trial = _Trial(rows, name, beside, Path(folder))

        def whole(free: FloatArray) -> FloatArray:
            return free if held is None else np.array([held, *free])

        start = STARTS.get(name, START)[-2 if held is None else -1 :]

        def residuals(free: FloatArray) -> FloatArray:
            return trial.residuals(whole(free))

        best = least_squares(
            residuals,
            start,
            bounds=(LOW[-start.size :], HIGH[-start.size :]),
            loss="cauchy",
            f_scale=DAMPED,
            diff_step=[0.02] * start.size,
            max_nfev=30,
        )
        point = whole(best.x)
        return Found(point, beside, trial.cells(point), float(best.cost))


class _Trial:
    """Predicts a platform's rows with trial figures; every trial is a file of its own, since files are read once."""

    def __init__(self, rows: Sequence[Row], name: str, beside: float, folder: Path) -> None:
        self.rows = rows
        self.name = name
        self.beside = beside
        self.folder = folder
        self.number = 0

    def residuals(self, point: FloatArray) -> FloatArray:
        """Logarithms of predicted over published."""
        found: FloatArray = np.log1p(np.clip(errors(self.cells(point)), -0.999, 3.0))
        return found

    def cells(self, point: FloatArray) -> list[Cell]:
        """The judged cells of the platform's rows with these figures."""
        self.number += 1
        path = self.folder / f"{self.number}.yaml"
        path.write_text(document(self.name, point, self.beside, 0.0), encoding="utf-8")
        found = reproduce(self.rows, platforms={self.name: str(path)}, spread=False, wanted=self._wanted)
        return [cell for cell in found if cell.error is not None]

    def _wanted(self, row: Row) -> bool:
        if row.use != "calibrate":
            return False
        found = asked(row, self.rows, {})
        return isinstance(found, RowScenario) and is_fitted(row, found) and found.scenario.cluster.platform == self.name


def errors(cells: Sequence[Cell]) -> FloatArray:
    """Signed relative errors of the judged cells."""
    return np.array([error for cell in cells if (error := cell.error) is not None])


def expected_error(sizes: FloatArray, rows: int) -> float:
    """Half the width of the 90 % interval, from absolute relative errors of fitted cells of so many rows.

    Of many cells what nine of ten stay below; of few, normal errors with the freedom that two fitted numbers leave; no
    more rows than numbers tell nothing, and FEW_ERROR stands for it.
    """
    if sizes.size >= MANY_CELLS:
        return float(np.percentile(sizes, 90))
    free = sizes.size - START.size
    return FEW_ERROR if rows <= START.size else float(1.645 * np.sqrt((sizes**2).sum() / free))


def unexplained_seconds(cells: Sequence[Cell]) -> float:
    """Seconds by which parts of an iteration stay short of print, where by more than TOLERANCE: most of any row."""
    short: dict[str, float] = {}
    for cell in cells:
        if cell.metric in MAY_BE_ZERO and cell.error is not None and cell.error < -TOLERANCE:
            assert cell.published is not None
            assert cell.predicted is not None
            short[cell.row] = short.get(cell.row, 0.0) + cell.published - cell.predicted
    return max(short.values(), default=0.0)


def document(name: str, point: FloatArray, beside: float, error: float, unexplained: float = 0.0) -> str:
    """The platform's file with these figures."""
    own: Platform = platform(name)
    efficiency, staging = np.exp(point)
    raw = {
        "title": own.title,
        "device": own.device,
        "spmm_efficiency": figure(own.spmm_efficiency, f"{100 * min(efficiency, 1.0):.6g}%"),
        "cache": figure(own.cache, f"{own.cache.value:.0f}B"),
        "staging_bandwidth": figure(own.staging_bandwidth, f"{staging:.6g}GB/s"),
    }
    reading = own.rate_beside_copies
    raw["rate_beside_copies"] = {
        **figure(reading, f"{100 * beside:.6g}%"),
        "source": "assumed",
        "low": "50%",
        "high": "100%",
        "reference": SLOWED if beside < 1.0 else ALONE if name in READINGS else UNSLOWED,
    }
    if own.rebuild_s.value:
        raw["rebuild_s"] = figure(own.rebuild_s, f"{1e3 * own.rebuild_s.value:.6g}ms")
    if unexplained:
        raw["unexplained_s"] = {
            "value": f"{unexplained:.3g}s",
            "source": "fitted",
            "reference": "parts of a fitted row that stay short by over a quarter, together: the interval's upper end",
            "date": reading.date,
        }
    few = error == FEW_ERROR
    raw["error"] = {
        "value": f"{100 * error:.3g}%",
        "source": "assumed" if few else "fitted",
        **({"low": "10%", "high": "50%"} if few else {}),
        "reference": "no more rows than figures"
        if few
        else "half of the 90 % interval of the errors of the rows fitted",
        "date": reading.date,
    }
    return yaml.safe_dump(raw, sort_keys=False, width=120)


def figure(old: Figure, value: str) -> dict[str, str]:
    """A figure as a catalogue file holds it, with another value."""
    return {"value": value, "source": old.source, "reference": old.reference, "date": old.date}


def write(path: Path, name: str, found: Found) -> None:
    """Write the fitted figures of a platform, with the error to expect."""
    different = len({(cell.paper, cell.table, cell.row) for cell in found.cells})
    error, unexplained = expected_error(found.errors, different), unexplained_seconds(found.cells)
    text = document(name, found.point, found.beside, error, unexplained)
    with atomic_write(path, text=True) as file:
        file.write("# Written by `python -m studies.fit_published --write`; docs/reproduce.md says how.\n" + text)


if __name__ == "__main__":
    sys.exit(main())
