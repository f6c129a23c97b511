"""Rows of a what-if asked for repeatedly in one process, as a user moves a slider: shared work is kept."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, Final

from gcnsim.api.question import asked, settings
from gcnsim.core.stamps import Stamp, stamps_of
from gcnsim.planning.rows import RowEvaluator
from gcnsim.planning.what_if import recommended_setting
from gcnsim.results import Row
from gcnsim.scenario import Scenario
from gcnsim.simulation.templates import Templates, at_standard

MOST_SOURCES: Final = 8
"""Workloads whose counts are kept."""

MOST_PAIRS: Final = 3_000
"""Pairs of workers of all settings whose schedules are kept for other bandwidths: five settings of 24 GPUs, eighty
of six. A pair takes some 15 KB."""


class RowCache:
    """Answers questions row by row, without reasons and next steps; times and intervals are those of `what_if`."""

    def __init__(self) -> None:
        self._stamps: dict[str, Stamp] = {}
        self._begin()

    def _begin(self) -> None:
        self._templates: OrderedDict[Scenario, Templates] = OrderedDict()
        self._evaluator = RowEvaluator(None, MOST_SOURCES, self._written)

    def rows(self, **options: Any) -> list[Row]:
        """The rows for options of `what_if`. Raises GcnsimError (one line: path, value, what is allowed)."""
        self._notice_changes(options)
        return list(map(self._evaluator.row, settings(**options)))

    def recommended(self, **options: Any) -> Row:
        """The row that `what_if` recommends for options of one machine, whether they ask for it or not.

        Raises GcnsimError like `rows`.
        """
        self._notice_changes(options)
        space, rule = asked(**options)
        chosen = recommended_setting(self._evaluator.studies(space.base), space, rule)
        return replace(self._evaluator.row(chosen), recommended=True)

    def _notice_changes(self, options: Mapping[str, Any]) -> None:
        found = stamps_of(options)
        if any(self._stamps.get(path, stamp) != stamp for path, stamp in found.items()):
            self._stamps.clear()
            self._begin()  # A file was changed: what was read of it is out of date.
        self._stamps |= found

    def read(self, **options: Any) -> str:
        """What was read of the graph of a question that `rows` has answered: its size, parts, model, assumed widths."""
        scenario = settings(**options)[0]
        studies = self._evaluator.studies(scenario)
        model = studies.model(scenario)
        widths = f"; not in the file, so assumed: {', '.join(model.assumed)}" if model.assumed else ""
        return f"{studies.accesses.describe(scenario)['text'].partition(': ')[2]}; {model}{widths}"

    def _written(self, scenario: Scenario) -> AbstractContextManager[object]:
        """The schedules of the scenario at any bandwidth: each setting has its own, for a row takes many of them."""
        key = at_standard(scenario)
        self._templates[key] = templates = self._templates.pop(key, None) or Templates()
        while len(self._templates) > 1 and sum(template.cluster.gpus**2 for template in self._templates) > MOST_PAIRS:
            self._templates.popitem(last=False)
        return templates.used()
