"""A run that the PyTorch profiler recorded as a side: the parts of its iterations by the same words as any other.

Its traces say neither which method trained nor what its links carry, so of its setting only the GPUs are compared.
"""

from __future__ import annotations

from pathlib import Path

from gcnsim.breakdown import exposed_s, other_s
from gcnsim.comparison.iteration_report import IterationReport
from gcnsim.errors import plural
from gcnsim.evidence.facts import facts_of_profile
from gcnsim.runs.measured import interval_of_mean
from gcnsim.timeline import PS_PER_S, Intervals, Phase
from gcnsim.torch_profiler.names import Names
from gcnsim.torch_profiler.profiled_run import ProfiledRun, read_profiled_run
from gcnsim.torch_profiler.trace_events import Progress


def report_of_profile(
    path: str | Path, label: str, names: str | Path | Names | None = None, progress: Progress = lambda _: None
) -> IterationReport:
    """The side of the trace, or the folder of traces, at `path`; names: what the names in them mean (a YAML file).

    Raises FileError, naming the file and what is wrong.
    """
    run = read_profiled_run(path, names, progress)
    own = run.parts[run.slowest]
    low, high = interval_of_mean(run.iterations)
    return IterationReport(
        label=label,
        kind="trace",
        setting=_setting(run),
        iteration_s=run.iteration_s,
        whole={
            "compute_s": own.compute_s,
            "exposed_comm_s": exposed_s(own),
            "exposed_other_s": other_s(own),
        },
        beneath={"hidden_comm_s": own.hidden_comm_s, "sampling_s": _sampling_s(run)},
        links={},
        workers=run.parts,
        slowest=run.slowest,
        low_s=low,
        high_s=high,
        spread_s=run.spread_s,
        facts=facts_of_profile(run.workers, run.devices, run.path),
        notes=run.notes,
    )


def _setting(run: ProfiledRun) -> str:
    workers = plural(run.workers, "GPU" if any(run.devices) else "worker")
    return f"{workers}, {plural(run.iterations.size, 'iteration')}, measured by the PyTorch profiler"


def _sampling_s(run: ProfiledRun) -> float:
    """Seconds per iteration in which the slowest worker samples, exposed or not."""
    spans = run.timeline
    mask = (spans.worker == run.slowest) & spans.of_phase(Phase.SAMPLING)
    sampling = Intervals.of(spans.start_ps[mask], spans.end_ps[mask])
    return sampling.length / (run.iterations.size * PS_PER_S)
