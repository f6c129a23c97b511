"""Rows packed to be sent, and received gradients added to rows."""

from __future__ import annotations

import numpy as np
import torch

from gcnsim.core.streams import stream
from runtime.microbench.bench import SEED, Bench, Call
from runtime.microbench.inputs import made_rows


def measure(bench: Bench) -> None:
    """`pack` and `scatter`. params: rows moved, width, source (rows they are chosen from)."""
    tiny = [(32, 64, 16)]
    quick = [(100, 1_000, 128), (1_000, 10_000, 128), (10_000, 40_000, 128), (10_000, 40_000, 16)]
    sizes = [(16, 1_000), (200, 1_000), (1_000, 10_000), (8_000, 10_000), (40_000, 200_000)]
    if bench.on_gpu:
        # Fewer rows take no longer than the start of their kernel.
        quick = [(1_000, 10_000, 128), (40_000, 200_000, 128), (400_000, 800_000, 128), (400_000, 800_000, 256)]
        sizes = [(1_000, 10_000), (40_000, 200_000), (400_000, 800_000)]
    full = [(rows, source, width) for rows, source in sizes for width in (16, 64, 128, 512)]
    for rows, source, width in bench.budget.of(tiny, quick, full):
        params = {"rows": rows, "source": source, "width": width}
        bench.time("pack", params, _pack(bench, rows, source, width))
        bench.time("scatter", params, _scatter(bench, rows, source, width))


def _index(bench: Bench, rows: int, source: int) -> torch.Tensor:
    """Ascending, none twice: as a send set."""
    chosen = np.sort(stream(SEED, "index", rows, source).permutation(source)[:rows])
    return torch.from_numpy(chosen).to(bench.device)


def _pack(bench: Bench, rows: int, source: int, width: int) -> Call:
    index, h = _index(bench, rows, source), made_rows(source, width, bench.device, "pack")
    count = bench.sets(8 * rows * width)
    inputs = [h.clone() for _ in range(min(count, bench.sets(4 * source * width)))]
    results = [torch.zeros(rows, width, device=bench.device) for _ in range(count)]

    def call(i: int) -> None:
        torch.index_select(inputs[i % len(inputs)], 0, index, out=results[i % count])

    return call


def _scatter(bench: Bench, rows: int, source: int, width: int) -> Call:
    index, grad = _index(bench, rows, source), made_rows(source, width, bench.device, "scatter")
    count = bench.sets(8 * rows * width)
    targets = [grad.clone() for _ in range(min(count, bench.sets(4 * source * width)))]
    received = [torch.zeros(rows, width, device=bench.device) for _ in range(count)]

    def call(i: int) -> None:
        targets[i % len(targets)].index_add_(0, index, received[i % count])

    return call
