"""Rows of a what-if asked for again and again in one process, as somebody moves a slider: what they share is kept."""

from __future__ import annotations

from typing import Any, Final

from gcnsim.api.question import settings
from gcnsim.planning import StudyCache, full_graph, row_of
from gcnsim.results import Row
from gcnsim.scenario import Scenario
from gcnsim.simulation.templates import Templates

MOST_BASELINES: Final = 10_000
MOST_SOURCES: Final = 8
"""Workloads whose counts are kept."""


class WarmRows:
    """Answers questions row by row, without a recommendation and next steps.

    A row's times are those of `what_if`; its interval is that of draws that are estimated and not simulated.
    """

    def __init__(self) -> None:
        self._templates = Templates()
        self._studies: dict[Any, StudyCache] = {}
        self._baselines: dict[Scenario, float | None] = {}

    def rows(self, **options: Any) -> list[Row]:
        """The rows for options of `what_if`. Raises GcnsimError (one line: path, value, what is allowed)."""
        with self._templates.used():
            return [self._row(each) for each in settings(**options)]

    def _row(self, scenario: Scenario) -> Row:
        key = (scenario.workload, scenario.partition, scenario.run)
        if key not in self._studies:
            if len(self._studies) >= MOST_SOURCES:
                self._studies.clear()
            self._studies[key] = StudyCache(scenario)
        studies = self._studies[key]
        baseline = full_graph(scenario)
        if baseline not in self._baselines:
            if len(self._baselines) >= MOST_BASELINES:
                self._baselines.clear()
            self._baselines[baseline] = studies.baseline(scenario)
        row = row_of(studies.estimate(scenario), self._baselines[baseline], studies.accesses.name)
        studies.forget()
        return row
