"""Timelines: of one setting of a what-if, and of a recorded run beside its prediction."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsim.api.question import settings
from gcnsim.errors import ScenarioError
from gcnsim.planning import Progress, StudyCache
from gcnsim.processes import cores
from gcnsim.runs.recorded_run import RecordedRun, read_recorded_run
from gcnsim.simulation import Result

if TYPE_CHECKING:
    from gcnsim.report.figures.timeline import TimelineData


@dataclass(frozen=True, slots=True)
class RunTimeline:
    """A recorded run, and what the simulator predicts for it."""

    run: RecordedRun
    predicted: Result

    @property
    def title(self) -> str:
        """What was run."""
        return f"{self.run.options['method']} on {self.run.graph['name']}, {self.run.workers} workers, measured"

    def data(self) -> tuple[TimelineData, TimelineData]:
        """One steady iteration, measured and predicted, in one unit. Raises FileError."""
        from gcnsim.report.figures.runs import in_one_unit, timeline_of_result, timeline_of_run

        return in_one_unit(timeline_of_run(self.run), timeline_of_result(self.predicted))

    def write_measured(self, path: str | Path, *, detail: bool = False) -> None:
        """Write the recorded run for Perfetto, with the tracks of a simulated one. Raises FileError."""
        from gcnsim.report.figures.runs import facts_of_run
        from gcnsim.timeline.run_perfetto import write_run_trace

        spans = self.run.timeline()
        write_run_trace(path, spans, self.title, facts_of_run(self.run, spans), detail=detail)


def setting_run(progress: Progress = lambda _: None, **options: Any) -> Result:
    """The simulated run of the one setting that these options of `what_if` name. Raises GcnsimError."""
    found = settings(**options)
    if len(found) != 1:
        raise ScenarioError(f"timeline: {len(found)} settings are asked for; allowed: one method at one bandwidth")
    studies = StudyCache(found[0], cores())
    progress("simulating one setting")
    studies.prepare([], found)
    result: Result = studies.estimate(found[0]).result
    return result


def run_timeline(
    folder: str | Path, calibration: str | Path | None = None, progress: Progress = lambda _: None
) -> RunTimeline:
    """The recorded run in a folder, and its prediction; calibration: the record to use, None for the catalogue.

    Raises GcnsimError with one line: the field, its value, and what is allowed.
    """
    from gcnsim.evidence import refuse_other_trace, scenario_of
    from gcnsim.simulation import study
    from gcnsim.sources import open_source

    progress("reading the run")
    run = read_recorded_run(folder)
    run.timeline()
    scenario = scenario_of(run, None if calibration is None else str(calibration))
    refuse_other_trace(run, scenario)
    progress("predicting the run")
    return RunTimeline(run, study(scenario, open_source(scenario)))
