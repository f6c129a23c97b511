"""What a worker's GPU holds: the laws, against sums done by hand and published figures."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from gcnsim.cost import RESERVED, Held, Memory, equation_4, history_bytes, least_partitions, partition_memory
from gcnsim.workload import layer_shapes

SHAPES = layer_shapes("gcn", 100, 20, 2, 5)
HELD = Held(inner=1000, entries=5000, crossing=800, boundary=300, rows=300, asked=200)


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
    drawn = replace(HELD, kept=1400, kept_crossing=80, rows=70, asked=60, graphs=5, tau=2)
    whole = partition_memory(SHAPES, HELD, norm=False)
    sampled = partition_memory(SHAPES, drawn, norm=False)
    assert sampled.boundary < whole.boundary
    one = partition_memory(SHAPES, replace(drawn, graphs=1), norm=False)
    assert whole.adjacency < one.adjacency < 1.5 * whole.adjacency
    assert sampled.adjacency - whole.adjacency == pytest.approx(5 * (one.adjacency - whole.adjacency))


def test_averages_keep_a_copy_of_what_comes() -> None:
    plain, both = (partition_memory(SHAPES, HELD, norm=False, averages=count).boundary for count in (0, 2))
    assert both - plain == 4 * 2 * 300 * (100 + 20)


def test_a_dense_layer_exchanges_nothing_and_keeps_no_sum() -> None:
    dense = layer_shapes("gcn", 100, 20, 2, 5, dense=1)
    memory = partition_memory(dense, HELD, norm=False)
    assert memory.boundary == 4 * 1.125 * 500 * 100
    assert memory.activations == 4 * 1000 * (100 + 20)


def test_fits_leaves_what_no_tensor_gets() -> None:
    memory = partition_memory(SHAPES, HELD, norm=False)
    assert memory.fits(memory.total + RESERVED)
    assert not memory.fits(memory.total + RESERVED - 1)


def test_least_partitions_is_the_least_that_fits() -> None:
    nodes = 50_000_000
    held = Held(inner=nodes // 4, entries=nodes * 5, crossing=1000, boundary=1000, rows=1000, asked=1000)
    memory = partition_memory(SHAPES, held, norm=False)
    least = least_partitions(memory, 4, 16e9)
    assert least is not None
    assert least > 4
    assert not memory.fits(16e9)

    def share(parts: int) -> Memory:
        split = replace(held, inner=nodes // parts, entries=nodes * 20 // parts)
        return partition_memory(SHAPES, split, norm=False)

    assert share(least).fits(16e9)
    assert not share(least - 1).fits(16e9)
    assert least_partitions(memory, 4, RESERVED) is None, "not even an empty part fits"


def test_equation_4_is_the_papers() -> None:
    assert equation_4(SHAPES, 10, 4) == 4 * (3 * 10 + 4) * (100 + 20)


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
    assert history_bytes(nodes, gpus, features) / unit == pytest.approx(printed, abs=digit * 1.05)
