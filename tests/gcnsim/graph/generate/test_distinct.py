from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.errors import GraphError
from gcnsim.core.ids import IntArray
from gcnsim.core.streams import stream
from gcnsim.graph import build_csr
from gcnsim.graph.generate.communities import BLOCK, blocks, distinct_edges, graph_of, keys_of


def _draw(nodes: int, seed: int) -> tuple[list[int], object]:
    requested: list[int] = []

    def draw(turn: int, count: int) -> IntArray:
        requested.append(count)
        ends = stream(seed, "test", turn).integers(0, nodes, (2, count))
        return keys_of(ends[0], ends[1])

    return requested, draw


def test_all_pairs_are_found_by_drawing_again_what_was_drawn_twice() -> None:
    requested, draw = _draw(20, 0)
    keys = distinct_edges(draw, 190, 0, "complete")  # type: ignore[arg-type]
    assert np.unique(keys).size == 190
    assert len(requested) > 2


def test_a_surplus_is_left_out_and_the_number_is_exact() -> None:
    _, draw = _draw(1000, 1)
    keys = distinct_edges(draw, 5000, 0, "g")  # type: ignore[arg-type]
    assert keys.size == 5000
    assert np.all(np.diff(keys) > 0)


def test_draws_that_only_repeat_themselves_are_given_up() -> None:
    with pytest.raises(GraphError, match="g: 5 edges: only 1 different ones were found; use fewer"):
        distinct_edges(lambda turn, count: np.full(count, keys_of(np.array([1]), np.array([0]))[0]), 5, 0, "g")


def test_the_graph_of_keys_is_the_one_built_from_both_directions() -> None:
    _, draw = _draw(300, 2)
    keys = distinct_edges(draw, 900, 0, "g")  # type: ignore[arg-type]
    low, high = keys >> 32, keys & 0xFFFFFFFF
    built = build_csr(np.concatenate([low, high]), np.concatenate([high, low]), 300, "g")
    assert graph_of(keys, 300, "g").content_hash() == built.content_hash()


def test_blocks_are_joined_in_order() -> None:
    found = blocks(2 * BLOCK + 5, lambda start, stop: np.array([start, stop]), 1)
    assert found.tolist() == [0, BLOCK, BLOCK, 2 * BLOCK, 2 * BLOCK, 2 * BLOCK + 5]
    assert blocks(0, lambda start, stop: np.array([start]), 1).size == 0
