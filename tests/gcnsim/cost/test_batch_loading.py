"""Drawing mini-batches and reading their rows: what a host's thread, its cores, and a GPU take."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import (
    gpu_draw_seconds,
    host_draw_core_seconds,
    pick_core_seconds,
    row_bytes,
    stored_graph_bytes,
    training_calls,
    uva_graph_bytes,
    uva_row_bytes,
)
from gcnsim.hardware import DeviceProfile, HostProfile

CALL, LAUNCH = 1e-4, 1e-5
SOME = np.array([1_000_000])


def test_a_host_thread_draws_entry_by_entry_and_calls_for_each_layer(server: HostProfile) -> None:
    # 10 M neighbours, 100 M looked at and 20 M of a sub-graph's entries a second; 10 calls of 0.1 ms a layer.
    found = host_draw_core_seconds(server, 2 * SOME, SOME, 3, subgraph=False)
    assert found == pytest.approx([2e6 / 1e8 + 1e6 / 1e7 + 3 * 10 * CALL], rel=1e-12)
    found = host_draw_core_seconds(server, 2 * SOME, SOME, 1, subgraph=True)
    assert found == pytest.approx([2e6 / 1e8 + 1e6 / 2e7 + 10 * CALL], rel=1e-12)


def test_a_gpu_draws_as_long_as_its_traffic_or_the_hosts_calls(gpu: DeviceProfile, server: HostProfile) -> None:
    # 300 bytes an entry at 100 GB/s and 25 launches a layer; or 10 calls a layer.
    found = gpu_draw_seconds(gpu, server, np.array([10, 100_000_000]), 2)
    assert found == pytest.approx([2 * 10 * CALL, 1e8 * 300 / 100e9 + 2 * 25 * LAUNCH], rel=1e-12)


def test_cores_pick_rows_up_to_the_memorys_bandwidth(server: HostProfile) -> None:
    # 1 GB/s a core; 50 GB/s of memory, of which a byte picked takes two.
    nbytes = float(row_bytes(SOME, 64)[0])
    assert pick_core_seconds(server, SOME, 64, 25.0, 1.0) == pytest.approx([nbytes / 1e9], rel=1e-12)
    for threads, share in ((50.0, 1.0), (25.0, 0.5)):
        found = pick_core_seconds(server, SOME, 64, threads, share)
        assert found / threads == pytest.approx([nbytes / (25e9 * share)], rel=1e-12)


@pytest.mark.parametrize(("width", "bytes_read"), [(64, 256), (602, 77 * 32), (8, 32), (1, 64)])
def test_rows_are_read_by_uva_in_whole_sectors(server: HostProfile, width: int, bytes_read: int) -> None:
    # 602 values are 2408 bytes: 75.25 sectors, which begin anywhere, so 77 are asked for.
    assert uva_row_bytes(server, SOME, width) == pytest.approx([1e6 * bytes_read / 0.8], rel=1e-12)


def test_a_graph_is_read_by_uva_entry_by_entry_or_list_by_list(server: HostProfile) -> None:
    looked, kept, rows = 100 * SOME, SOME, np.array([1000])
    found = uva_graph_bytes(server, looked, kept, rows, subgraph=False)
    assert found == pytest.approx([(1e6 + 1000) * 64 / 0.8], rel=1e-12)
    found = uva_graph_bytes(server, looked, kept, rows, subgraph=True)
    assert found == pytest.approx([(1e8 * 4 + 1000 * 64) / 0.8], rel=1e-12)
    assert stored_graph_bytes(10, 100) == 880


def test_a_batch_is_trained_by_calls_of_its_own_and_of_its_layers() -> None:
    assert training_calls(3) == 5 + 2 * 3 * 7


def test_free_calls_cost_nothing(gpu: DeviceProfile, server: HostProfile) -> None:
    free = replace(server, operation_s=replace(server.operation_s, value=0.0))
    assert host_draw_core_seconds(free, 0 * SOME, 0 * SOME, 3, subgraph=False) == pytest.approx([0.0])
    assert gpu_draw_seconds(gpu, free, 0, 3) == pytest.approx(3 * 25 * LAUNCH)
