"""About how long a run of a survey takes and how much it leaves, before any was trained. For planning alone.

Sizes follow from what is kept (docs/files.md); seconds from multiplications and bytes over the rates below, which are a
machine's order of magnitude and no law: the survey itself goes by what its runs took.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp
from typing import Final

from runtime.options import Options
from runtime.survey.rule import GeneratedGraph

VALUE: Final = 4
"""Bytes of a float and of a node's number."""


@dataclass(frozen=True, slots=True)
class Rates:
    """start_s: time of a run without its iterations. flops_per_s: of each worker. sent_bytes_per_s: rows, likewise.

    profile_s: of micro-benchmarks, by their level.
    """

    start_s: float
    flops_per_s: float
    sent_bytes_per_s: float
    profile_s: dict[str, float]


RATES: Final = {
    # A survey of two workers on two cores of an AMD EPYC, and profiles there.
    "cpu": Rates(1.3, 1e10, 5e8, {"tiny": 10.0, "quick": 75.0, "full": 540.0}),
    # Assumed: no GPU has been surveyed. Slow on purpose, nearest to a T4 whose rows go through the host.
    "cuda": Rates(4.0, 4e11, 5e8, {"tiny": 10.0, "quick": 60.0, "full": 300.0}),
}

PROFILE_BYTES: Final = {"tiny": 1e5, "quick": 4e5, "full": 1e6}
SPAN_BYTES: Final = 900.0
"""Of a worker's iteration in the timeline, measured."""

STEPS: Final = 3
"""A forward pass and the two products of a backward one for each of its own."""


def seconds(options: Options, made: GeneratedGraph, workers: int, cores: int) -> float:
    """What a run takes on `workers` of the options' device. cores: of the machine, which workers on CPUs share."""
    rates, nodes = RATES[options.device], made.nodes[options.device]
    widths = _widths(options, made)
    dense = sum(into * out for into, out in pairwise(widths))
    sides = 2 if options.model == "graphsage" else 1
    flops = 2.0 * STEPS * nodes * (made.degree * sum(widths[:-1]) + sides * dense)
    at_once = workers if options.device == "cuda" else min(workers, cores)
    share = float(str(options.knobs.get("epsilon", 1.0)))
    sent = 2.0 * VALUE * share * boundary(made, options.device, workers) * sum(widths[:-1])
    step = flops / (rates.flops_per_s * at_once) + sent / (rates.sent_bytes_per_s * workers)
    return rates.start_s + options.iterations * step


def nbytes(options: Options, made: GeneratedGraph, workers: int) -> float:
    """What a run's folder holds: access trace, spans, weights, and the norms that graphs were drawn with."""
    widths, beyond = _widths(options, made), boundary(made, options.device, workers)
    trace = beyond * (2 * VALUE + options.iterations / 8)
    weights = VALUE * sum(into * out for into, out in pairwise(widths))
    norms = 2 * VALUE * made.nodes[options.device] if "epsilon" in options.knobs else 0
    return trace + weights + norms + SPAN_BYTES * options.iterations * workers + 1e4


def graph_bytes(made: GeneratedGraph, device: str) -> float:
    """Of the file of a made-up graph."""
    return made.nodes[device] * (VALUE * made.degree + 2 * VALUE)


def boundary(made: GeneratedGraph, device: str, workers: int) -> float:
    """Boundary nodes of all workers together: far edges end at any worker, near ones within their own."""
    away = made.degree * made.far / workers
    return made.nodes[device] * (workers - 1) * (1.0 - exp(-away))


def _widths(options: Options, made: GeneratedGraph) -> list[int]:
    return [made.features, *[options.hidden] * (options.layers - 1), made.classes]
