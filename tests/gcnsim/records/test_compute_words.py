"""Measured iterations as they are replayed: those that refresh the sampling probabilities come as often as they do."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.streams import stream
from gcnsim.records.compute_facts import replayed


@pytest.mark.parametrize(
    ("refreshing", "period", "iterations", "due", "others"),
    [
        ([False, True, False, False], 4, None, [1], [0, 2, 3]),
        ([False, True, False, True], 4, None, [1, 3], [0, 0, 0, 2, 2, 2]),
        ([False, True, False, True], 4, 5, [1, 3], [0, 2, 2]),
        ([False, True, False], 1, None, [1], []),
        ([False, False], 4, None, [], [0, 1]),
        ([True, True], 4, None, [0, 1], []),
    ],
)
def test_iterations_that_refresh_come_as_often_as_they_do_in_training(
    refreshing: list[bool], period: int, iterations: int | None, due: list[int], others: list[int]
) -> None:
    order = replayed(np.array(refreshing), period, stream(0, "test"), iterations)
    first = order[::period] if due and others else order[: len(due)]
    assert sorted(first) == due
    assert sorted(np.setdiff1d(order, due)) == sorted(set(others))
    assert order.size == len(due) + len(others)


def test_the_order_is_drawn() -> None:
    orders = [replayed(np.zeros(20, np.bool_), 1, stream(seed, "test")).tolist() for seed in (0, 0, 1)]
    assert orders[0] == orders[1] != orders[2]
    assert sorted(orders[0]) == sorted(orders[2]) == list(range(20))
