"""What block rows and swapping hold, against sums by hand; SANCUS' stored rows against its Table 5."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gcnsim.cost import Block, block_memory, swapped_host_bytes, swapped_memory
from gcnsim.workload import LayerShape, layer_shapes

SHAPES = layer_shapes("gcn", 100, 20, 2, 5)
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
