"""Kernels, host calls, payloads and CPU cores, by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from gcnsim import simulate
from gcnsim.core.ids import FloatArray
from gcnsim.cost import (
    STEP_CALLS,
    Kept,
    LayerCost,
    adding_seconds,
    core_shares,
    elementwise_seconds,
    gemm_seconds,
    host_bound,
    norms_seconds,
    pack_seconds,
    payload_bytes,
    payload_width,
    rows_seconds,
    socket_core_seconds,
    spmm_seconds,
    unpack_seconds,
    with_host_calls,
)
from gcnsim.cost.host_calls import LAYER_CALLS, LOSS_CALLS, layer_calls
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.scenario import SCHEMA
from gcnsim.workload import PAYLOADS, layer_shapes

LAUNCH = 1e-5


def test_spmm_bound_by_memory(gpu: DeviceProfile) -> None:
    # 1,000 entries: 8 B of index and value and a row of 16 values each; 100 rows of 16 values out; half of 100 GB/s.
    nbytes = 1000 * (8 + 64) + 100 * 64
    assert float(spmm_seconds(gpu, 1000, 100, 16)) == pytest.approx(LAUNCH + nbytes / 50e9, rel=1e-12)


def test_gemm_bound_by_arithmetic(gpu: DeviceProfile) -> None:
    # 2 * 1000^3 flop at 80 % of 1 Tflop/s; its 12 MB would take 0.12 ms.
    assert float(gemm_seconds(gpu, 1000, 1000, 1000)) == pytest.approx(LAUNCH + 2e9 / 0.8e12, rel=1e-12)


def test_gemm_bound_by_memory(gpu: DeviceProfile) -> None:
    nbytes = 4 * (1e6 * 4 + 4 * 2 + 1e6 * 2)
    assert float(gemm_seconds(gpu, 1e6, 4, 2)) == pytest.approx(LAUNCH + nbytes / 100e9, rel=1e-12)


def test_gemm_crosses_the_roofline_where_both_times_are_equal(gpu: DeviceProfile) -> None:
    # k x k times k x k: 12 k^2 B at 100 GB/s = 2 k^3 flop at 0.8 Tflop/s  <=>  k = 48.
    below, above = 12 * 47**2 / 100e9, 2 * 49**3 / 0.8e12
    assert float(gemm_seconds(gpu, 47, 47, 47)) == pytest.approx(LAUNCH + below, rel=1e-9)
    assert float(gemm_seconds(gpu, 49, 49, 49)) == pytest.approx(LAUNCH + above, rel=1e-9)


def test_rows_are_read_and_written_once_with_their_index(gpu: DeviceProfile) -> None:
    assert float(rows_seconds(gpu, 1000, 64)) == pytest.approx(LAUNCH + 1000 * (512 + 4) / 25e9, rel=1e-12)


def test_elementwise_counts_its_passes(gpu: DeviceProfile) -> None:
    assert float(elementwise_seconds(gpu, 1e6, 6)) == pytest.approx(LAUNCH + 24e6 / 100e9, rel=1e-12)


def test_empty_kernels_are_not_launched(gpu: DeviceProfile) -> None:
    assert float(spmm_seconds(gpu, 0, 0, 64)) == 0.0
    assert float(gemm_seconds(gpu, 0.0, 0.0, 0.0)) == 0.0
    assert float(rows_seconds(gpu, 0, 64)) == 0.0
    assert float(elementwise_seconds(gpu, 0.0, 6)) == 0.0


def test_sizes_may_be_one_number_per_iteration(gpu: DeviceProfile) -> None:
    sizes = np.array([0, 1000, 2000])
    each = [float(rows_seconds(gpu, int(size), 64)) for size in sizes]
    assert rows_seconds(gpu, sizes, 64).tolist() == each
    assert each[0] == 0.0 < each[1] < each[2]


LAWS: dict[str, Callable[[DeviceProfile, int], FloatArray]] = {
    "entries": lambda gpu, n: spmm_seconds(gpu, 100 * n, 10, 16),
    "rows": lambda gpu, n: spmm_seconds(gpu, 100, 10 * n, 16),
    "width": lambda gpu, n: spmm_seconds(gpu, 100, 10, 16 * n),
    "m": lambda gpu, n: gemm_seconds(gpu, 10 * n, 64, 64),
    "k": lambda gpu, n: gemm_seconds(gpu, 1000, 8 * n, 64),
    "gathered rows": lambda gpu, n: rows_seconds(gpu, n, 7),
}


@pytest.mark.parametrize("name", LAWS)
def test_more_of_anything_never_takes_less(gpu: DeviceProfile, name: str) -> None:
    times = [float(LAWS[name](gpu, n)) for n in range(1, 20)]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("payload", "nbytes"), [("fp32", 404), ("fp16", 202), ("bf16", 202), ("int8", 109), ("int4", 59), ("int2", 34)]
)
def test_a_row_of_101_values(payload: str, nbytes: int) -> None:
    assert payload_width(101, payload) == nbytes
    assert payload_bytes(3, 101, payload) == 3 * nbytes


def test_fp32_is_as_before(gpu: DeviceProfile) -> None:
    for seconds in (pack_seconds, unpack_seconds):
        assert seconds(gpu, 1000, 64, "fp32") == rows_seconds(gpu, 1000, 64)


def test_kernels_touch_what_they_read_and_write(gpu: DeviceProfile) -> None:
    rate = gpu.memory_bandwidth.value * gpu.gather_efficiency.value
    launch = gpu.launch_s.value
    assert pack_seconds(gpu, 10, 64, "int8") == pytest.approx(10 * (2 * 256 + 72 + 4) / rate + launch)
    assert unpack_seconds(gpu, 10, 64, "int8") == pytest.approx(10 * (256 + 72 + 4) / rate + launch)
    assert pack_seconds(gpu, 10, 64, "fp16") == pytest.approx(10 * (256 + 128 + 4) / rate + launch)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_nothing_costs_nothing(gpu: DeviceProfile, payload: str) -> None:
    assert pack_seconds(gpu, 0, 64, payload) == unpack_seconds(gpu, 0, 64, payload) == 0


KEPT = Kept(np.array([1000]), np.array([6000]), np.array([800]), np.array([300]))
SHAPES = layer_shapes("gcn", 48, 32, 2, 16)
RATE = 100e9


@pytest.fixture
def core(gpu: DeviceProfile) -> DeviceProfile:
    """No launch, and no arithmetic: at 100 GB/s, bytes are all that counts."""
    free, fast = replace(gpu.launch_s, value=0.0), replace(gpu.flops_fp32, value=1e18)
    return replace(gpu, kind="cpu", launch_s=free, flops_fp32=fast, spmm_efficiency=gpu.elementwise_efficiency)


def test_sums_share_by_entries_and_rows(core: DeviceProfile) -> None:
    found = core_shares(core, SHAPES[0], KEPT, "none")
    entry, row = 4 + 4 + 4 * 48, 4 * 48
    assert found.inner == pytest.approx((6000 * entry + 1000 * row) / RATE)
    assert found.boundary == pytest.approx((800 * entry + 1000 * row) / RATE)
    assert found.boundary_backward == pytest.approx((800 * entry + 300 * row) / RATE)
    assert not found.dropped.any()
    assert not found.dropped_boundary.any()


def test_maps_share_by_the_bytes_of_their_operands(core: DeviceProfile) -> None:
    found = core_shares(core, SHAPES[0], KEPT, "none")
    assert found.update == pytest.approx(4 * (1000 * 48 + 48 * 32 + 1000 * 32) / RATE)


def test_without_a_boundary_nothing_is_its_share(core: DeviceProfile) -> None:
    found = core_shares(core, SHAPES[0], Kept(KEPT.nodes, KEPT.inner_entries), "none")
    assert found.inner.any()
    assert not found.boundary.any()
    assert not found.boundary_backward.any()


def test_attention_waits_for_the_boundary(core: DeviceProfile) -> None:
    shape = layer_shapes("gat", 48, 32, 2, 16, heads=2)[0]
    found = core_shares(core, shape, KEPT, "exchange-first")
    assert not found.inner.any()
    assert found.boundary == pytest.approx((6800 * (8 + 4 * 48) + 1000 * 4 * 48) / RATE)
    assert not found.dropped.any()
    assert found.dropped_boundary == pytest.approx(2 * 4 * 1300 * 48 / RATE)


@pytest.mark.parametrize(("order", "others"), [("exchange-first", 300), ("dropout-first", 0)])
def test_dropout_reads_and_writes_rows(core: DeviceProfile, order: str, others: int) -> None:
    found = core_shares(core, SHAPES[0], KEPT, order)
    assert found.dropped == pytest.approx(2 * 4 * 1000 * 48 / RATE)
    assert found.dropped_boundary == pytest.approx(2 * 4 * others * 48 / RATE)


def test_norms_are_each_layers_map_once_more(core: DeviceProfile) -> None:
    maps = [4 * (1000 * a + a * b + 1000 * b) for a, b in ((48, 32), (32, 16))]
    assert norms_seconds(core, 1000, SHAPES) == pytest.approx(sum(maps) / RATE)


def test_received_values_are_added_to_ones_own(core: DeviceProfile) -> None:
    assert adding_seconds(core, 4e6) == pytest.approx(3 * 4e6 / RATE)


def test_bytes_of_a_message_take_a_core_at_either_end(server: HostProfile) -> None:
    found = socket_core_seconds(server, np.array([0.0, 2e6]))
    assert found == pytest.approx([0.0, 2e6 / server.socket_bandwidth.value])


CALL = 1e-4
GCN = layer_shapes("gcn", 32, 16, 2, 8)
SAGE = layer_shapes("graphsage", 32, 16, 2, 8)


def cost(forward: float, backward: float) -> LayerCost:
    """A layer whose time is in its update, float64[1] each."""
    nothing = np.zeros(1)
    return LayerCost(nothing, np.array([forward]), np.array([backward]), nothing)


def test_a_pass_takes_at_least_its_calls() -> None:
    bound = host_bound(cost(0.5 * CALL, 50 * CALL), CALL)
    assert bound.update == pytest.approx([LAYER_CALLS * CALL])
    assert bound.update_backward == pytest.approx([50 * CALL])


def test_graphsage_and_norms_need_more_calls() -> None:
    assert layer_calls(GCN[0], norm=False) == LAYER_CALLS
    assert layer_calls(GCN[0], norm=True) == LAYER_CALLS + 1
    assert layer_calls(SAGE[0], norm=False) == LAYER_CALLS + 2


def test_who_waits_in_no_layer_pays_once_for_what_the_host_takes_longer() -> None:
    layers, loss = [cost(1e-3, 0.0), cost(0.0, 0.0)], np.array([2e-4])
    found, late = with_host_calls(layers, loss, CALL, GCN, norm=False, waits_in_layers=False)
    assert found == layers
    assert late == pytest.approx([(4 * LAYER_CALLS + LOSS_CALLS) * CALL - 1e-3])
    busy = [cost(1.0, 1.0), cost(1.0, 1.0)]
    _, hidden = with_host_calls(busy, loss, CALL, GCN, norm=False, waits_in_layers=False)
    assert hidden == pytest.approx(loss)


def test_who_waits_for_rows_pays_in_every_layer() -> None:
    layers, loss = [cost(1.0, 0.0), cost(0.0, 0.0)], np.array([2e-4])
    found, late = with_host_calls(layers, loss, CALL, SAGE, norm=True, waits_in_layers=True)
    calls = [LAYER_CALLS + 3, LAYER_CALLS + 2]
    assert [float(layer.update[0]) for layer in found] == pytest.approx([1.0, calls[1] * CALL])
    assert [float(layer.update_backward[0]) for layer in found] == pytest.approx([count * CALL for count in calls])
    assert late == pytest.approx([LOSS_CALLS * CALL])


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn", "bns-gcn", "cagnet-1d", "sancus", "roc"])
def test_every_method_waits_for_the_calls_of_loss_and_step(name: str) -> None:
    def iteration_s(call_s: str) -> float:
        return simulate(
            {
                "schema": SCHEMA,
                "workload": {"nodes": 2000, "edges": 20000, "features": 16, "hidden": 16, "classes": 4, "layers": 2},
                "cluster": {"gpus": 2, "bandwidth": "10Gbps", "figures": {"generic-16.call_s": call_s}},
                "method": {"name": name},
                "run": {"iterations": 4},
            }
        ).result.metrics.iteration_s

    assert iteration_s("1ms") - iteration_s("0s") > 0.9e-3 * (LOSS_CALLS + STEP_CALLS)
