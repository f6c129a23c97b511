"""Bytes of a worker: partitions and blocks, by hand."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from gcnsim.cost import (
    RESERVED,
    Block,
    Memory,
    MemoryCounts,
    block_memory,
    partition_memory,
    swapped_host_bytes,
    swapped_memory,
)
from gcnsim.timeline import Direction
from gcnsim.workload import LayerShape, layer_shapes

SHAPES = layer_shapes("gcn", 100, 20, 2, 5)
HELD = MemoryCounts(inner=1000, entries=5000, crossing=800, boundary=300, rows=300, asked=200)


def test_components_by_hand() -> None:
    memory = partition_memory(SHAPES, HELD, norm=False)
    weights = 100 * 20 + 20 + 20 * 5 + 5
    assert memory.features == 1000 * (400 + 8)
    assert memory.activations == 4 * 1000 * (100 + 20 + 20), "both sums' results and the hidden rows"
    assert memory.boundary == 4 * 1.125 * 500 * (100 + 20 + 20), "forward both widths, backward the second"
    assert memory.adjacency == 4200 * 24 + 4 * 2002 + 800 * 24 + 4 * 1302
    assert (memory.model, memory.gradients, memory.optimizer) == (4 * weights, 4 * weights, 8 * weights)
    assert memory.cache == 0
    assert memory.total == sum(getattr(memory, field.name) for field in fields(Memory))
    assert memory.held == memory.total - memory.workspace


def test_a_norm_keeps_its_input() -> None:
    without, with_norm = (partition_memory(SHAPES, HELD, norm=norm) for norm in (False, True))
    assert with_norm.activations - without.activations == 4 * 1000 * 20


def test_slots_hold_tau_copies_in_flight() -> None:
    one, three = (partition_memory(SHAPES, replace(HELD, tau=tau), norm=False).boundary for tau in (1, 3))
    assert three == 3 * one
    assert partition_memory(SHAPES, HELD, norm=False).boundary == one, "a synchronous method fills one"


def test_drawn_graphs_hold_less_each() -> None:
    memory_counts = replace(HELD, kept=1400, kept_crossing=80, rows=70, asked=60, graphs=5, tau=2)
    whole = partition_memory(SHAPES, HELD, norm=False)
    sampled = partition_memory(SHAPES, memory_counts, norm=False)
    assert sampled.boundary < whole.boundary
    one = partition_memory(SHAPES, replace(memory_counts, graphs=1), norm=False)
    assert whole.adjacency < one.adjacency < 1.5 * whole.adjacency
    assert sampled.adjacency - whole.adjacency == pytest.approx(5 * (one.adjacency - whole.adjacency))


def test_averages_keep_a_copy_of_what_comes() -> None:
    def kept(*directions: Direction) -> float:
        plain, smoothed = (
            partition_memory(SHAPES, HELD, norm=False, averages=item).boundary for item in ((), directions)
        )
        return smoothed - plain

    rows, gradients = 4 * 300 * (100 + 20), 4 * 200 * 20
    assert kept(Direction.FORWARD) == rows, "of the boundary, in both layers"
    assert kept(Direction.BACKWARD) == gradients, "of the rows that others ask for, of all but the input"
    assert kept(Direction.FORWARD, Direction.BACKWARD) == rows + gradients


def test_a_dense_layer_exchanges_nothing_and_keeps_no_sum() -> None:
    dense = layer_shapes("gcn", 100, 20, 2, 5, dense=1)
    memory = partition_memory(dense, HELD, norm=False)
    assert memory.boundary == 4 * 1.125 * 500 * 100
    assert memory.activations == 4 * 1000 * (100 + 20)


def test_fits_leaves_what_no_tensor_gets() -> None:
    memory = partition_memory(SHAPES, HELD, norm=False)
    assert memory.fits(memory.total + RESERVED)
    assert not memory.fits(memory.total + RESERVED - 1)


def test_rows_lie_in_their_buffers_as_they_travel() -> None:
    fp32, half, int8 = (partition_memory(SHAPES, HELD, norm=False, payload=name) for name in ("fp32", "fp16", "int8"))
    assert half.boundary == fp32.boundary / 2
    assert int8.boundary == 1.125 * 500 * (100 + 8 + 2 * (20 + 8)), "a scale and a zero point for each row"
    for packed in (half, int8):
        assert packed.workspace - fp32.workspace == 4 * 300 * 100, "the widest layer's rows, unpacked"
        assert replace(packed, boundary=0, workspace=0) == replace(fp32, boundary=0, workspace=0)


WEIGHTS = 100 * 20 + 20 + 20 * 5 + 5
BLOCK = Block(rows=10, entries=60, stages=4, received=12)


@pytest.mark.parametrize(
    ("nodes", "features", "gpus", "printed", "unit", "digit"),
    [
        # SANCUS, Table 5 (rows marked input): printed MB and GB are binary.
        (89_250, 500, 2, 170.2, 2**20, 0.05),
        (89_250, 500, 4, 255.3, 2**20, 0.05),
        (89_250, 500, 8, 297.9, 2**20, 0.05),
        (232_965, 602, 2, 0.5, 2**30, 0.05),
        (232_965, 602, 4, 0.8, 2**30, 0.05),
        (232_965, 602, 8, 0.9, 2**30, 0.05),
        (1_598_960, 200, 2, 1.2, 2**30, 0.05),
        (1_598_960, 200, 4, 1.8, 2**30, 0.05),
        (1_598_960, 200, 8, 2.1, 2**30, 0.05),
        (2_449_029, 100, 2, 0.9, 2**30, 0.05),
        (2_449_029, 100, 4, 1.4, 2**30, 0.05),
        (2_449_029, 100, 8, 1.6, 2**30, 0.05),
    ],
)
def test_history_is_the_published_size(
    nodes: int, features: int, gpus: int, printed: float, unit: float, digit: float
) -> None:
    one = (LayerShape(features, 16, 1),)
    rows = nodes // gpus
    held = block_memory(one, Block(rows=rows, entries=0, stages=gpus, received=rows, stored=nodes - rows), norm=False)
    assert held.cache / unit == pytest.approx(printed, abs=digit * 1.05)


def test_a_block_row_of_two_layers_by_hand() -> None:
    held = block_memory(SHAPES, BLOCK, norm=False)
    assert held.features == 10 * (4 * 100 + 8)
    assert held.adjacency == 8 * 60 + 4 * 4 * 11
    assert held.activations == 4 * 10 * 20
    assert held.boundary == 4 * 12 * 100, "one block at a time, of the widest rows"
    assert held.cache == 0
    assert (held.model, held.gradients, held.optimizer) == (4 * WEIGHTS, 4 * WEIGHTS, 8 * WEIGHTS)
    assert held.workspace == 4 * 10 * (100 + 20 + 3 * 5)
    assert block_memory(SHAPES, BLOCK, norm=True).activations == 2 * held.activations


def test_replicas_add_a_buffer_for_the_sums_of_the_others() -> None:
    alone, shared = (block_memory(SHAPES, replace(BLOCK, replicas=c), norm=False) for c in (1, 2))
    assert shared.boundary - alone.boundary == 4 * 10 * 100


def test_kept_blocks_are_received_where_they_stay() -> None:
    plain = block_memory(SHAPES, BLOCK, norm=False)
    memory = block_memory(SHAPES, replace(BLOCK, stored=30), norm=False)
    assert memory.boundary == 0
    assert memory.cache == 30 * (8 * 100 + 4 * 20)
    assert block_memory(SHAPES, replace(BLOCK, stored=30, copied=10), norm=False).cache == memory.cache + 4 * 10 * 120
    assert memory.total - memory.cache == plain.total - plain.boundary


def test_roc_holds_its_model_and_the_largest_step() -> None:
    held = swapped_memory(SHAPES, 10, 7, 60)
    product = 4 * 10 * (100 + 20)
    summed = 4 * (2 * 10 + 7) * 20 + 8 * 60 + 4 * 11
    assert held.workspace == max(product, summed)
    assert held.total == held.workspace + 4 * 4 * WEIGHTS
    many = swapped_memory(SHAPES, 10, 700, 60)
    assert many.workspace == 4 * 720 * 20 + 8 * 60 + 4 * 11


def test_the_servers_memory_holds_what_roc_swaps() -> None:
    assert swapped_host_bytes(SHAPES, 10, 60) == 10 * 408 + 8 * 60 + 4 * 11 + 4 * 10 * (2 * 25 + 100)


def test_a_layer_that_sums_nothing_receives_nothing() -> None:
    first = replace(SHAPES[0], gathers=False)
    held = block_memory((first, SHAPES[1]), replace(BLOCK, stored=30), norm=False)
    assert held.cache == 30 * 4 * 20
    assert swapped_memory((first,), 10, 700, 60).workspace == 4 * 10 * 120
