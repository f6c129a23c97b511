"""The cells of the reproduction: every metric of every published row beside its prediction and null models.

A null model is what a reader would guess from the vanilla run alone. A prediction has skill if it is closer than they
are. All start from the vanilla iteration of the same setting, as printed where a row gives it, else as predicted:
- `vanilla`: nothing changes;
- `pipelined`: divided by the pipelined speed-up that the paper shows, for pipelined methods;
- `scaled`: that, with the part that transfers take (as predicted) scaled by the rate at which nodes are sampled;
- `overlap`: the larger of computation and communication, as predicted for the vanilla run.

`payload` summarises all cells: errors per paper, beside null models, and the worst rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import FileError, nearest
from gcnsim.evidence.published_answers import Progress, RangeOfResults, answer
from gcnsim.evidence.published_facts import PREDICTED, FactRow
from gcnsim.evidence.published_quantities import GIVEN_BASE, QUANTITIES, iteration_seconds, predicted
from gcnsim.evidence.row_scenario import RowScenario, is_fitted, scenario_of_row
from gcnsim.hardware import platform, platforms
from gcnsim.methods import create_method
from gcnsim.simulation.diagnosis import impossible_time

SHORT_S: Final = 0.05
"""Seconds below which a published time is judged by its absolute error."""

SHORT_ERROR_S: Final = 0.02
"""Absolute error that counts as the whole tolerance of such a time."""

TOLERANCE: Final = 0.25
"""The largest error of a cell that a good fit leaves."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One metric of one row. predicted, low, high: None where `reason` says why. nulls: what null models say.

    judged: whether the published value can be compared: there is one, and it is not 1 by definition.
    fitted: whether a fitted figure follows from the row.
    """

    paper: str
    table: str
    row: str
    use: str
    metric: str
    predicted: float | None
    low: float | None
    high: float | None
    published: float | None
    reason: str
    judged: bool
    nulls: Mapping[str, float]
    fitted: bool = False

    @property
    def error(self) -> float | None:
        """Signed relative error; of a time below SHORT_S, its absolute error as a share of what 25 % stand for."""
        if not self.judged or self.predicted is None or self.published is None:
            return None
        return error_of(self.metric, self.predicted, self.published)


def error_of(metric: str, value: float, published: float) -> float:
    """Signed relative error; a time below SHORT_S counts TOLERANCE where it is SHORT_ERROR_S off."""
    if metric.endswith("_s") and metric != "epochs_per_s" and published < SHORT_S:
        return (value - published) / SHORT_ERROR_S * TOLERANCE
    return value / published - 1.0


def reproduce(
    rows: Sequence[FactRow],
    *,
    platforms: Mapping[str, str] | None = None,
    processes: int = 1,
    progress: Progress = lambda _: None,
    spread: bool = True,
    calibrated: bool = True,
    wanted: Callable[[FactRow], bool] = lambda row: row.use in PREDICTED,
) -> list[Cell]:
    """The cells of all rows that are to be predicted, in their order.

    platforms: files with other fitted figures, by platform. spread: whether intervals cover the assumptions' ends.
    calibrated: whether figures fitted to platforms are used; without them a row is answered as that of a machine which
    nobody measured. wanted: which rows. Raises FileError for a row with an unknown method or metric, or that cannot be
    asked.
    """
    chosen = [row for row in rows if wanted(row)]
    _check(chosen)
    found = [(row, scenario_of_row(row, rows, platforms or {}, calibrated=calibrated)) for row in chosen]
    settings = [(row, one) for row, one in found if isinstance(one, RowScenario)]
    runs = answer(
        [row_scenario for _, one in settings for row_scenario in (one, vanilla_of(one))],
        processes,
        progress,
        spread=spread,
    )
    table = _Table(rows, settings, runs)
    return [cell for row, one in found for cell in table.cells(row, one)]


def vanilla_of(one: RowScenario) -> RowScenario:
    """The same setting under the method that ratios compare with: synchronous training on the full graph, mostly."""
    return one.by(create_method(one.system.base))


def _check(rows: Sequence[FactRow]) -> None:
    for row in rows:
        for metric in row.metrics:
            if metric not in QUANTITIES and isinstance(scenario_of_row(row, rows, {}), RowScenario):
                raise FileError(f"{row.place}: unknown metric {metric!r}; {nearest(metric, QUANTITIES)}")


def _impossible(metric: str, run: RangeOfResults, published: float | None, bandwidth: float) -> str:
    """Why no such run took the published time; empty where one may have, and of what is not a time of an iteration."""
    seconds = None if published is None else iteration_seconds(metric, published, run.likely)
    return "" if seconds is None else impossible_time(min(one.wire_s for one in run), seconds, bandwidth) or ""


class _Table:
    """All rows with their runs."""

    def __init__(
        self,
        rows: Sequence[FactRow],
        settings: Sequence[tuple[FactRow, RowScenario]],
        runs: Mapping[RowScenario, RangeOfResults],
    ) -> None:
        self.rows = rows
        self.settings = settings
        self.runs = runs

    def cells(self, row: FactRow, one: RowScenario | str) -> list[Cell]:
        """One cell for each of the row's metrics."""
        return [self._cell(row, one, metric) for metric in row.metrics]

    def _cell(self, row: FactRow, one: RowScenario | str, metric: str) -> Cell:
        empty = Cell(
            paper=row.paper,
            table=row.table,
            row=row.label,
            use=row.use,
            metric=metric,
            predicted=None,
            low=None,
            high=None,
            published=row.published(metric),
            reason=one if isinstance(one, str) else "",
            judged=False,
            nulls={},
            fitted=isinstance(one, RowScenario) and is_fitted(row, one),
        )
        if isinstance(one, str):
            return empty
        base = self._base(row, one, metric)
        if isinstance(base, str):
            return replace(empty, reason=base)
        run, vanilla = self.runs[one], self.runs[vanilla_of(one)]
        likely, low, high = predicted(metric, run, base)
        paper = [(other, item) for other, item in self.settings if other.paper == row.paper]
        guesses = null_values(
            metric, one, vanilla, printed_vanilla(one, paper), visible_speedup(paper, one.scenario.cluster.platform)
        )
        by_definition = QUANTITIES[metric].one_of_base and is_vanilla(one) and base is vanilla
        if by_definition:
            low = high = likely
        wrong = _impossible(metric, run, empty.published, one.scenario.cluster.bandwidth)
        judged = empty.published is not None and not by_definition and not wrong
        return replace(empty, predicted=likely, low=low, high=high, judged=judged, nulls=guesses, reason=wrong)

    def _base(self, row: FactRow, one: RowScenario, metric: str) -> RangeOfResults | str | None:
        """What a ratio compares with: the vanilla run, or a system whose printed seconds stand for it."""
        if not QUANTITIES[metric].ratio:
            return None
        name = GIVEN_BASE.get((row.paper, row.table))
        if name is None:
            return self.runs[vanilla_of(one)]
        for other in self.rows:
            if (other.paper, other.table, other.fields.get("method")) == (row.paper, row.table, name):
                seconds = printed_seconds(other)
                if seconds is not None:
                    run = replace(self.runs[one].likely, iteration_s=seconds, low_s=seconds, high_s=seconds)
                    return RangeOfResults(run, run, run)
        return f"compared with {name}, whose time no row gives"


TIMED: Final = (
    "per_iteration_s", "epoch_s", "epoch_time_s", "total_s", "epochs_per_s", "throughput_x", "speedup_x", "total_x",
)  # fmt: skip
"""Metrics that follow from the iteration time alone."""

PIPELINED: Final = create_method("pipegcn")
"""Plain pipelining: what a visible speed-up is read of."""

SECONDS: Final = ("per_iteration_s", "epoch_s", "total_s")
SPEEDUPS: Final = ("throughput_x", "speedup_x")


def printed_seconds(row: FactRow) -> float | None:
    """The iteration time that a row prints, in whatever form."""
    for name in SECONDS:
        value = row.published(name)
        if value is not None:
            return value
    rate = row.published("epochs_per_s")
    return None if rate is None else 1.0 / rate


def visible_speedup(chosen: Sequence[tuple[FactRow, RowScenario]], platform: str | None) -> float | None:
    """The mean of the pipelined speed-ups that rows on `platform` print, or that follow from the times they print."""
    found = []
    here = [(row, one) for row, one in chosen if row.use == "calibrate" and one.scenario.cluster.platform == platform]
    for row, one in here:
        if one.scenario.method.canonical() == PIPELINED:
            printed = [value for name in SPEEDUPS if (value := row.published(name)) is not None]
            found += printed or _from_times(row, one, here)
    return sum(found) / len(found) if found else None


def _from_times(row: FactRow, one: RowScenario, others: Sequence[tuple[FactRow, RowScenario]]) -> list[float]:
    own = printed_seconds(row)
    vanilla = printed_vanilla(one, others)
    return [vanilla / own] if own and vanilla else []


def printed_vanilla(one: RowScenario, rows: Sequence[tuple[FactRow, RowScenario]]) -> float | None:
    """The printed vanilla iteration of the same setting, if a row gives it."""
    for row, other in rows:
        same = replace(other.scenario, method=one.scenario.method) == one.scenario and other.boundary == one.boundary
        if same and is_vanilla(other):
            seconds = printed_seconds(row)
            if seconds is not None and row.use == "calibrate":
                return seconds
    return None


def is_vanilla(one: RowScenario) -> bool:
    """Whether a setting is what ratios compare with: plain full-graph training, under whatever name, mostly."""
    return one.scenario.method.canonical().name == one.system.base


def null_values(
    metric: str, one: RowScenario, vanilla: RangeOfResults, printed: float | None, speedup: float | None
) -> Mapping[str, float]:
    """What each null model says of a metric; empty for vanilla rows, and metrics that time alone does not give."""
    if metric not in TIMED or is_vanilla(one):
        return {}
    run, method = vanilla.likely, one.scenario.method
    seconds = printed or run.iteration_s
    gain = speedup if method.tau and speedup else 1.0
    transfers = run.communication_s / run.iteration_s
    # Sampling edges drops few of a boundary node's rows: transfers stay as they are.
    sampling = method.sampling()
    rate = 1.0 if sampling.drops_edges else sampling.rate
    guesses = {
        "vanilla": seconds,
        "pipelined": seconds / gain,
        "scaled": seconds * (1.0 - transfers * (1.0 - rate)) / gain,
        "overlap": seconds * max(1.0 - transfers, transfers),
    }
    base = replace(run, iteration_s=seconds)
    return {name: QUANTITIES[metric].of(replace(run, iteration_s=guess), base) for name, guess in guesses.items()}


SCHEMA: Final = "gcnsim.reproduction/1"
NULLS: Final = ("vanilla", "pipelined", "scaled", "overlap")
WORST: Final = 3


def payload(cells: Sequence[Cell]) -> dict[str, Any]:
    """The result as plain data: figures per paper, fitted figures per platform, and every cell."""
    papers = list(dict.fromkeys(cell.paper for cell in cells))
    return {
        "schema": SCHEMA,
        "all": figures(cells),
        "papers": {paper: figures([cell for cell in cells if cell.paper == paper]) for paper in papers},
        "platforms": {name: _fitted(name) for name in platforms()},
        "worst": [as_row(cell) for cell in worst(cells)],
        "cells": [as_row(cell) for cell in cells],
    }


def figures(cells: Sequence[Cell]) -> dict[str, Any]:
    """Counts, and absolute errors of the judged cells: median, largest, within TOLERANCE, within their interval.

    held: the same of those that no figure was fitted to. nulls: per null model the median absolute error, and ours on
    the same cells; None where there is none.
    """
    return {
        "cells": len(cells),
        "predicted": sum(cell.predicted is not None for cell in cells),
        **_errors(cells),
        "held": _errors([cell for cell in cells if not cell.fitted]),
        "nulls": {name: _null(cells, name) for name in NULLS},
    }


def _errors(cells: Sequence[Cell]) -> dict[str, Any]:
    errors = np.array([abs(error) for cell in cells if (error := cell.error) is not None])
    return {
        "judged": int(errors.size),
        "median": float(np.median(errors)) if errors.size else None,
        "largest": float(errors.max()) if errors.size else None,
        "within": float(np.mean(errors <= TOLERANCE)) if errors.size else None,
        "covered": _covered(cells),
    }


def worst(cells: Sequence[Cell]) -> list[Cell]:
    """The judged cells with the largest errors."""
    judged = [cell for cell in cells if cell.error is not None]
    return sorted(judged, key=lambda cell: -abs(cell.error or 0.0))[:WORST]


def as_row(cell: Cell) -> dict[str, Any]:
    """One cell as plain data."""
    names = (
        "paper",
        "table",
        "row",
        "use",
        "metric",
        "predicted",
        "low",
        "high",
        "published",
        "error",
        "reason",
        "fitted",
    )
    return {**{name: getattr(cell, name) for name in names}, "nulls": dict(cell.nulls)}


def _covered(cells: Sequence[Cell]) -> float | None:
    held = [
        cell.low <= cell.published <= cell.high
        for cell in cells
        if cell.error is not None and cell.low is not None and cell.high is not None and cell.published is not None
    ]
    return float(np.mean(held)) if held else None


def _null(cells: Sequence[Cell], name: str) -> Mapping[str, float] | None:
    pairs = [
        (abs(error_of(cell.metric, cell.nulls[name], cell.published)), abs(error))
        for cell in cells
        if name in cell.nulls and cell.published is not None and (error := cell.error) is not None
    ]
    if not pairs:
        return None
    null, ours = np.median(np.array(pairs), axis=0)
    return {"cells": len(pairs), "null": float(null), "ours": float(ours)}


def _fitted(name: str) -> dict[str, Any]:
    found = platform(name)
    return {
        "title": found.title,
        "device": found.device,
        "spmm_efficiency": found.spmm_efficiency.value,
        "stream_efficiency": None if found.stream_efficiency is None else found.stream_efficiency.value,
        "staging_bandwidth": None if found.staging_bandwidth is None else found.staging_bandwidth.value,
        "rate_beside_copies": found.rate_beside_copies.value,
        "error": found.error.value,
        "error_source": found.error.source,
    }
