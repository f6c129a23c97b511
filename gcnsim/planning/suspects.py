"""What may make a measured time differ from the predicted one by more than the assumptions allow, and what to measure.

Parts of the iteration come first where a recorded run or a trace has them: they are measured. Then the assumptions
that move the predicted time furthest towards the measured one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import numpy as np

from gcnsim.machine import resolve_machine
from gcnsim.planning.candidate import Candidate
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import Suspect
from gcnsim.uncertainty import assumptions_of

if TYPE_CHECKING:
    from gcnsim.ids import Seconds
    from gcnsim.runs.measured import Measured

MOST: Final = 3
"""Suspects that are named: whoever measured three things asks again."""

LEAST: Final = 0.02
"""A suspect changes the time by at least 2 %."""

PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "compute": ("compute", "python -m runtime.profile --device cuda, then gcnsim calibrate"),
    "exposed_comm": (
        "exposed communication",
        "iperf3 between two servers, nvbandwidth within one",
    ),
    "exposed_other": (
        "sampling, optimizer and the rest",
        "trace it by the PyTorch profiler, then gcnsim compare",
    ),
}

FIGURES: Final[Mapping[str, str]] = {
    "device": "python -m runtime.profile --device cuda, then gcnsim calibrate",
    "host": "python -m runtime.profile on one server, then gcnsim calibrate",
    "copies": "nvbandwidth on one server, then --set cluster.pcie",
    "network": "iperf3 with one connection between two servers, then --bandwidth",
    "nvlink": "nvbandwidth on one server, then --set cluster.nvlink",
    "host-memory": "copies of all GPUs of a server at once, by nvbandwidth",
    "partition": "partition the graph as the run did: --graph with partition.file",
    "workload": "record the run's accesses, then --trace",
}
"""What measures an assumption, by what it is a figure of."""

ELSE: Final = "measure it, then give it by cluster.figures"


def suspects(studies: StudyCache, row: Candidate, measured_s: Seconds, run: Measured | None) -> tuple[Suspect, ...]:
    """At most MOST suspects for a time of `measured_s`, the likeliest first.

    run: the recorded run or trace of that time, None for a time as typed.
    """
    ratio = measured_s / row.iteration_s
    parts = [] if run is None else sorted(_parts(row, run), key=lambda part: -abs(part.reaches - 1.0))
    figures = sorted(_figures(studies, row, ratio), key=lambda figure: -abs(np.log(figure.reaches)))
    towards = [part for part in parts if (part.reaches > 1.0) == (ratio > 1.0) and abs(part.reaches - 1.0) > LEAST]
    return tuple([*towards, *figures][:MOST])


def _parts(row: Candidate, run: Measured) -> Iterator[Suspect]:
    """The iteration with one part as measured, over the predicted one."""
    for name, (words, measure) in PARTS.items():
        predicted = float(getattr(row.result.metrics, f"{name}_s"))
        reaches = 1.0 + (run.phases[name] - predicted) / row.iteration_s
        if reaches > 0:
            yield Suspect(words, reaches, measure)


def _figures(studies: StudyCache, row: Candidate, ratio: float) -> Iterator[Suspect]:
    """The assumptions that alone move the time towards the measured one, each by its better end."""
    machine = resolve_machine(row.scenario.cluster)
    shared = {each.name: each.shared for each in assumptions_of(machine, batches=row.scenario.method.mini_batches)}
    left_open = studies.factors(row.scenario)
    for name, ends in left_open.alone.items():
        times = left_open.scaled(row.iteration_s, np.array(ends)) / row.iteration_s
        reaches = float(times.max() if ratio > 1.0 else times.min())
        if abs(reaches - 1.0) > LEAST and (reaches > 1.0) == (ratio > 1.0):
            family = shared.get(name, name).partition(".")[0]
            yield Suspect(name, reaches, FIGURES.get(family, ELSE))
