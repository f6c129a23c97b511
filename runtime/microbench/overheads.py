"""What costs time however small the work: starting a kernel, a backward pass, a span."""

from __future__ import annotations

import torch

from gcnsim.timeline import Direction, OpKind
from runtime.microbench.bench import Bench
from runtime.microbench.inputs import Shape, made_rows, matrix_of
from runtime.microbench.maps import backward
from runtime.record import Recorder


def measure(bench: Bench) -> None:
    """`launch` (a product of one entry), `launch_backward`, `span`. params: none."""
    matrix = matrix_of(Shape(1, 1, 1).made(), bench.device, bench.request.aggregator)
    one, result = made_rows(1, 1, bench.device, "one"), torch.zeros(1, 1, device=bench.device)
    bench.time("launch", {}, lambda _: matrix.multiply(one, result))
    bench.time("launch_backward", {}, backward(torch.relu, [one.clone().requires_grad_()]))
    _span(bench)


def _span(bench: Bench) -> None:
    recorder = Recorder(0, cuda=bench.device.type == "cuda")

    def call(i: int) -> None:
        start, end = recorder.mark_compute(), recorder.mark_compute()
        recorder.add(OpKind.WIRE, "f.tx1", i, start, end, layer=1, direction=Direction.FORWARD, peer=1, nbytes=4096.0)
        if i % 100 == 0:
            recorder.end_iteration()

    bench.time("span", {}, call)
