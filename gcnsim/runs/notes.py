"""What a reader must know of recorded runs before trusting what is made of them, a line each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from gcnsim.errors import plural
from gcnsim.runs.recorded_run import TRACE, RecordedRun

TIMED_BY: Final = ("gcnsim", "torch")
"""Programs whose versions change how long an iteration takes."""


def version_notes(run: RecordedRun, versions: Mapping[str, str], done: str) -> Iterator[str]:
    """Versions that differ from those that something was done with, `calibrated` or `measured`."""
    for name in TIMED_BY:
        if run.versions.get(name) != versions.get(name):
            yield f"{run.path}: {name} {run.versions.get(name)}, {done} with {versions.get(name)}"


def link_notes(run: RecordedRun) -> Iterator[str]:
    """Links that were no links: a limiter in the exchange slows what a worker sends, and no other flow shares it."""
    if run.emulation is not None and run.emulation["limiter"] == "exchange":
        yield f"{run.path}: its links were paced in the exchange (limiter exchange), which the simulator does not model"


def session_notes(run: RecordedRun) -> Iterator[str]:
    """Emulated workers that shared cores in sessions of their own, as they did in versions of before."""
    made = run.emulation
    if made is not None and run.workers > made["cores"] and not made.get("one_session"):
        yield (
            f"{run.path}: each of its {run.workers} workers on {made['cores']} cores was in a session of its own, "
            "among which Linux shares cores first: it waited longer at a time than the simulator has it"
        )


def quota_notes(run: RecordedRun) -> Iterator[str]:
    """A container that granted the workers less CPU time than their threads ask for: they were stopped now and then."""
    quota = run.hardware.get("quota")
    beside = run.workers if run.cluster is None else run.cluster.workers_per_host
    if quota is not None and beside * run.threads > quota:
        yield (
            f"{run.path}: {beside} workers of {plural(run.threads, 'thread')} had the time of {quota:g} CPUs (a "
            "container's quota), so they were stopped for a part of it: its times are not those of whole cores"
        )


def trace_notes(run: RecordedRun) -> Iterator[str]:
    """A trace that is not beside the run."""
    if run.trace != run.path / TRACE:
        yield f"{run.path}: has no {TRACE} beside it; read from where it was saved, {run.trace}"


def first_repeat(runs: Sequence[RecordedRun]) -> tuple[RecordedRun, RecordedRun] | None:
    """The first run that is there twice, and its repeat; None where all differ."""
    seen: dict[str, RecordedRun] = {}
    for run in runs:
        if run.sha256 in seen:
            return seen[run.sha256], run
        seen[run.sha256] = run
    return None
