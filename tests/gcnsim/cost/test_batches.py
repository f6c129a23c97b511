"""A mini-batch's kernels and memory, by hand (100 GB/s, 1 Tflop/s, 10 us a launch; see conftest)."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.cost import batch_layer_cost, batch_loss_seconds, batch_memory
from gcnsim.hardware import DeviceProfile
from gcnsim.workload import LayerShape, layer_shapes

LAUNCH = 1e-5
HIDDEN = LayerShape(64, 32, 64 * 32 + 32)
DENSE = LayerShape(64, 32, 64 * 32 + 32, gathers=False)


def batch(gpu: DeviceProfile, shape: LayerShape = HIDDEN, *, first: bool = False, norm: bool = True) -> list[float]:
    """Aggregate, update, its backward and that of the sum: 900 rows in, 100 out, 2,000 entries; then an empty batch."""
    rows_in, rows_out, entries = np.array([900, 0]), np.array([100, 0]), np.array([2000, 0])
    layer_cost = batch_layer_cost(
        gpu, shape, first=first, rows_in=rows_in, rows_out=rows_out, entries=entries, norm=norm
    )
    every = [layer_cost.aggregate, layer_cost.update, layer_cost.update_backward, layer_cost.aggregate_backward]
    assert [float(array[1]) for array in every] == [0.0] * 4, "nothing costs nothing"
    return [float(array[0]) for array in every]


def product(m: int, k: int, n: int) -> float:
    """Operands and result once at 100 GB/s, or 2 m k n flop at 80 % of 1 Tflop/s."""
    return LAUNCH + max(4 * (m * k + k * n + m * n) / 100e9, 2 * m * k * n / 0.8e12)


def total(entries: int, rows: int, width: int) -> float:
    """A sparse sum: per entry 8 bytes and a row, per result a row, at half of 100 GB/s."""
    return LAUNCH + (entries * (8 + 4 * width) + rows * 4 * width) / 50e9


def elementwise(values: int, passes: int) -> float:
    return LAUNCH + 4 * values * passes / 100e9


def test_a_hidden_layer(gpu: DeviceProfile) -> None:
    aggregate, update, back, aggregate_back = batch(gpu)
    assert aggregate == pytest.approx(total(2000 + 100, 100, 64), rel=1e-12), "each made row sums itself too"
    assert aggregate_back == pytest.approx(total(2000 + 100, 900, 64), rel=1e-12), "a gradient for every row read"
    assert update == pytest.approx(DROPPED + product(100, 64, 32) + AFTER, rel=1e-12)
    assert back == pytest.approx(DROPPED + product(64, 100, 32) + product(100, 32, 64) + AFTER_BACK, rel=1e-12)


DROPPED = elementwise(900 * 64, 2)
"""Dropout of the rows read."""

AFTER = elementwise(3200, 2) + elementwise(3200, 2)
"""Activation and LayerNorm of the rows made."""

AFTER_BACK = elementwise(3200, 3) + elementwise(3200, 5)


def test_without_a_norm_its_kernel_is_saved_each_way(gpu: DeviceProfile) -> None:
    saved = [one - other for one, other in zip(batch(gpu), batch(gpu, norm=False), strict=True)]
    assert saved == pytest.approx([0.0, elementwise(3200, 2), elementwise(3200, 5), 0.0], abs=1e-18)


def test_the_last_layer_has_neither_norm_nor_activation(gpu: DeviceProfile) -> None:
    rows_in, rows_out, entries = np.array([900]), np.array([100]), np.array([2000])
    given = {"first": False, "rows_in": rows_in, "rows_out": rows_out, "entries": entries}
    hidden, last = (batch_layer_cost(gpu, HIDDEN, last=ends, **given) for ends in (False, True))  # type: ignore[arg-type]
    assert hidden.update - last.update == pytest.approx(AFTER)
    assert hidden.update_backward - last.update_backward == pytest.approx(AFTER_BACK)


def test_the_first_layer_makes_no_input_gradient(gpu: DeviceProfile) -> None:
    aggregate, update, back, aggregate_back = batch(gpu, first=True)
    assert [aggregate, update] == batch(gpu)[:2]
    assert back == pytest.approx(product(64, 100, 32) + AFTER_BACK, rel=1e-12)
    assert aggregate_back == 0.0


def test_a_dense_layer_sums_nothing(gpu: DeviceProfile) -> None:
    aggregate, update, back, aggregate_back = batch(gpu, DENSE)
    assert (aggregate, aggregate_back) == (0.0, 0.0)
    dropped = elementwise(100 * 64, 2)
    assert update == pytest.approx(dropped + product(100, 64, 32) + AFTER, rel=1e-12), "it reads what it maps"
    assert back == pytest.approx(dropped + product(64, 100, 32) + product(100, 32, 64) + AFTER_BACK, rel=1e-12)


def test_the_loss_passes_five_times_over_the_logits(gpu: DeviceProfile) -> None:
    found = batch_loss_seconds(gpu, np.array([1000, 0]), 40)
    assert found == pytest.approx([LAUNCH + 5 * 4 * 40_000 / 100e9, 0.0], rel=1e-12)


def test_memory_by_hand() -> None:
    shapes = layer_shapes("gcn", 100, 20, 2, 5)
    weights = 100 * 20 + 20 + 20 * 5 + 5
    held = batch_memory((500, 80, 10), (900, 70), shapes, width=100)
    assert held.features == 4 * 500 * 100 + 8 * 10, "input rows, and labels of the targets"
    assert held.adjacency == 970 * (2 * 8 + 8), "an entry's column and weight, both ways, and its place"
    assert held.activations == 4 * (80 * (100 + 3 * 20) + 10 * (20 + 3 * 5))
    assert (held.boundary, held.cache) == (0, 0)
    assert (held.model, held.gradients, held.optimizer) == (4 * weights, 4 * weights, 8 * weights)
    assert held.workspace == 4 * 80 * 100, "of the layer that needs most"


def test_waiting_batches_hold_their_rows_and_a_cache_is_of_whole_rows() -> None:
    shapes = layer_shapes("gcn", 100, 20, 2, 5)
    one, more = (
        batch_memory((500, 80, 10), (900, 70), shapes, width=100, waiting=waiting, cached=cached)
        for waiting, cached in ((0, 0), (2, 30))
    )
    assert more.features - one.features == 2 * 4 * 500 * 100
    assert more.cache == 4 * 30 * 100
    assert more.held - one.held == more.cache + 2 * 4 * 500 * 100
