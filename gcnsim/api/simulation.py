"""Simulates one scenario and writes its run.

Result files are written completely or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsim.core.atomic import atomic_write
from gcnsim.core.clock import counted
from gcnsim.core.errors import FileError
from gcnsim.core.processes import cores
from gcnsim.engine import link_rates, timeline
from gcnsim.planning.provenance import provenance
from gcnsim.planning.rows import baseline_s, links_of, memory_report, row_of, run_length
from gcnsim.planning.study import Studies
from gcnsim.results import SimulationReport
from gcnsim.scenario import from_mapping, load_scenario, read_injected, setting_text, to_mapping
from gcnsim.scenario.machine import refuse_no_effect, resolve_machine
from gcnsim.simulation import Result, answering, balanced_parts, refuse_undrawn, worker_parts
from gcnsim.simulation.assumed import refuse_unused_figures

if TYPE_CHECKING:
    from gcnsim.timeline.run_perfetto import TracedRun


def write_json(path: str | Path, document: Mapping[str, Any]) -> None:
    """Write plain data as JSON. Raises FileError."""
    with atomic_write(Path(path), text=True) as file:
        file.write(json.dumps(dict(document), indent=2, allow_nan=False) + "\n")


def made(folder: str | Path) -> Path:
    """`folder`, created if needed. Raises FileError."""
    target = Path(folder)
    try:
        target.mkdir(exist_ok=True)
    except OSError as error:
        raise FileError(f"{target}: cannot be made: {error.strerror}") from None
    return target


WRITTEN = ("spans.parquet", "result.json")
"""The files that `write_result` writes."""


@dataclass(frozen=True, slots=True, repr=False)
class Simulation:
    """One simulated scenario: `str` gives what the command line prints, `payload` the JSON.

    told: the results as dataclasses. result: the simulated run, with every operation.
    """

    told: SimulationReport
    result: Result

    @property
    def payload(self) -> dict[str, Any]:
        """Plain data in the shape of the JSON schema `gcnsim.result/1`."""
        return self.told.payload()

    def __repr__(self) -> str:
        """What was simulated, its iteration time and what limits it."""
        from gcnsim.report.result import render_short_result

        return render_short_result(self.told)

    def __str__(self) -> str:
        """The text that the command line prints."""
        from gcnsim.report.result import render_result

        return render_result(self.told)

    def to_html(self, path: str | Path) -> None:
        """Write the result as one offline page: where the time goes, one steady iteration, links, memory.

        Raises FileError.
        """
        from gcnsim.report.page.sections import write_simulation

        write_simulation(path, self.told, self.result)


def simulate(
    scenario: str | Path | Mapping[str, Any],
    overrides: Sequence[str] = (),
    inject: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Simulation:
    """Simulate one scenario, given as a YAML file or as its content.

    overrides: `PATH=VALUE` settings that replace fields. inject: faults, `KIND:name=value,...`. progress: called with
    a line of text. Times are in seconds, sizes in bytes.

    Raises GcnsimError with one line: the field, its value, and what is allowed.

    >>> import gcnsim
    >>> scenario = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2}, "method": {"name": "pipegcn"}}
    >>> gcnsim.simulate(scenario).payload["result"]["method"]
    'pipegcn'
    """
    if isinstance(scenario, Mapping):
        spec = from_mapping(dict(scenario), "scenario", overrides)
    else:
        spec = load_scenario(scenario, overrides)
    refuse_no_effect([spec.cluster])
    spec = replace(spec, faults=(*spec.faults, *read_injected(inject)))
    refuse_undrawn([spec])
    refuse_unused_figures([resolve_machine(spec.cluster)])
    answering(spec)
    studies = Studies(spec, cores())
    studies.prepare([], [spec], counted(progress, f"simulating {spec.name}"))
    progress("full-graph training on the same machine")
    estimate = studies.estimate(spec)
    baseline = baseline_s(studies, spec)
    result = estimate.result
    parts = worker_parts(result.run, result.warm_up)
    workers = balanced_parts(parts, result.metrics.worker, result.metrics.iteration_s)
    report = SimulationReport(
        scenario=to_mapping(spec),
        provenance=provenance(studies, spec, [estimate]),
        result=row_of(estimate, baseline, studies.accesses.name),
        links=links_of(result),
        slowest=result.metrics.worker,
        memory=memory_report(studies, spec),
        workers=tuple(workers),
        run=run_length(result),
    )
    return Simulation(report, result)


def write_timeline(result: Result, path: str | Path, *, detail: bool = False) -> None:
    """Write a run as Chrome trace JSON, for Perfetto or chrome://tracing; detail: a track for every stream.

    Raises FileError.
    """
    from gcnsim.timeline.run_perfetto import write_run_trace

    title = f"{result.scenario.name}: {setting_text(result.scenario.method)}"
    write_run_trace(path, title, traced(result), detail=detail)


def traced(result: Result, name: str = "") -> TracedRun:
    """A simulated run for a trace file; name: before the names of its tracks."""
    from gcnsim.timeline.run_perfetto import RunFacts, TracedRun

    run = result.run
    facts = RunFacts(run.ends[:, list(run.schedule.ends)].max(axis=1), result.warm_up, link_rates(run))
    return TracedRun(timeline(run), facts, name)


def write_result(simulation: Simulation, folder: str | Path) -> None:
    """Write result.json and spans.parquet into `folder`, which is created if needed. Raises FileError."""
    from gcnsim.timeline.span import write_spans

    target = made(folder)
    about = {
        key: str(getattr(simulation.told.provenance, key)) for key in ("version", "seed", "scenario_hash", "engine")
    }
    spans, result = WRITTEN
    write_spans(target / spans, timeline(simulation.result.run), about)
    write_json(target / result, simulation.payload)
