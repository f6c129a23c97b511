"""Iterations: a comparison of two, and the timeline of a what-if or of a recorded run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from gcnsim.api.question import settings
from gcnsim.api.simulation import simulate, traced
from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.processes import cores
from gcnsim.planning.rows import row_of
from gcnsim.planning.study import Studies
from gcnsim.planning.what_if import Progress
from gcnsim.records.recorded_run import RecordedRun, read_recorded_run
from gcnsim.results import Row
from gcnsim.simulation import Result

if TYPE_CHECKING:
    from gcnsim.evidence.iteration_report import IterationReport
    from gcnsim.report.figures.timeline import TimelineData

Source: TypeAlias = str | Path | Mapping[str, Any]
"""A scenario (YAML, or its content as a mapping), a result or a row of a what-if (JSON), the folder of a result or of a
recorded run, a trace of the PyTorch profiler (.json, .json.gz) or a folder of them, one per rank."""

SCENARIOS = (".yaml", ".yml")
RESULT = "result.json"
KINDS = (
    "a scenario (.yaml), JSON of simulate or what-if, the folder of a result or of a recorded run, a trace of the "
    "PyTorch profiler or a folder of them"
)


def compare(
    a: Source, b: Source, *, names: str | Path | None = None, progress: Progress = lambda _: None
) -> dict[str, Any]:
    """Compare two iterations, part by part: plain data in the shape of the JSON schema `gcnsim.compare/1`.

    a, b: each a scenario, a result, a row of a what-if, a recorded run or a profiler's trace. names: YAML file that
    assigns names in a profiler's trace to parts. Seconds and bytes are per iteration. Raises GcnsimError with one line:
    the field, its value, and what is allowed.
    """
    from gcnsim.evidence.difference import compare as beside

    if names is not None and not (_is_trace(a) or _is_trace(b)):
        raise ScenarioError("--names: neither A nor B is a profiler's trace; allowed: with one that is")
    return beside(*(_side(source, names, progress) for source in (a, b)))


def render_comparison(found: Mapping[str, Any]) -> str:
    """The text that the command line prints."""
    from gcnsim.report.comparison import render_comparison as render

    return render(found)


def write_comparison(path: str | Path, found: Mapping[str, Any]) -> None:
    """Write a comparison as one offline page. Raises FileError."""
    from gcnsim.report.page.sections import write_comparison_page

    write_comparison_page(path, found)


def _is_trace(source: Source) -> bool:
    from gcnsim.records.trace_events import is_profiler_trace

    return not isinstance(source, Mapping) and is_profiler_trace(source)


def _side(source: Source, names: str | Path | None, progress: Progress) -> IterationReport:
    from gcnsim.evidence.difference import read_answer
    from gcnsim.evidence.iteration_report import report_of_profile, report_of_result, report_of_run

    if not isinstance(source, Mapping):
        if not str(source).strip():
            raise FileError(f"{str(source)!r}: is not a path; allowed: {KINDS}")
        path = Path(source)
        if _is_trace(source):
            return report_of_profile(path, str(source), names, progress)
        if (path / RESULT).is_file():
            return read_answer(str(path / RESULT), str(source))
        if path.is_dir():
            return report_of_run(path, str(source))
        if not path.exists() and not Path(str(source).rpartition("#")[0]).is_file():
            raise FileError(f"{source}: does not exist; allowed: {KINDS}")
        if path.suffix not in SCENARIOS:
            return read_answer(str(source), str(source))
    label = "scenario" if isinstance(source, Mapping) else str(source)
    progress(f"simulating {label}")
    return report_of_result(simulate(source).told, label, "scenario")


@dataclass(frozen=True, slots=True)
class RunTimeline:
    """A recorded run, and what the simulator predicts for it; None where it cannot, and why not."""

    run: RecordedRun
    predicted: Result | None
    reason: str = ""

    @property
    def title(self) -> str:
        """What was run."""
        return f"{self.run.options['method']} on {self.run.graph['name']}, {self.run.workers} workers, measured"

    def data(self, only: int | None = None) -> dict[str, TimelineData]:
        """One steady iteration, `measured` and, where it was, `predicted`, in one unit; only: of one worker.

        Raises GcnsimError.
        """
        from gcnsim.report.figures.timeline import in_one_unit, timeline_of_result, timeline_of_run

        measured = timeline_of_run(self.run, only)
        if self.predicted is None:
            return {"measured": measured}
        pair = in_one_unit(measured, timeline_of_result(self.predicted, only=only))
        return dict(zip(("measured", "predicted"), pair, strict=True))

    def times(self) -> dict[str, float]:
        """Seconds of an iteration, by the names of `data`."""
        predicted = {} if self.predicted is None else {"predicted": self.predicted.metrics.iteration_s}
        return {"measured": self.run.iteration_s, **predicted}

    def write(self, path: str | Path, *, detail: bool = False) -> None:
        """Write the recorded run and its prediction for Perfetto, aligned, with the difference of each iteration.

        Raises FileError.
        """
        from gcnsim.timeline.run_perfetto import TracedRun, write_both, write_run_trace

        spans = self.run.timeline()
        measured = TracedRun(spans, self.run.facts(spans), "measured")
        if self.predicted is None:
            write_run_trace(path, self.title, measured, detail=detail)
            return
        write_both(path, self.title, measured, traced(self.predicted, "predicted"), detail=detail)


class SettingRun(NamedTuple):
    """The simulated run of one setting, and its row with the interval that draws give it."""

    result: Result
    row: Row


def setting_run(progress: Progress = lambda _: None, **options: Any) -> SettingRun:
    """The simulated run of the one setting that these options of `what_if` name. Raises GcnsimError."""
    found = settings(**options)
    if len(found) != 1:
        raise ScenarioError(f"timeline: {len(found)} settings are asked for; allowed: one method at one bandwidth")
    studies = Studies(found[0], cores())
    progress("simulating one setting")
    studies.prepare([], found)
    estimate = studies.estimate(found[0])
    return SettingRun(estimate.result, row_of(estimate, None, studies.accesses.name))


def run_timeline(
    folder: str | Path,
    calibration: str | Path | None = None,
    progress: Progress = lambda _: None,
    measured_compute: Sequence[str | Path] = (),
) -> RunTimeline:
    """The recorded run in a folder, and its prediction; calibration: the record to use, None for the catalogue.

    measured_compute: files of runtime.measure, or folders of them; the one of the run's graph and parts is used. A run
    on cores without one is not predicted. Raises GcnsimError with one line: the field, its value, and what is allowed.
    """
    from gcnsim.evidence.recorded_run import NotMeasuredError, refuse_other_trace, refuse_unmeasured, scenario_of
    from gcnsim.records.compute_reading import measured_compute as read_measured
    from gcnsim.records.compute_reading import measured_files
    from gcnsim.simulation import simulate_scenario
    from gcnsim.simulation.open_source import open_source

    progress("reading the run")
    run = read_recorded_run(folder)
    run.timeline()
    measured = [read_measured(path) for path in measured_files(measured_compute)]
    try:
        refuse_unmeasured([run], measured)
    except NotMeasuredError as error:
        return RunTimeline(run, None, str(error))
    scenario = scenario_of(run, None if calibration is None else str(calibration), measured)
    refuse_other_trace(run, scenario)
    progress("predicting the run")
    return RunTimeline(run, simulate_scenario(scenario, open_source(scenario)))
