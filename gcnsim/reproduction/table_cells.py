"""Every metric of every published row beside its prediction: the cells of the reproduction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from gcnsim.diagnosis import impossible_time
from gcnsim.errors import FileError, nearest
from gcnsim.methods import create_method
from gcnsim.reproduction.answers import Ends, Progress, answer
from gcnsim.reproduction.baselines import is_vanilla, null_values, printed_seconds, printed_vanilla, visible_speedup
from gcnsim.reproduction.facts import PREDICTED, Row
from gcnsim.reproduction.fitted import is_fitted
from gcnsim.reproduction.quantities import GIVEN_BASE, QUANTITIES, iteration_seconds, predicted
from gcnsim.reproduction.row_scenario import RowScenario, asked

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
    rows: Sequence[Row],
    *,
    platforms: Mapping[str, str] | None = None,
    processes: int = 1,
    progress: Progress = lambda _: None,
    spread: bool = True,
    calibrated: bool = True,
    wanted: Callable[[Row], bool] = lambda row: row.use in PREDICTED,
) -> list[Cell]:
    """The cells of all rows that are to be predicted, in their order.

    platforms: files with other fitted figures, by platform. spread: whether intervals cover the assumptions' ends.
    calibrated: whether figures fitted to platforms are used; without them a row is answered as that of a machine which
    nobody measured. wanted: which rows. Raises FileError for a row with an unknown method or metric, or that cannot be
    asked.
    """
    chosen = [row for row in rows if wanted(row)]
    _check(chosen)
    found = [(row, asked(row, rows, platforms or {}, calibrated=calibrated)) for row in chosen]
    settings = [(row, one) for row, one in found if isinstance(one, RowScenario)]
    runs = answer([each for row, one in settings for each in _needed(row, one)], processes, progress, spread=spread)
    table = _Table(rows, settings, runs)
    return [cell for row, one in found for cell in table.cells(row, one)]


def vanilla_of(one: RowScenario) -> RowScenario:
    """The same setting under the method that ratios compare with: synchronous training on the full graph, mostly."""
    return one.by(create_method(one.system.base))


def _needed(row: Row, one: RowScenario) -> tuple[RowScenario, ...]:
    return (one, vanilla_of(one))


def _check(rows: Sequence[Row]) -> None:
    for row in rows:
        for metric in row.metrics:
            if metric not in QUANTITIES and isinstance(asked(row, rows, {}), RowScenario):
                raise FileError(f"{row.place}: unknown metric {metric!r}; {nearest(metric, QUANTITIES)}")


def _impossible(metric: str, run: Ends, published: float | None, bandwidth: float) -> str:
    """Why no such run took the published time; empty where one may have, and of what is no time of an iteration."""
    seconds = None if published is None else iteration_seconds(metric, published, run.likely)
    return "" if seconds is None else impossible_time(min(one.wire_s for one in run), seconds, bandwidth) or ""


class _Table:
    """All rows with their runs."""

    def __init__(
        self, rows: Sequence[Row], settings: Sequence[tuple[Row, RowScenario]], runs: Mapping[RowScenario, Ends]
    ) -> None:
        self.rows = rows
        self.settings = settings
        self.runs = runs

    def cells(self, row: Row, one: RowScenario | str) -> list[Cell]:
        """One cell for each of the row's metrics."""
        return [self._cell(row, one, metric) for metric in row.metrics]

    def _cell(self, row: Row, one: RowScenario | str, metric: str) -> Cell:
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
        paper = [(other, each) for other, each in self.settings if other.paper == row.paper]
        guesses = null_values(
            metric, one, vanilla, printed_vanilla(one, paper), visible_speedup(paper, one.scenario.cluster.platform)
        )
        by_definition = QUANTITIES[metric].one_of_base and is_vanilla(one) and base is vanilla
        if by_definition:
            low = high = likely
        wrong = _impossible(metric, run, empty.published, one.scenario.cluster.bandwidth)
        judged = empty.published is not None and not by_definition and not wrong
        return replace(empty, predicted=likely, low=low, high=high, judged=judged, nulls=guesses, reason=wrong)

    def _base(self, row: Row, one: RowScenario, metric: str) -> Ends | str | None:
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
                    return Ends(run, run, run)
        return f"compared with {name}, whose time no row gives"
