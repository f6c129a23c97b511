"""Measured iterations as they are replayed: those that refresh the sampling probabilities come as often as they do."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.records.compute_words import in_turn


@pytest.mark.parametrize(
    ("refreshing", "period", "order"),
    [
        ([False, True, False, False], 4, [1, 0, 2, 3]),
        ([False, True, False, True], 4, [1, 0, 2, 0, 3, 2, 0, 2]),
        ([False, True, False], 1, [1]),
        ([False, False], 4, [0, 1]),
        ([True, True], 4, [0, 1]),
    ],
)
def test_iterations_that_refresh_come_as_often_as_they_do_in_training(
    refreshing: list[bool], period: int, order: list[int]
) -> None:
    assert in_turn(np.array(refreshing), period).tolist() == order
