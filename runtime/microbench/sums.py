"""Sums over neighbours, forward and backward, by what the matrix is like and by the width of the rows."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import torch

from runtime.aggregate import Matrix
from runtime.microbench.bench import Bench, Call
from runtime.microbench.inputs import Shape, made_rows, matrix_of, prepared

MOST_WORK = 1 << 27
"""Entries times width of one call, at most: about a fifth of a second on one core."""

MOST_WORK_ON_GPU = 1 << 31
"""The same on a GPU: some milliseconds."""


def launch(bench: Bench) -> None:
    """`launch`, a product of one entry: what starting a kernel costs, however small its work. params: none."""
    one, result = made_rows(1, 1, bench.device, "one"), torch.zeros(1, 1, device=bench.device)
    matrix = matrix_of(Shape(1, 1, 1).made(), bench.device, bench.request.aggregator)
    bench.time("launch", {}, lambda _: matrix.multiply(one, result))


def measure(bench: Bench) -> None:
    """`launch`, `spmm` and `spmm_t`.

    params: those of `facts_of`, of the matrix as it is multiplied forward; width. hot: 1 where every call has the same
    rows. apart: bytes touched between two uses of the same rows, of buffers in turn.
    """
    launch(bench)
    widths = bench.budget.of((16,), (16, 64, 128), (16, 64, 128, 256, 512))
    most = MOST_WORK_ON_GPU if bench.on_gpu else MOST_WORK
    for shape in _on_gpu(bench) if bench.on_gpu else _shapes(bench):
        matrix, facts = prepared(shape, bench.device, bench.request.aggregator)
        for width in widths:
            if shape.entries * width > most:
                continue
            _both(bench, matrix, {**facts, "width": width}, hot=False)
            if width in (16, 128) and not shape.skewed and not shape.local:
                _both(bench, matrix, {**facts, "width": width}, hot=True)


def _shapes(bench: Bench) -> Iterator[Shape]:
    """Square ones as of inner columns, and wide or nearly empty ones as of boundary columns and drawn graphs."""
    tiny = [(1_000, 100, 100)]
    few = [(500, 20_000, 400), (40_000, 20_000, 20_000)]
    quick = [
        (10_000, 1_000, 1_000),
        (100_000, 10_000, 10_000),
        (10_000, 8_000, 2_000),
        *few,
        (1_000_000, 50_000, 50_000),
    ]
    full = [
        (10_000, 1_000, 1_000),
        (10_000, 8_000, 2_000),
        (100_000, 10_000, 10_000),
        (100_000, 2_000, 2_000),
        (100_000, 10_000, 40_000),
        *few,
        (3_000, 10_000, 2_500),
        (300_000, 150_000, 150_000),
        (300_000, 6_000, 6_000),
        (1_000_000, 100_000, 100_000),
        (1_000_000, 20_000, 20_000),
    ]
    yield from _of_kinds(bench.budget.of(tiny, quick, full))
    for alike in bench.budget.of((), (), (False, True)):
        yield Shape(4_000_000, 200_000, 200_000, skewed=alike, local=alike)


def _on_gpu(bench: Bench) -> Iterator[Shape]:
    """The same for a GPU, where a smaller product takes no longer than its start. Its cache holds some of the rows."""
    quick = [(100_000, 10_000, 10_000), (1_000_000, 50_000, 50_000), (4_000_000, 100_000, 100_000)]
    full = [
        (100_000, 10_000, 10_000),
        (300_000, 150_000, 150_000),
        (1_000_000, 20_000, 20_000),
        (1_000_000, 100_000, 100_000),
        (4_000_000, 100_000, 100_000),
        (4_000_000, 50_000, 200_000),
    ]
    yield from _of_kinds(bench.budget.of([(1_000, 100, 100)], quick, full))
    for alike in bench.budget.of((), (False,), (False, True)):
        yield Shape(10_000_000, 400_000, 400_000, skewed=alike, local=alike)


def _of_kinds(sizes: list[tuple[int, int, int]]) -> Iterator[Shape]:
    """Each of `sizes` with rows alike and a few large ones, near the diagonal and anywhere."""
    kinds = itertools.product((False, True), repeat=2)
    for (skewed, local), size in itertools.product(list(kinds), sizes):
        yield Shape(*size, skewed=skewed, local=local)


def _both(bench: Bench, matrix: Matrix, params: dict[str, float], *, hot: bool) -> None:
    width = int(params["width"])
    touched = 4 * width * (params["rows"] + params["columns"])
    for transposed, name in ((False, "spmm"), (True, "spmm_t")):
        call, count = product(bench, matrix, width, hot=hot, transposed=transposed)
        bench.time(name, params | {"hot": int(hot), "apart": count * touched}, call)


def product(
    bench: Bench, matrix: Matrix, width: int, *, hot: bool = False, transposed: bool = False
) -> tuple[Call, int]:
    """One product, over as many buffers in turn as keep rows out of the caches; and how many these are."""
    there, here = matrix.rows.width, matrix.rows.indptr.size - 1
    if transposed:
        there, here = here, there
    count = 1 if hot else bench.sets(4 * width * (there + here))
    first = made_rows(there, width, bench.device, "product")
    inputs = [first, *(first.clone() for _ in range(count - 1))]
    results = [torch.zeros(here, width, device=bench.device) for _ in inputs]
    multiply = matrix.multiply_transposed if transposed else matrix.multiply

    def call(i: int) -> None:
        multiply(inputs[i % count], results[i % count])

    return call, count
