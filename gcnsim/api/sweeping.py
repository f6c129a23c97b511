"""A sweep in one call: a question and a folder in, the results of every point out.

Warnings about unusual rates are given before the sweep begins, because its rows have no room for them.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsim.core.errors import GcnsimError, ScenarioError, nearest, plural
from gcnsim.core.processes import cores
from gcnsim.hardware import PriceBook
from gcnsim.planning.sweep_folder import Folder, open_folder
from gcnsim.planning.sweep_points import Settings
from gcnsim.planning.sweep_question import Question, load_question, read_question
from gcnsim.planning.sweep_run import LIMIT, Plan, Progress, plan, run
from gcnsim.planning.sweep_table import read_filters
from gcnsim.planning.sweep_work import DONE, NAMES, STATES, executor_of
from gcnsim.results import Row
from gcnsim.scenario.odd_rates import rate_warnings

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.dataset as ds


def _alone(question: Question) -> Iterator[dict[str, Any]]:
    """Nothing, then each value of each axis of the cluster, of ranges the ends."""
    yield {}
    for axis in question.axes:
        if axis.path.startswith("cluster."):
            ends = axis.values if axis.between is None else (axis.between.at(0.0), axis.between.at(1.0))
            yield from ({axis.path: end} for end in ends)


def sweep_warnings(question: Question) -> tuple[str, ...]:
    """Warnings about impossibly high rates, for the base and for each value of each axis."""
    settings, warnings = Settings(question.base), []
    for values in _alone(question):
        # What contradicts the base alone may stand with other values: points say so.
        with suppress(GcnsimError):
            warnings.append(settings.scenario(values))
    return tuple(dict.fromkeys(rate_warnings(warnings)))


@dataclass(frozen=True, slots=True, repr=False)
class Sweep:
    """The results of a sweep in a folder; rows are read when needed."""

    folder: Folder

    def __repr__(self) -> str:
        """The folder, the number of finished points, and the varying fields."""
        axes = ", ".join(axis.path for axis in self.question.axes)
        done = self.to_arrow().num_rows
        return f"Sweep({str(self.folder.path)!r}: {done:,} of {plural(self.folder.points, 'point')}; axes {axes})"

    @property
    def question(self) -> Question:
        """What was asked."""
        return self.folder.question

    def status(self) -> dict[str, Any]:
        """The number of points in each state (`done`, `refused`, ...), the number left, and reasons for refusals."""
        table = self.to_arrow()
        states = Counter(table["state"].to_pylist())
        reasons = Counter(reason for reason in table["reason"].to_pylist() if reason is not None)
        return {
            "points": self.folder.points,
            "left": self.folder.points - table.num_rows,
            **{state: states.get(state, 0) for state in STATES},
            "reasons": dict(reasons.most_common()),
        }

    def to_arrow(self) -> pa.Table:
        """All points so far as an Arrow table. Raises FileError."""
        return self.folder.table()

    def dataset(self) -> ds.Dataset:
        """All points of a finished sweep as a PyArrow dataset, which reads only what a query needs.

        Raises ScenarioError if points are left.
        """
        import pyarrow.dataset as ds

        if not self.folder.results.exists():
            raise ScenarioError(f"{self.folder.path}: the sweep is not finished; run it again to continue")
        return ds.dataset(self.folder.results)

    def to_frame(self) -> Any:
        """All points so far as a pandas DataFrame. Raises ScenarioError without pandas."""
        try:
            importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            raise ScenarioError("to_frame: needs pandas (pip install pandas); to_arrow() does without") from error
        return self.to_arrow().to_pandas()

    def best(
        self,
        count: int | None = 10,
        by: str = "iteration_s",
        *,
        descending: bool = False,
        where: Sequence[str] = (),
        records: Sequence[Mapping[str, Any]] | None = None,
    ) -> list[dict[str, Any]]:
        """The best finished points by a column; points that exceed GPU memory come last.

        count: the number of points; None: all with a value in that column. where: conditions on varying fields or
        columns (`iteration_s < 0.5`). records: rows of `to_arrow` if already read. Raises ScenarioError for an unknown
        or empty column, and for an invalid condition.
        """
        keeps = read_filters(where, self.question.axes)
        columns = self.folder.schema.names
        if by not in columns:
            raise ScenarioError(f"--by: unknown column {by!r}; {nearest(by, columns)}")
        points = self.to_arrow().to_pylist() if records is None else records
        done = [dict(point) for point in points if point["state"] == DONE and keeps(point)]
        candidates = [item for item in done if item[by] is not None]
        if done and not candidates:
            raise ScenarioError(f"--by: {by} is empty in every answered point; allowed: a column that has values")
        candidates.sort(key=lambda item: item[by], reverse=descending)
        candidates.sort(key=lambda entry: entry["fits"] is False)
        return candidates[:count]

    def point(self, index: int) -> dict[str, Any]:
        """One point with all its columns. Raises ScenarioError if it does not exist or is not finished."""
        for entry in self.to_arrow().to_pylist():
            if entry["point"] == index:
                return dict(entry)
        raise ScenarioError(f"--point: {index} is not answered; points are 0 to {self.folder.points - 1}")

    def rows(self) -> list[Row]:
        """The finished points, as rows of a what-if."""
        from gcnsim.report.result import row_of_record

        return [row_of_record(entry) for entry in self.to_arrow().to_pylist() if entry["state"] == DONE]

    def to_html(
        self, path: str | Path, by: str = "iteration_s", *, descending: bool = False, where: Sequence[str] = ()
    ) -> None:
        """Write the finished points as one offline HTML page: the best of them, and time against each axis.

        where: as in `best`. Raises FileError, and ScenarioError if no point remains or as in `best`.
        """
        from gcnsim.report.page.html import PointOrder, write_sweep
        from gcnsim.report.result import row_of_record

        first = self.best(None, by, descending=descending, where=where)
        if not first:
            left = "keeps the conditions; allowed: others" if where else "is finished; run the sweep first"
            raise ScenarioError(f"{self.folder.path}: no point {left}")
        order = PointOrder(by, first[0][by], descending=descending)
        rows = list(map(row_of_record, first)) if where else self.rows()
        write_sweep(path, rows, list(map(row_of_record, first)), order, f"sweep {Path(self.folder.path).name}")

    def export(self, path: str | Path) -> None:
        """Write all points so far as CSV, JSON or Parquet, by the file's suffix. Raises FileError."""
        from gcnsim.report.result import write_points

        write_points(path, self.to_arrow())


def sweep(
    question: str | Path | Mapping[str, Any] | None = None,
    *,
    out: str | Path,
    axes: Mapping[str, object] | None = None,
    overrides: Sequence[str] = (),
    interval: str | None = None,
    prices: PriceBook | None = None,
    executor: str = "cores",
    address: str | None = None,
    processes: int | None = None,
    limit: int | None = LIMIT,
    progress: Progress = lambda done, total: None,
    notice: Callable[[str], object] = lambda line: None,
) -> Sweep:
    """Predict every point of a sweep that the folder `out` does not contain yet.

    question: a file or plain data (schema `gcnsim.sweep/1`). axes: values by field; they replace its axes. overrides:
    `PATH=VALUE` settings of its base. interval: `full` or `none`. prices: a `PriceBook`; None: those of the question,
    else of the catalogue. executor: `cores`, `dask` or `ray`, with the address of the cluster. limit: the most points;
    None: any number. progress: called with the numbers of finished and of all points. notice: called with a line about
    an unusual graph.

    Raises GcnsimError with one line: the field, its value, and what is allowed.

    >>> import gcnsim, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = gcnsim.sweep(axes={"method.tau": "0,1"}, overrides=["cluster.gpus=2"], out=folder, processes=1)
    ...     found.status()["done"]
    2
    """
    sweep_question = ask(question, axes, overrides, interval, prices)
    if executor not in NAMES:
        raise ScenarioError(f"--executor: {executor!r} is not allowed; one of {', '.join(NAMES)}")
    made = lambda: executor_of(executor, address, processes or cores())  # noqa: E731
    return Sweep(run(sweep_question, out, made, limit, progress, notice))


def ask(
    question: str | Path | Mapping[str, Any] | None,
    axes: Mapping[str, object] | None = None,
    overrides: Sequence[str] = (),
    interval: str | None = None,
    prices: PriceBook | None = None,
) -> Question:
    """The validated question of `sweep`. Raises GcnsimError."""
    fields = dict(question) if isinstance(question, Mapping) else {} if question is None else load_question(question)
    if interval is not None:
        fields["interval"] = interval
    parsed = read_question(fields, overrides, axes)
    if prices is None or not prices.asked:
        return parsed
    if parsed.prices.asked:
        raise ScenarioError("prices: the question has its own prices; allowed: prices in one of the two places")
    return replace(parsed, prices=prices)


def plan_sweep(question: Question, limit: int | None = None) -> Plan:
    """The points of a question, without predicting them. Raises GcnsimError."""
    return plan(question, limit)


def open_sweep(path: str | Path) -> Sweep:
    """Open the results of a sweep in a folder, finished or not. Raises FileError."""
    return Sweep(open_folder(path))
