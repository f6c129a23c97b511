"""A field with a number for each layer of the model."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.per_layer import PerLayerValues

PLAIN, SHARED = PerLayerValues(), PerLayerValues(shares=True)


@pytest.mark.parametrize(
    ("raw", "values"),
    [
        ("25,10", (25, 10)),
        (" 25 , 10 ", (25, 10)),
        (7, (7,)),
        ([25, "10"], (25, 10)),
        ("1", (1,)),
        ("1000000000", (1_000_000_000,)),
    ],
)
def test_numbers_of_every_layer(raw: Any, values: tuple[int, ...]) -> None:
    assert PLAIN.read(raw, "p") == SHARED.read(raw, "p") == values
    assert PLAIN.read(PLAIN.write(values), "p") == values


def test_shares_stand_where_they_may() -> None:
    assert SHARED.read("10%,5", "p") == (0.1, 5)
    assert SHARED.write((0.1, 5)) == "10%,5"
    assert SHARED.read("100%,0.5%", "p") == (1.0, 0.005)
    with pytest.raises(ScenarioError, match="p: '10%,5' is not allowed; whole numbers of at least 1 separated"):
        PLAIN.read("10%,5", "p")
    assert "or shares (10%)" in SHARED.allowed


@pytest.mark.parametrize("raw", ["0", "-1", "x", "", "1000000001", "101%", "0%", True, 2.5, None, [], [True]])
def test_what_is_no_number_of_a_layer(raw: Any) -> None:
    with pytest.raises(ScenarioError, match=r"^p: .* is not allowed; whole numbers of at least 1 or shares"):
        SHARED.read(raw, "p")


def test_values_made_by_hand_are_checked_too() -> None:
    for wrong in ((), (0,), (True,), (0.0,), (1.5,), [5]):
        with pytest.raises(ScenarioError, match="is not allowed"):
            SHARED.check(wrong, "p")
    with pytest.raises(ScenarioError, match="is not allowed"):
        PLAIN.check((0.5,), "p")
