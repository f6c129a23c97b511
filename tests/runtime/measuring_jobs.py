"""What ranks of a test do to be compared with parts that are measured alone: train, and tell ops and counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from gcnsim.timeline import Direction, OpKind
from runtime.launch import Place
from runtime.measuring.part import ANSWERED, iteration_counts
from runtime.options import Options
from runtime.train.reduce import LocalSums
from tests.runtime.jobs import ready_at

Key: TypeAlias = tuple[int, OpKind, int, Direction]
"""An iteration, and an op's kind, layer and direction in it."""


@dataclass(frozen=True)
class Trained:
    """One rank's run. counts: by iteration, as a measurement has them."""

    keys: frozenset[Key]
    counts: tuple[tuple[int, ...], ...]


def trained(place: Place, options: Options) -> Trained:
    """Train `options.iterations` with the other ranks."""
    ready = ready_at(place, options)
    counts = []
    for t in range(options.iterations):
        _, drawn = ready.trainer.iteration(t, LocalSums())
        counts.append(iteration_counts(drawn))
        ready.recorder.end_iteration()
    ready.method.drain()
    spans = ready.recorder.timeline(0)
    keys = {(span.iteration, span.kind, span.layer, span.direction) for span in spans if span.kind not in ANSWERED}
    ready.method.close()
    return Trained(frozenset(keys), tuple(counts))
