"""Named random streams, and the types of numbers."""

from __future__ import annotations

import itertools
import subprocess
import sys

import numpy as np
import pytest

from gcnsim.core.ids import frozen
from gcnsim.core.streams import stream

Names = tuple[str | int, ...]


def numbers(seed: int, *names: str | int) -> list[int]:
    found: list[int] = stream(seed, *names).integers(2**62, size=4).tolist()
    return found


def test_any_other_seed_or_name_other_numbers() -> None:
    labels: list[Names] = [("trace", 1), ("trace", 2), ("trace", "1"), ("trace",), ("trace1",), ("1", "trace"), ()]
    drawn = [numbers(seed, *names) for seed, names in itertools.product((0, 1), labels)]
    assert len({tuple(item) for item in drawn}) == len(drawn)


def test_drawing_more_from_one_does_not_move_another() -> None:
    one, other = stream(0, "a"), stream(0, "b")
    one.random(1000)
    assert other.random() == stream(0, "b").random()


def test_same_numbers_in_another_process() -> None:
    code = "from gcnsim.core.streams import stream; print(stream(5, 'x', 2).integers(2**62, size=4).tolist())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(numbers(5, "x", 2))


def test_the_numbers_of_seed_zero_never_change() -> None:
    # Recorded traces rest on them; a change here changes every stored result.
    assert stream(0, "trace", 3).integers(1000, size=5).tolist() == STORED


STORED = [161, 594, 402, 429, 992]


def test_frozen_is_a_read_only_view_and_leaves_the_original_alone() -> None:
    array = np.arange(3)
    view = frozen(array)
    with pytest.raises(ValueError, match="read-only"):
        view[0] = 7
    array[0] = 7
    assert view.tolist() == [7, 1, 2]
    assert np.shares_memory(array, view)
