"""What recording one span costs: two marks and one `add`, the change into columns included."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from statistics import median

from benchmarks.measuring import Figure, report
from gcnsim.timeline import Direction, OpKind
from runtime.record import Recorder

SPANS, PER_ITERATION, ROUNDS = 200_000, 100, 5
LIMIT_NS = 2000.0


def ns_per_span(enabled: bool = True) -> float:
    """Nanoseconds that one span takes of the thread that records it, over 200,000 spans."""
    recorder = Recorder(0, enabled=enabled)
    begun = time.perf_counter_ns()
    for i in range(SPANS):
        start = recorder.mark()
        end = recorder.mark()
        recorder.add(OpKind.WIRE, "f.tx1", i, start, end, layer=1, direction=Direction.FORWARD, peer=1, nbytes=4096.0)
        if i % PER_ITERATION == 0:
            recorder.end_iteration()
    spent = time.perf_counter_ns() - begun
    if len(recorder) != SPANS * enabled or len(recorder.timeline(0)) != SPANS * enabled:
        raise RuntimeError(f"{len(recorder):,} spans were kept")
    return spent / SPANS


def main(rounds: Sequence[int] = range(ROUNDS)) -> int:
    """Print the figures; the exit code is 1 when the limit is missed."""
    figures = [
        Figure("recorded span, median", median(ns_per_span() for _ in rounds), "ns", f"<= {LIMIT_NS}"),
        Figure("span while recording is off, median", median(ns_per_span(enabled=False) for _ in rounds), "ns"),
    ]
    return report("recorder", f"what does a span cost its thread? ({SPANS:,} spans, {ROUNDS} rounds)", figures)


if __name__ == "__main__":
    sys.exit(main())
