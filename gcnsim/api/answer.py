"""What a what-if found: as text, as a page, as tables of other libraries, and in files."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsim.api.simulation import write_timeline
from gcnsim.core.errors import ScenarioError
from gcnsim.methods import Method
from gcnsim.planning.space import Space
from gcnsim.planning.study import Studies
from gcnsim.planning.what_if import Progress, sweep_bandwidth
from gcnsim.results import Row, WhatIf
from gcnsim.scenario import Scenario, knob_text, rule_at
from gcnsim.simulation import Result

if TYPE_CHECKING:
    import pyarrow as pa

    from gcnsim.report.figures.curves import Series

CURVES = 6
"""Most rows drawn against bandwidth, including the recommended one: more lines would be unreadable."""


@dataclass(frozen=True, slots=True, repr=False)
class Answer:
    """The answer of a what-if: rows, recommendation, and ways to print and write them.

    `repr` and `str` give what the command line prints, `explain` what it prints with `--explain`; notebooks show the
    table and the verdict. told: the results as dataclasses. studies, space: what they were computed from.
    """

    told: WhatIf
    studies: Studies
    space: Space
    recommended: Result
    """The simulated run of the recommended setting."""

    @property
    def payload(self) -> dict[str, Any]:
        """Plain data in the shape of the JSON schema `gcnsim.what-if/1`."""
        return self.told.payload()

    @property
    def rows(self) -> list[Row]:
        """One row per setting that was asked for, in that order; times in seconds, sizes in bytes, shares of one."""
        return list(self.told.results)

    @property
    def results(self) -> list[dict[str, Any]]:
        """The rows as plain data, one dict per row."""
        return [row.payload() for row in self.told.results]

    @property
    def recommendation(self) -> dict[str, Any]:
        """The recommended method and knobs as plain data, with the iteration time and the reasons."""
        return self.told.recommendation.payload()

    def __repr__(self) -> str:
        """The text that the command line prints."""
        from gcnsim.report.answer.table import render_table

        return render_table(self.told)

    def explain(self) -> str:
        """The text that the command line prints with `--explain`: also reasons, all steps, sources and assumptions."""
        from gcnsim.report.answer.table import render_table

        return render_table(self.told, explain=True)

    def _repr_html_(self) -> str:
        """The table and the verdict as HTML, for notebooks."""
        from gcnsim.report.answer.table import render_notebook

        return render_notebook(self.told)

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame, with the columns of `to_csv`. Raises ScenarioError without pandas."""
        from gcnsim.report.answer.rows import columns_of_rows

        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            raise ScenarioError("to_frame: needs pandas (pip install pandas); to_arrow() does without") from error
        return pandas.DataFrame(columns_of_rows(self.told))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, with the columns of `to_csv`."""
        import pyarrow

        from gcnsim.report.answer.rows import columns_of_rows

        return pyarrow.table(columns_of_rows(self.told))

    def to_csv(self, path: str | Path) -> None:
        """Write the rows to a CSV file. Raises FileError."""
        from gcnsim.report.answer.rows import write_csv

        write_csv(path, self.told)

    def to_html(self, path: str | Path, progress: Progress = lambda _: None) -> None:
        """Write the answer as one offline HTML page; this simulates other bandwidths for its figure.

        Raises FileError.
        """
        from gcnsim.report.figures.timeline import timeline_of_result
        from gcnsim.report.page.html import write_html

        timeline = timeline_of_result(self.recommended, self.told.recommendation.row.limited_by)
        write_html(path, self.told, bandwidth_curve(self, progress), timeline)

    def to_timeline(self, path: str | Path, *, detail: bool = False) -> None:
        """Write the run of the recommended setting for Perfetto or chrome://tracing; detail: one track per stream.

        Raises FileError.
        """
        write_timeline(self.recommended, path, detail=detail)


def bandwidth_curve(answer: Answer, progress: Progress = lambda _: None) -> Any:
    """Iteration time at 1/8 to 8 times the bandwidth of the recommended machine, for the figure.

    Of the recommended setting first, then of those asked for on its machine.
    """
    from gcnsim.report.figures.curves import Curve, MeasuredPoint

    best = answer.recommended.scenario
    simulated = [scenario for scenario in answer.space.settings() if scenario.cluster == best.cluster]
    series = bandwidth_series(answer.studies, best, list(dict.fromkeys([best, *simulated]))[:CURVES], progress)
    machine = rows_of_machine(answer.told)
    runs = [item for item in answer.told.measured or () if answer.told.results[item.row] in machine]
    points = [
        MeasuredPoint(run.setting, answer.told.results[run.row].bandwidth_bytes_per_s, run.measured_s) for run in runs
    ]
    asked_for = {row.bandwidth_bytes_per_s for row in answer.told.results}
    return Curve("bandwidth", series, tuple(points), tuple(sorted(asked_for)))


def bandwidth_series(
    studies: Studies, best: Scenario, rows: Sequence[Scenario], progress: Progress
) -> tuple[Series, ...]:
    """A line for each of the settings, at 1/8 to 8 times the bandwidth of the recommended one, as far as allowed."""
    from gcnsim.report.figures.curves import Series

    rule: Any = rule_at("cluster.bandwidth")[0]
    values = tuple(best.cluster.bandwidth * 2.0**power for power in range(-3, 4))
    values = tuple(value for value in values if rule.low <= value <= rule.high)
    curves = sweep_bandwidth(studies, rows, values, progress)
    return tuple(
        Series(
            _label(row.method),
            values,
            tuple(point.iteration_s for point in curve),
            tuple(point.low_s for point in curve),
            tuple(point.high_s for point in curve),
            recommended=row == best,
        )
        for row, curve in zip(rows, curves, strict=True)
    )


def rows_of_machine(what_if: WhatIf) -> list[Row]:
    """The rows whose GPUs are those of the recommended one, at any bandwidth."""
    best = what_if.recommendation.row
    return [
        row for row in what_if.results if (row.dataset, row.device, row.gpus) == (best.dataset, best.device, best.gpus)
    ]


def _label(method: Method) -> str:
    knobs = knob_text(method)
    if method.has("rate"):
        return f"{method.name} ({', '.join(filter(None, (f'rate {method.rate:g}', knobs)))})"
    if not method.has("tau"):
        return f"{method.name} ({knobs})" if knobs else method.name
    cache = "" if method.cache.empty else f", cache {method.cache.describe()}"
    return f"{method.name} (tau {method.tau}, epsilon {method.epsilon:g}{cache})"
