"""What operations of one layer on a core share one measured time by, worked by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import Kept, adding_seconds, core_shares, norms_seconds, socket_core_seconds
from gcnsim.hardware import DeviceProfile, HostProfile
from gcnsim.workload import layer_shapes

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


@pytest.mark.parametrize("model", ["gat", "graphsage"])
def test_what_joins_all_rows_waits_for_the_boundary(core: DeviceProfile, model: str) -> None:
    more = {"heads": 2} if model == "gat" else {"sage_aggregator": "pool"}
    shape = layer_shapes(model, 48, 32, 2, 16, **more)[0]
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
