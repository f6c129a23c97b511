"""What the recorder says of a GPU's time is what a clock says that waits for the GPU."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gcnsim.core.streams import stream
from gcnsim.timeline import Intervals, OpKind
from runtime.options import Options
from runtime.record import Recorder
from tests.runtime.conftest import small_graph
from tests.runtime.cuda.cuda_jobs import ALONE, followed

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

ITERATIONS, WARM = 12, 4


def test_a_span_is_as_long_as_the_gpu_works() -> None:
    sleep: Any = torch.cuda._sleep
    recorder = Recorder(0, cuda=True)
    sleep(1000)
    torch.cuda.synchronize()
    begin = time.perf_counter()
    marks = [recorder.mark_compute()]
    sleep(40_000_000)  # about 20 ms
    marks.append(recorder.mark_compute())
    launched = time.perf_counter() - begin
    recorder.add(OpKind.AGGREGATE, "compute", 0, *marks)
    recorder.end_iteration()
    torch.cuda.synchronize()
    took = time.perf_counter() - begin
    span = next(iter(recorder.timeline(round(begin * 1e9))))
    assert launched < took / 2, "the host runs ahead"
    assert span.end_s - span.start_s == pytest.approx(took, rel=0.05)
    assert 0.0 <= span.start_s <= 0.1 * took


def test_the_spans_of_the_compute_stream_fill_the_time_and_do_not_overlap(tmp_path: Path) -> None:
    graph = small_graph(20_000, 200_000, 3)
    features = stream(3, "times").standard_normal((graph.nodes, 128)).astype(np.float32)
    np.savez(tmp_path / "graph.npz", indptr=graph.indptr, indices=graph.indices, x=features)
    found = followed(
        ALONE,
        Options(
            graph=str(tmp_path / "graph.npz"),
            random_classes=5,
            workers=1,
            iterations=ITERATIONS,
            layers=3,
            hidden=512,
            partition_method="random",
            device="cuda",
        ),
    )
    timeline = found.timeline
    number = timeline.streams.index("compute")
    chosen = (timeline.stream == number) & (timeline.iteration >= WARM)
    starts, ends = timeline.start_ps[chosen], timeline.end_ps[chosen]
    wall = found.ends[-1] - found.ends[WARM - 1]
    covered = Intervals.of(starts, ends).length
    assert 0.6 * wall <= covered <= 1.02 * wall
    assert float((ends - starts).sum()) <= 1.02 * covered
