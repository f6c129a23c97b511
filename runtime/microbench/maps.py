"""What a layer does to rows after their sum: learnt map and activation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from runtime.microbench.bench import Bench, Call
from runtime.microbench.inputs import made_rows
from runtime.model import GcnLayer

MOST_FLOP = 4e9
"""Of one call, at most: about a tenth of a second on one core."""

MOST_FLOP_ON_GPU = 2e11
"""The same on a GPU: some milliseconds."""


def measure(bench: Bench) -> None:
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
