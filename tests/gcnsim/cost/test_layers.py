"""The kernels of a layer, each found again in the laws of the device."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import (
    elementwise_seconds,
    gemm_seconds,
    gradient_bytes,
    layer_cost,
    loss_seconds,
    parameters,
    spmm_seconds,
    step_seconds,
)
from gcnsim.hardware import Curve, DeviceProfile
from gcnsim.workload import LayerShape, layer_shapes

ENTRIES, BOUNDARY = np.array([5000, 8000]), np.array([300, 400])
HIDDEN = LayerShape(64, 32, 64 * 32 + 32)


def test_forward_aggregates_then_multiplies(gpu: DeviceProfile) -> None:
    cost = layer_cost(gpu, HIDDEN, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    assert cost.aggregate == pytest.approx([float(spmm_seconds(gpu, n, 1000, 64)) for n in (5000, 8000)])
    dense = float(gemm_seconds(gpu, 1000, 64, 32)) + float(elementwise_seconds(gpu, 32_000, 6))
    assert cost.update == pytest.approx([dense, dense])


def test_backward_makes_weight_and_input_gradients(gpu: DeviceProfile) -> None:
    cost = layer_cost(gpu, HIDDEN, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    activation = float(elementwise_seconds(gpu, 32_000, 6))
    products = float(gemm_seconds(gpu, 64, 1000, 32)) + float(gemm_seconds(gpu, 1000, 32, 64))
    assert cost.update_backward == pytest.approx([activation + products] * 2)
    # The transposed aggregation writes a row for every inner and every boundary node.
    rows = [float(spmm_seconds(gpu, n, 1000 + b, 64)) for n, b in zip(ENTRIES, BOUNDARY, strict=True)]
    assert cost.aggregate_backward == pytest.approx(rows)


def test_a_calibrated_device_sums_at_the_efficiency_of_the_rows_it_gathers(gpu: DeviceProfile) -> None:
    curved = replace(gpu, spmm_curve=Curve((1e5, 1e6), (0.9, 0.3), "fitted", "", ""))
    cost = layer_cost(curved, HIDDEN, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    for n, b, forward, backward in zip(ENTRIES, BOUNDARY, cost.aggregate, cost.aggregate_backward, strict=True):
        # Forward rows of inner and boundary nodes are gathered, backward those of inner nodes.
        assert forward == float(spmm_seconds(curved, n, 1000, 64, 1000 + b))
        assert backward == float(spmm_seconds(curved, n, 1000 + b, 64, 1000))


def test_the_first_layer_needs_no_input_gradient(gpu: DeviceProfile) -> None:
    cost = layer_cost(gpu, HIDDEN, first=True, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    only = float(elementwise_seconds(gpu, 32_000, 6)) + float(gemm_seconds(gpu, 64, 1000, 32))
    assert cost.update_backward == pytest.approx([only] * 2)
    assert cost.aggregate_backward.tolist() == [0.0, 0.0]


def test_graphsage_multiplies_rows_of_double_width(gpu: DeviceProfile) -> None:
    (shape,) = layer_shapes("graphsage", 64, 64, 1, 32)
    cost = layer_cost(gpu, shape, first=False, inner=1000, entries=ENTRIES, boundary_rows=BOUNDARY)
    dense = float(gemm_seconds(gpu, 1000, 128, 32)) + float(elementwise_seconds(gpu, 32_000, 6))
    assert cost.update == pytest.approx([dense, dense])
    assert cost.aggregate == pytest.approx([float(spmm_seconds(gpu, n, 1000, 64)) for n in (5000, 8000)])


def test_parameters_and_gradient_bytes() -> None:
    shapes = layer_shapes("gcn", 602, 256, 4, 41)
    count = (602 * 256 + 256) + 2 * (256 * 256 + 256) + (256 * 41 + 41)
    assert parameters(shapes) == count
    assert gradient_bytes(shapes) == 4 * count


def test_loss_and_step_are_elementwise(gpu: DeviceProfile) -> None:
    assert loss_seconds(gpu, 1000, 16) == pytest.approx(1e-5 + 16_000 * 20 / 100e9)
    assert step_seconds(gpu, (HIDDEN,)) == pytest.approx(1e-5 + 2080 * 28 / 100e9)
