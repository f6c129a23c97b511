"""What a worker on a GPU costs its host: calls of a framework, each of which takes time before the GPU can begin.

The host issues the GPU's work ahead, until it waits for a result. Between two such waits, a worker takes the longer of
the host's calls and the GPU's kernels. A worker that exchanges rows of the same iteration waits in every layer; any
other waits once in an iteration, for the loss. Calls of the optimizer's step and of the loop come after that wait, so
nothing hides them. A worker that waits in every product has each operation at least as long as its calls (`issued`).

The counts are of `runtime.train`, read off three runs on an H200 that only the host bound (digits, 2 to 4 layers, 3.5
to 4.2 ms an iteration, a third of it for recording). Their sum is known to some 10 %, how it divides less well.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.cost.device import Size
from gcnsim.cost.layers import LayerCost, twice_mapped
from gcnsim.timeline import OpKind
from gcnsim.workload import LayerShape

LAYER_CALLS = 7
"""Framework calls of a layer, and as many backward. In published code: dropout, concatenation, sum, division by the
degree, product, norm, activation; `runtime.train` needs as many without a norm.
"""

LOSS_CALLS = 20
"""Of the loss and of its gradient: rows of the training nodes, their loss, and how many are predicted correctly."""

STEP_CALLS = 32
"""Of the optimizer's step, and of the loop from one iteration to the next."""

PRODUCT_CALLS: Final = 2
"""Of one sparse product: the sum and its addition to those before."""

_CALLS: Final[Mapping[OpKind, int]] = MappingProxyType(
    {OpKind.AGGREGATE: PRODUCT_CALLS, OpKind.UPDATE: LAYER_CALLS - PRODUCT_CALLS, OpKind.LOSS: LOSS_CALLS}
)


def layer_calls(shape: LayerShape, *, norm: bool) -> int:
    """Framework calls of a layer's pass; GraphSAGE has a product and an addition more. norm: whether it has a norm."""
    return LAYER_CALLS + 2 * twice_mapped(shape) + norm


def host_bound(cost: LayerCost, call_s: Size, number: int = LAYER_CALLS) -> LayerCost:
    """The layer with each pass at least as long as `number` host calls; the waiting time is added to the update."""
    calls = number * call_s
    forward, backward = cost.aggregate + cost.update, cost.update_backward + cost.aggregate_backward
    return replace(
        cost,
        update=cost.update + np.maximum(calls - forward, 0.0),
        update_backward=cost.update_backward + np.maximum(calls - backward, 0.0),
    )


def issued(kind: OpKind, seconds: Size, call_s: Size) -> FloatArray:
    """Seconds of one operation with its host calls of `call_s` each: the step adds them, others overlap them."""
    if kind is OpKind.STEP:
        return np.asarray(seconds + STEP_CALLS * call_s, dtype=np.float64)
    return np.asarray(np.maximum(seconds, _CALLS[kind] * call_s), dtype=np.float64)


def with_host_calls(
    layers: Sequence[LayerCost],
    loss: FloatArray,
    call_s: Size,
    shapes: Sequence[LayerShape],
    *,
    norm: bool,
    waits_in_layers: bool,
) -> tuple[list[LayerCost], FloatArray]:
    """The layers and the loss of an iteration with the time that the host takes longer than the GPU.

    loss: seconds, float64[] or shaped as a layer's. call_s: seconds of a call. norm: whether hidden layers have a norm.
    waits_in_layers: whether the host waits for rows of the same iteration; else what it takes longer in all is added to
    the loss.
    """
    numbers = [layer_calls(shape, norm=norm and shape is not shapes[-1]) for shape in shapes]
    if waits_in_layers:
        bound = [host_bound(cost, call_s, number) for cost, number in zip(layers, numbers, strict=True)]
        return bound, np.maximum(loss, LOSS_CALLS * call_s)
    busy = sum((cost.seconds for cost in layers), loss)
    calls = (2 * sum(numbers) + LOSS_CALLS) * call_s
    return list(layers), np.asarray(loss + np.maximum(calls - busy, 0.0), dtype=np.float64)
