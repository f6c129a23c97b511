"""The constants of the cost laws have the values that their sources give, and the rest of the laws by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import (
    MemoryCounts,
    device,
    host_work,
    layers,
    memory,
    partition_memory,
    sampling,
    swapped_memory,
)
from gcnsim.cost.device import SECTOR, columns_seconds, gemm_seconds, map_bytes, spmm_seconds
from gcnsim.cost.layers import average_seconds
from gcnsim.cost.sampling import edges_seconds, sampler_seconds
from gcnsim.hardware import Curve, DeviceProfile
from gcnsim.workload import layer_shapes

LAUNCH = 1e-5


def test_values_and_indices_have_four_bytes() -> None:
    assert (device.VALUE, device.INDEX) == (4, 4), "fp32 values, 32-bit column indices"
    assert memory.ENTRY == 24, "column and weight, both ways, and an 8-byte place between both"
    assert (memory.ID, memory.MOMENTS, memory.SLACK, memory.RESERVED) == (8, 2, 1.125, 1e9)
    assert (device.SCALED, device.SCALE) == (8, 8), "a scale and a zero point, fp32, from 8 bits on"


def test_passes_are_what_kernels_read_and_write() -> None:
    assert (layers.RELU_PASSES, layers.RELU_BACKWARD_PASSES, layers.DROPOUT_PASSES) == (1 + 1, 2 + 1, 1 + 1)
    assert (layers.NORM_PASSES, layers.NORM_BACKWARD_PASSES) == (1 + 1, 2 * 2 + 1)
    assert (layers.ADDITION_PASSES, layers.DIVISION_PASSES, layers.CONCATENATION_PASSES) == (2 + 1, 1 + 1, 1 + 1)
    assert layers.ADAM_PASSES == 4 + 3, "Kingma and Ba, Algorithm 1: parameter, gradient, two moments; three written"
    assert layers.AVERAGE_PASSES == 2 + 3
    assert layers.LOSS_PASSES == 1 + 2 + 1 + 1
    assert host_work.ADDING_PASSES == 2 + 1
    assert (layers.SCORE_PASSES, layers.SCORE_BACKWARD_PASSES) == (1 + 1 + 1, 1 + 3 + 3)
    assert (SECTOR, layers.ENTRY_ENDS) == (32, 4 + 4)
    assert 0.4 <= layers.ENTRY_EFFICIENCY <= 0.5
    assert (layers.REDUCTIONS, layers.REDUCTIONS_BACKWARD) == (1 + 1, 1 + 2)
    assert (layers.SOFTMAX_OPERANDS, layers.SOFTMAX_BACKWARD_OPERANDS) == ((2, 2, 2), (3, 2, 3))
    assert (layers.SCORES_OPERANDS, layers.SCORES_BACKWARD_OPERANDS) == ((2, 2), (3,))
    assert sampling.SORT_PASSES == 8 * (2 + 2) * 2, "eight passes over keys and values of 8 bytes, read and write"


def test_columns_read_every_entry_again_for_each(gpu: DeviceProfile) -> None:
    # 16 columns: index and value of 1,000 entries and 100 results each, at 40 % of 100 GB/s.
    found = float(columns_seconds(gpu, 0.4, 1000, 100, 16))
    begun = float(columns_seconds(gpu, 0.4, 1000, 100, 16, 100))
    assert begun - found == pytest.approx(100 * (64 - 8) * 16 / (gpu.memory_bandwidth.value * 0.4))
    assert found == pytest.approx(LAUNCH + 16 * (1000 * 8 + 100 * 4) / 40e9, rel=1e-12)


def test_columns_and_sums_bound_by_arithmetic(gpu: DeviceProfile) -> None:
    slow = replace(gpu, flops_fp32=replace(gpu.flops_fp32, value=1e9))
    flop = 2 * 1000 * 16 / 1e9
    assert float(columns_seconds(slow, 0.4, 1000, 100, 16)) == pytest.approx(LAUNCH + flop, rel=1e-12)
    assert float(spmm_seconds(slow, 1000, 100, 16)) == pytest.approx(LAUNCH + flop, rel=1e-12)


def test_a_product_of_unequal_sides(gpu: DeviceProfile) -> None:
    # 2 x 3 times 3 x 1,000,003: 6 + 3,000,009 + 2,000,006 values; every pair of sides counts for itself.
    assert float(gemm_seconds(gpu, 2, 3, 1_000_003)) == pytest.approx(LAUNCH + 4 * 5_000_021 / 100e9, rel=1e-12)
    assert map_bytes(2, 3, 5).tolist() == 4 * (2 * 3 + 3 * 5 + 2 * 5)


def test_gathered_rows_tell_the_efficiency_only_where_a_device_is_calibrated(gpu: DeviceProfile) -> None:
    curved = replace(gpu, spmm_curve=Curve((1e3, 1e6), (1.0, 0.25), "fitted", "", ""))
    nbytes = 1000 * (8 + 64) + 100 * 64
    assert float(spmm_seconds(curved, 1000, 100, 16)) == float(spmm_seconds(gpu, 1000, 100, 16))
    assert float(spmm_seconds(curved, 1000, 100, 16, 1e9)) == pytest.approx(LAUNCH + nbytes / 25e9, rel=1e-12)
    assert float(spmm_seconds(gpu, 1000, 100, 16, 1e9)) == float(spmm_seconds(gpu, 1000, 100, 16))


def test_a_moving_average_passes_five_times_over_what_came(gpu: DeviceProfile) -> None:
    assert average_seconds(gpu, np.array([0, 300]), 64) == pytest.approx([0.0, LAUNCH + 5 * 4 * 300 * 64 / 100e9])


def test_a_gpu_that_draws_edges_looks_at_all_and_sorts_what_it_keeps(gpu: DeviceProfile) -> None:
    kept = np.array([100_000, 0])
    plain = 4 * 1_000_000 + 2 * 64 * kept + 2 * 5000
    assert edges_seconds(gpu, 1_000_000, kept, 5000) == pytest.approx(LAUNCH + plain * 4 / 100e9, rel=1e-12)
    drawn = sampler_seconds(gpu, 1_000_000, kept, 5000, 20, weighted=False)
    assert drawn.tolist() == edges_seconds(gpu, 1_000_000, kept, 5000).tolist()
    sorting = (LAUNCH + 2 * 64 * 1_000_000 * 4 / 100e9) / 20
    assert sampler_seconds(gpu, 1_000_000, kept, 5000, 20, weighted=True) == pytest.approx(drawn + sorting, rel=1e-12)


def test_a_worker_with_drawn_graphs_by_hand() -> None:
    shapes = layer_shapes("gcn", 100, 20, 2, 5)
    held = MemoryCounts(inner=1000, entries=5000, crossing=800, boundary=300, rows=70, asked=60, cached=30)
    memory_counts = replace(held, kept=1400, kept_crossing=80, graphs=5, tau=2)
    whole = 4200 * 24 + 4 * 2002 + 800 * 24 + 4 * 1302
    block = 80 * 24 + 4 * (1000 + 70 + 2) + 8 * 60
    inner = (1400 - 80) * 24 + 4 * 2002
    assert partition_memory(shapes, memory_counts, norm=False).adjacency == whole + 5 * (block + inner)
    only_boundary = partition_memory(shapes, replace(memory_counts, kept=0), norm=False)
    assert only_boundary.adjacency == whole + 5 * block, "the inner block is the whole graph's"
    alone = partition_memory(shapes, replace(held, crossing=0, boundary=0), norm=False)
    assert alone.adjacency == 5000 * 24 + 4 * 2002, "no boundary, no second block"
    assert partition_memory(shapes, held, norm=False).cache == 4 * 30 * 100


def test_the_workspace_is_of_the_widest_layer_behind_the_first_and_of_the_logits() -> None:
    shapes = layer_shapes("gcn", 100, 20, 3, 5)
    held = MemoryCounts(inner=1000, entries=5000, crossing=800, boundary=300, rows=70, asked=60)
    assert partition_memory(shapes, held, norm=False).workspace == 4 * 1000 * (2 * 20 + 3 * 5)
    assert partition_memory(shapes[:1], held, norm=False).workspace == 4 * 1000 * (2 * 100 + 3 * 20)


def test_the_largest_of_rocs_steps() -> None:
    (one,) = layer_shapes("gcn", 100, 20, 1, 20)
    held = swapped_memory((one,), inner=1000, boundary=300, entries=5000)
    assert held.workspace == max(4 * 1000 * (100 + 20), 4 * 2300 * 20 + 8 * 5000 + 4 * 1001, 4 * 1000 * 3 * 20)
    assert held.total == held.workspace + 16 * (100 * 20 + 20)
