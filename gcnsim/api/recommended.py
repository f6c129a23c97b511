"""What a recommendation found: as text, as a page, as tables of other libraries, and in files."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsim.errors import ScenarioError
from gcnsim.results import Advice, PointReport
from gcnsim.simulation import Result

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, repr=False)
class Recommended:
    """A recommendation: the choice, the other options, and ways to print and write them.

    `repr` gives the verdict and the table, and notebooks show the same; `str` gives everything that the command line
    prints. told: the results as dataclasses. chosen: the simulated run of the choice.
    """

    told: Advice
    chosen: Result

    @property
    def payload(self) -> dict[str, Any]:
        """Plain data in the shape of the JSON schema `gcnsim.recommend/1`."""
        return self.told.payload()

    @property
    def rows(self) -> list[PointReport]:
        """The choice, the runner-up and the Pareto front of time and cost, the fastest first."""
        return list(self.told.rows)

    def __repr__(self) -> str:
        """The choice in a sentence, and the table."""
        from gcnsim.report.recommended import render_short_advice

        return render_short_advice(self.told)

    def __str__(self) -> str:
        """The text that the command line prints."""
        from gcnsim.report.recommended import render_recommended

        return render_recommended(self.told)

    def _repr_html_(self) -> str:
        """The choice and the table as HTML, for notebooks."""
        from gcnsim.report.recommended import render_advice_notebook

        return render_advice_notebook(self.told)

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame, with the columns of `to_csv`. Raises ScenarioError without pandas."""
        from gcnsim.report.tables import columns_of_options

        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            raise ScenarioError("to_frame: needs pandas (pip install pandas); to_arrow() does without") from error
        return pandas.DataFrame(columns_of_options(self.told))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, with the columns of `to_csv`."""
        import pyarrow

        from gcnsim.report.tables import columns_of_options

        return pyarrow.table(columns_of_options(self.told))

    def to_csv(self, path: str | Path) -> None:
        """Write the rows to a CSV file. Raises FileError."""
        from gcnsim.report.tables import write_options_csv

        write_options_csv(path, self.told)

    def to_html(self, path: str | Path) -> None:
        """Write the recommendation as one offline page: why, time against cost, what moves the time.

        Raises FileError.
        """
        from gcnsim.report.page.sections import write_advice

        write_advice(path, self.told)
