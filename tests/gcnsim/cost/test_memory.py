"""What a worker's GPU holds: the laws, against sums done by hand and published figures."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from gcnsim.cost import RESERVED, Memory, MemoryCounts, partition_memory
from gcnsim.timeline import Direction
from gcnsim.workload import layer_shapes

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
