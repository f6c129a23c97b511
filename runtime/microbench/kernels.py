"""The kernels of an iteration, one by one: sums over neighbours, maps, rows that are packed and added, sampling.

Sums are measured forward and backward, by what the matrix is like and by the width of the rows. Maps are what a layer
does to rows after their sum: learnt map and activation. Rows are packed to be sent, and received gradients added to
rows. Sampling takes probabilities from norms, draws, and makes the matrices of the drawn graph.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from gcnsim.core.ids import AnyArray
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part
from gcnsim.workload.draws import Draws, inclusion
from gcnsim.workload.samplers import sampler as sampling_rule
from runtime.aggregate import Matrix, matrix_kind
from runtime.exchange import GraphBuilder
from runtime.microbench.bench import SEED, Bench, Call, Shape, made_part, made_rows, matrix_of, prepared
from runtime.model import GcnLayer

MOST_WORK = 1 << 27
"""Entries times width of one call, at most: about a fifth of a second on one core."""

MOST_WORK_ON_GPU = 1 << 31
"""The same on a GPU: some milliseconds."""


def launch(bench: Bench) -> None:
    """`launch`, a product of one entry: what starting a kernel costs, however small its work. params: none."""
    one, result = made_rows(1, 1, bench.device, "one"), torch.zeros(1, 1, device=bench.device)
    matrix = matrix_of(Shape(1, 1, 1).made(), bench.device, bench.request.aggregator)
    bench.time("launch", {}, lambda _: matrix.multiply(one, result))


def measure_sums(bench: Bench) -> None:
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


MOST_FLOP = 4e9
"""Of one call, at most: about a tenth of a second on one core."""

MOST_FLOP_ON_GPU = 2e11
"""The same on a GPU: some milliseconds."""


def measure_maps(bench: Bench) -> None:
    """`gemm` and `relu`, each with its backward pass.

    params of gemm: rows, d_in, d_out, bias; input_grad: 0 as in layer 0, whose input needs no gradient. Of relu: rows,
    width.
    """
    _maps(bench)
    tiny = [(64, 16)]
    quick = [(256, 128), (4_096, 128), (65_536, 64)]
    full = [(256, 16), (256, 128), (2_048, 64), (4_096, 128), (4_096, 512), (16_384, 128), (65_536, 64), (32_768, 128)]
    if bench.on_gpu:
        # A smaller one takes no longer than its start.
        quick = [(4_096, 128), (65_536, 64), (1_048_576, 64), (1_048_576, 128)]
        full = [*quick, (16_384, 128), (262_144, 128), (524_288, 256)]
    for rows, width in bench.budget.of(tiny, quick, full):
        inputs, params = _given(bench, rows, width, 8 * rows * width, True), {"rows": rows, "width": width}
        bench.time("relu", params, forward(torch.relu, inputs))
        bench.time("relu_backward", params, backward(torch.relu, inputs))


def _maps(bench: Bench) -> None:
    pairs = bench.budget.of(
        [(16, 8)],
        [(64, 64), (128, 128), (128, 16), (256, 256)],
        [(16, 16), (64, 64), (128, 16), (16, 128), (128, 128), (256, 256), (600, 128), (512, 512)],
    )
    quick, full, most = (512, 4_096, 32_768), (256, 2_048, 8_192, 32_768), MOST_FLOP
    if bench.on_gpu:
        quick, full, most = (4_096, 32_768, 262_144), (2_048, 8_192, 32_768, 262_144), MOST_FLOP_ON_GPU
    for rows in bench.budget.of((64,), quick, full):
        for d_in, d_out in pairs:
            if 2.0 * rows * d_in * d_out > most:
                continue
            for bias in (True, False) if (d_in, d_out) == pairs[1 % len(pairs)] else (True,):
                _map(bench, rows, d_in, d_out, bias)


def _map(bench: Bench, rows: int, d_in: int, d_out: int, bias: bool) -> None:
    params = {"rows": rows, "d_in": d_in, "d_out": d_out, "bias": int(bias)}
    bench.time("gemm", params, learnt_map(bench, rows, d_in, d_out, bias))
    for needed in (True, False):
        layer, inputs = _layer(bench, rows, d_in, d_out, bias, needed)
        bench.time("gemm_backward", params | {"input_grad": int(needed)}, backward(layer.mapped, inputs))


def learnt_map(bench: Bench, rows: int, d_in: int, d_out: int, bias: bool = True) -> Call:
    """The map of one layer, its graph for the backward pass made as in training."""
    layer, inputs = _layer(bench, rows, d_in, d_out, bias, True)
    return forward(layer.mapped, inputs)


def _layer(bench: Bench, rows: int, d_in: int, d_out: int, bias: bool, needed: bool) -> tuple[GcnLayer, list[Tensor]]:
    layer = GcnLayer(d_in, d_out, bias).to(bench.device)
    for weight in layer.parameters():
        # Training adds to a view of its flat buffer; here too the gradient is there before the first pass.
        weight.grad = torch.zeros_like(weight)
    return layer, _given(bench, rows, d_in, 4 * rows * (d_in + d_out), needed)


def activation(bench: Bench, rows: int, width: int) -> Call:
    """The activation of one layer."""
    return forward(torch.relu, _given(bench, rows, width, 8 * rows * width, True))


def _given(bench: Bench, rows: int, width: int, nbytes: int, needed: bool) -> list[Tensor]:
    """Rows to be taken in turn, of kernels that touch `nbytes` each; needed: their gradient is."""
    first = made_rows(rows, width, bench.device, "given")
    every = [first, *(first.clone() for _ in range(bench.sets(nbytes) - 1))]
    return [item.requires_grad_(needed) for item in every]


def forward(kernel: Callable[[Tensor], Tensor], inputs: list[Tensor]) -> Call:
    """`kernel` of the rows `inputs`, in turn. Results are kept for as long as their rows are: in training the backward
    pass needs them, so a new one lies in memory that no cache has."""
    results = [kernel(tensor) for tensor in inputs]

    def call(i: int) -> None:
        place = i % len(inputs)
        results[place] = kernel(inputs[place])

    return call


def backward(kernel: Callable[[Tensor], Tensor], inputs: list[Tensor]) -> Call:
    """The backward pass of `kernel` alone."""
    results = [kernel(tensor) for tensor in inputs]
    gradients = [torch.ones_like(result) for result in results]
    engine: Any = torch.autograd.backward

    def call(i: int) -> None:
        place = i % len(inputs)
        # Without an old gradient the new one is taken over as it is: in training it goes to the node before.
        inputs[place].grad = None
        engine(results[place], gradients[place], retain_graph=True)

    for index in range(len(inputs)):
        # Gradients of all in turn, so that none is the first to use its memory.
        call(index)
    return call


def measure_rows(bench: Bench) -> None:
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


def measure_sampling(bench: Bench) -> None:
    """`probabilities`, `inclusion`, `reweigh`, `draw` and `thin`.

    params: entries, rows (inner nodes), boundary (boundary nodes), cross (entries of boundary columns), epsilon;
    of draw and thin also kept (entries) and needed (boundary rows).
    """
    sizes = bench.budget.of([(400, 4_000)], [(8_000, 80_000), (40_000, 800_000)], [
        (8_000, 80_000), (40_000, 400_000), (16_000, 800_000), (80_000, 2_000_000),
    ])  # fmt: skip
    kind = matrix_kind(bench.request.aggregator)
    for nodes, entries in sizes:
        part = made_part(nodes, entries)
        builder = GraphBuilder(part, "symmetric", kind, torch.float32, bench.device)
        for epsilon in bench.budget.of((0.1,), (0.03, 0.3), (0.03, 0.1, 0.3)):
            _at(bench, part, builder, epsilon)


def _at(bench: Bench, part: Part, builder: GraphBuilder, epsilon: float) -> None:
    generator = stream(SEED, "drawing", part.entries)
    norms = generator.random(part.inner_nodes + part.boundary_nodes, dtype=np.float32) + np.float32(0.1)
    rule = sampling_rule("vr")
    p = rule(part, norms).probabilities(epsilon).p

    def reweighed() -> tuple[Draws, AnyArray]:
        return Draws(part, p), builder.weights(np.divide(1.0, p, dtype=np.float64))

    draws, weights = reweighed()
    mask = draws.edges(generator).copy()  # the draws timed below overwrite it
    graph = builder.thinned(0, mask, weights)
    params: dict[str, float] = {
        "entries": part.entries,
        "rows": part.inner_nodes,
        "boundary": part.boundary_nodes,
        "cross": int(np.count_nonzero(part.columns >= part.inner_nodes)),
        "epsilon": epsilon,
    }
    chosen = {"kept": int(np.count_nonzero(mask)), "needed": graph.rows}
    bench.time("probabilities", params, lambda _: rule(part, norms).probabilities(epsilon))
    bench.time("inclusion", params, lambda _: inclusion(part, p))
    bench.time("reweigh", params, lambda _: reweighed())
    bench.time("draw", params | chosen, lambda _: draws.edges(generator))
    bench.time("thin", params | chosen, lambda i: builder.thinned(i, mask, weights))
