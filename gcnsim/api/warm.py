"""Rows of a what-if asked for repeatedly in one process, as a user moves a slider: shared work is kept."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from gcnsim.api.question import settings
from gcnsim.planning import StudyCache, full_graph, row_of
from gcnsim.results import Row
from gcnsim.scenario import Scenario
from gcnsim.simulation.templates import Templates, at_standard

MOST_BASELINES: Final = 10_000
MOST_SOURCES: Final = 8
"""Workloads whose counts are kept."""

MOST_PAIRS: Final = 3_000
"""Pairs of workers of all settings whose schedules are kept for other bandwidths: five settings of 24 GPUs, eighty
of six. A pair takes some 15 KB."""


class WarmRows:
    """Answers questions row by row, without a recommendation and next steps.

    A row's times are those of `what_if`; its interval is that of draws that are estimated and not simulated.
    """

    def __init__(self) -> None:
        self._templates: OrderedDict[Scenario, Templates] = OrderedDict()
        self._studies: dict[Any, StudyCache] = {}
        self._baselines: dict[Scenario, float | None] = {}

    def rows(self, **options: Any) -> list[Row]:
        """The rows for options of `what_if`. Raises GcnsimError (one line: path, value, what is allowed)."""
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
            with self._written(baseline).used():
                self._baselines[baseline] = studies.baseline(scenario)
        with self._written(scenario).used():
            row = row_of(studies.estimate(scenario), self._baselines[baseline], studies.accesses.name)
        studies.forget()
        return row

    def _written(self, scenario: Scenario) -> Templates:
        """The schedules of the scenario at any bandwidth: each setting has its own, for a row takes many of them."""
        key = at_standard(scenario)
        self._templates[key] = found = self._templates.pop(key, None) or Templates()
        while len(self._templates) > 1 and sum(each.cluster.gpus**2 for each in self._templates) > MOST_PAIRS:
            self._templates.popitem(last=False)
        return found
