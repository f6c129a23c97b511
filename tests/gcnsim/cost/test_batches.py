"""Mini-batches: sampling, loading and training, by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from gcnsim.cost import (
    batch_layer_cost,
    batch_loss_seconds,
    batch_memory,
    boundary_core_seconds,
    boundary_seconds,
    draw_core_seconds,
    draw_nodes_core_seconds,
    gpu_draw_seconds,
    graph_bytes,
    host_draw_core_seconds,
    id_bytes,
    pick_core_seconds,
    row_bytes,
    stored_graph_bytes,
    training_calls,
    uva_graph_bytes,
    uva_row_bytes,
)
from gcnsim.hardware import DeviceProfile, HostProfile
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


CALL, LAUNCH_S = 1e-4, 1e-5
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
    assert found == pytest.approx([2 * 10 * CALL, 1e8 * 300 / 100e9 + 2 * 25 * LAUNCH_S], rel=1e-12)


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
    assert gpu_draw_seconds(gpu, free, 0, 3) == pytest.approx(3 * 25 * LAUNCH_S)


def test_every_entry_is_drawn_every_iteration(server: HostProfile) -> None:
    assert draw_core_seconds(server, 1_000_000, 20, weighted=False) == pytest.approx(0.01)


def test_weights_are_recomputed_once_per_refresh(server: HostProfile) -> None:
    assert draw_core_seconds(server, 1_000_000, 20, weighted=True) == pytest.approx(0.01 + 0.1 / 20)
    assert draw_core_seconds(server, 1_000_000, 1, weighted=True) == pytest.approx(0.01 + 0.1)


def test_nodes_are_drawn_as_entries_are(server: HostProfile) -> None:
    assert draw_nodes_core_seconds(server, 50_000) == pytest.approx(0.0005)


def test_a_boundary_matrix_looks_at_what_crosses_and_builds_the_rest(server: HostProfile, gpu: DeviceProfile) -> None:
    cross, kept = np.array([1_000_000, 0]), np.array([100_000, 0])
    on_core = boundary_core_seconds(server, cross, kept, 20_000)
    assert on_core == pytest.approx([0.01 + 120_000 / 2e7, 20_000 / 2e7])
    values = 2 * cross + 4 * kept + 40_000
    assert boundary_seconds(gpu, cross, kept, 20_000) == pytest.approx(values * 4 / 100e9 + 1e-5)


def test_bytes() -> None:
    assert graph_bytes(np.array([0, 100]), 10).tolist() == [80.0, 880.0]
    assert id_bytes(np.array([0, 7])).tolist() == [0.0, 28.0]
    assert row_bytes(np.array([0, 7]), 16).tolist() == [0.0, 448.0]
