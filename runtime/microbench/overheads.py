"""What costs time however small the work: starting a kernel."""

from __future__ import annotations

import torch

from runtime.microbench.bench import Bench
from runtime.microbench.inputs import Shape, made_rows, matrix_of


def measure(bench: Bench) -> None:
    """`launch`, a product of one entry. params: none."""
    matrix = matrix_of(Shape(1, 1, 1).made(), bench.device, bench.request.aggregator)
    one, result = made_rows(1, 1, bench.device, "one"), torch.zeros(1, 1, device=bench.device)
    bench.time("launch", {}, lambda _: matrix.multiply(one, result))
