"""A run of three iterations by hand: two workers compute, and send rows to each other."""

from __future__ import annotations

import numpy as np

from gcnsim.core.ids import IntArray
from gcnsim.timeline import KIND_CODE, Direction, OpKind, Timeline

MS = 1_000_000_000
"""Picoseconds."""

ENDS = (10, 30, 50)
"""Milliseconds at which the iterations end: the first is shorter."""


def small_run() -> tuple[Timeline, IntArray]:
    """The spans and the ends of the iterations; worker 0 sends 1000, 2000 and 4000 bytes, worker 1 500 in each."""
    rows = []
    for iteration, end in enumerate(ENDS):
        start = ENDS[iteration - 1] if iteration else 0
        sent = 1000.0 * 2**iteration
        rows += [
            (OpKind.AGGREGATE, 0, 0, iteration, 1, -1, start, start + 4, 0.0),
            (OpKind.AGGREGATE, 1, 2, iteration, 1, -1, start, start + 3, 0.0),
            (OpKind.WIRE, 0, 1, iteration, 1, 1, start + 4, end, sent),
            (OpKind.WIRE, 1, 3, iteration, 1, 0, start + 5, end, 500.0),
        ]
    columns = list(zip(*rows, strict=True))
    direction = np.full(len(rows), Direction.FORWARD, np.uint8)
    return Timeline(
        kind=np.array([KIND_CODE[kind] for kind in columns[0]], np.uint8),
        worker=np.array(columns[1], np.int32),
        stream=np.array(columns[2], np.int32),
        iteration=np.array(columns[3], np.int32),
        layer=np.array(columns[4], np.int32),
        direction=direction,
        peer=np.array(columns[5], np.int32),
        start_ps=np.array(columns[6], np.int64) * MS,
        end_ps=np.array(columns[7], np.int64) * MS,
        nbytes=np.array(columns[8]),
        streams=("gpu", "f.tx1", "gpu", "f.tx0"),
    ), np.array(ENDS, np.int64) * MS
