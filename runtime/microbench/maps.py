"""What a layer does to rows after their sum: learnt map, normalisation, activation, dropout; and the loss."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from gcnsim.streams import stream
from runtime.exchange import DropoutConfig
from runtime.microbench.bench import APART, SEED, Bench, Call
from runtime.microbench.inputs import made_rows
from runtime.model import GcnLayer, Network
from runtime.options import Options
from runtime.train.loop import Targets

MOST_FLOP = 4e9
"""Of one call, at most: about a tenth of a second on one core."""

DROPPED = 0.5
TRAINING = 0.6
"""Share of the nodes that the loss is taken over."""


def measure(bench: Bench) -> None:
    """`gemm`, the passes over rows, and `loss`, each with its backward pass.

    params of gemm: rows, d_in, d_out, bias; input_grad: 0 as in layer 0, whose input needs no gradient. Of the others:
    rows, width; of the loss: nodes (rows it is taken over), classes. apart: bytes touched between two uses of the same
    rows and of the memory of the same result, of maps and passes: NEAR, APART and FAR, those that rows of this
    size reach; of their backward passes, which take memory that was just freed, the first of these.
    """
    _maps(bench)
    tiny = [(64, 16)]
    quick = [(256, 128), (4_096, 128), (65_536, 64)]
    full = [(256, 16), (256, 128), (2_048, 64), (4_096, 128), (4_096, 512), (16_384, 128), (65_536, 64), (32_768, 128)]
    for rows, width in bench.budget.of(tiny, quick, full):
        _passes(bench, rows, width)
    several = [(1_000, 16), *((16_384, classes) for classes in (2, 5, 10, 16, 48, 120))]
    for rows, classes in bench.budget.of([(64, 8)], several[:1] + several[2:6], [(64, 8), *several]):
        _loss(bench, rows, classes)


def _maps(bench: Bench) -> None:
    pairs = bench.budget.of(
        [(16, 8)],
        [(64, 64), (128, 128), (128, 16), (256, 256)],
        [(16, 16), (64, 64), (128, 16), (16, 128), (128, 128), (256, 256), (600, 128), (512, 512)],
    )
    for rows in bench.budget.of((64,), (512, 4_096, 32_768), (256, 2_048, 8_192, 32_768)):
        for d_in, d_out in pairs:
            if 2.0 * rows * d_in * d_out > MOST_FLOP:
                continue
            for bias in (True, False) if (d_in, d_out) == pairs[1 % len(pairs)] else (True,):
                _map(bench, rows, d_in, d_out, bias)


def _map(bench: Bench, rows: int, d_in: int, d_out: int, bias: bool) -> None:
    nbytes = 4 * rows * (d_in + d_out)
    nearest, *_ = distances = bench.distances(nbytes)
    for apart in distances:
        params = {
            "rows": rows,
            "d_in": d_in,
            "d_out": d_out,
            "bias": int(bias),
            "apart": bench.sets(nbytes, apart) * nbytes,
        }
        bench.time("gemm", params, learnt_map(bench, rows, d_in, d_out, bias, apart))
        for needed in (True, False) if apart == nearest else ():
            layer, inputs = _layer(bench, rows, d_in, d_out, bias, needed, apart)
            bench.time("gemm_backward", params | {"input_grad": int(needed)}, backward(layer.mapped, inputs))


def learnt_map(bench: Bench, rows: int, d_in: int, d_out: int, bias: bool = True, apart: int = APART) -> Call:
    """The map of one layer, its graph for the backward pass made as in training."""
    layer, inputs = _layer(bench, rows, d_in, d_out, bias, True, apart)
    return forward(layer.mapped, inputs)


def _layer(
    bench: Bench, rows: int, d_in: int, d_out: int, bias: bool, needed: bool, apart: int
) -> tuple[GcnLayer, list[Tensor]]:
    layer = GcnLayer(d_in, d_out, bias).to(bench.device)
    for weight in layer.parameters():
        # Training adds to a view of its flat buffer; here too the gradient is there before the first pass.
        weight.grad = torch.zeros_like(weight)
    return layer, _given(bench, rows, d_in, 4 * rows * (d_in + d_out), needed, apart)


def _passes(bench: Bench, rows: int, width: int) -> None:
    network = Network(Options(norm="layer", hidden=width), width, 2).to(bench.device)
    for weight in network.parameters():
        weight.grad = torch.zeros_like(weight)
    nbytes = 8 * rows * width
    dropping = DropoutConfig(DROPPED, False, SEED, 0)

    def dropped(h: Tensor) -> Tensor:
        return h * dropping.mask(h, 0, 0, "inner")

    kernels: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": torch.relu,
        "layer_norm": network.norms[0],
        "dropout": dropped,
    }
    nearest, *_ = distances = bench.distances(nbytes)
    for apart in distances:
        inputs = _given(bench, rows, width, nbytes, True, apart)
        params = {"rows": rows, "width": width, "apart": len(inputs) * nbytes}
        for name, kernel in kernels.items():
            bench.time(name, params, forward(kernel, inputs))
            if apart == nearest:
                bench.time(f"{name}_backward", params, backward(kernel, inputs))


def activation(bench: Bench, rows: int, width: int, apart: int = APART) -> Call:
    """The activation of one layer."""
    return forward(torch.relu, _given(bench, rows, width, 8 * rows * width, True, apart))


def _loss(bench: Bench, rows: int, classes: int) -> None:
    generator = stream(SEED, "loss", rows, classes)
    count = max(1, int(TRAINING * rows))
    nodes = torch.from_numpy(generator.permutation(rows)[:count].copy()).sort().values.to(bench.device)
    labels = torch.from_numpy(generator.integers(classes, size=count)).to(bench.device)
    targets = Targets(nodes, labels, count)
    inputs = _given(bench, rows, classes, 8 * rows * classes, True, APART)
    params = {"rows": rows, "nodes": count, "classes": classes}
    bench.time("loss", params, forward(targets.loss, inputs))
    bench.time("loss_backward", params, backward(targets.loss, inputs))
    bench.time("correct", params, forward(targets.correct, inputs))


def _given(bench: Bench, rows: int, width: int, nbytes: int, needed: bool, apart: int) -> list[Tensor]:
    """Rows to be taken in turn, `apart` bytes of kernels that touch `nbytes` in all; needed: their gradient is."""
    first = made_rows(rows, width, bench.device, "given")
    every = [first, *(first.clone() for _ in range(bench.sets(nbytes, apart) - 1))]
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
