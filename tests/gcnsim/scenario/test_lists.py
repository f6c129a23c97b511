"""Fields with several values: numbers per layer, names per server."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.errors import ScenarioError
from gcnsim.fields.per_layer import Amounts
from gcnsim.scenario.names import Words

PLAIN, SHARED = Amounts(), Amounts(shares=True)
NAMES = Words("device", lambda: ("t4", "h100"), own=lambda text: text.endswith(".yaml"))


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


def test_names_of_every_server() -> None:
    assert NAMES.read("t4, h100", "p") == NAMES.read(["t4", "h100"], "p") == ("t4", "h100")
    assert NAMES.read("mine.yaml,t4", "p") == ("mine.yaml", "t4")
    assert NAMES.write(("t4", "h100")) == "t4,h100"
    assert NAMES.allowed == "names separated by commas, the last for all further servers: h100, t4, or files (.yaml)"
    assert Words("device", lambda: ("t4",)).allowed.endswith("servers: t4")


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ("t5", "p: unknown device 't5'; did you mean 't4'"),
        ("t4,", "p: unknown device ''"),
        ([3], "p: unknown device 3"),
        ([], "p: nothing is named"),
        (7, "p: 7 is not allowed; names separated by commas"),
    ],
)
def test_what_names_nothing(raw: Any, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        NAMES.read(raw, "p")
    assert said in str(caught.value)
    with pytest.raises(ScenarioError, match="is not allowed"):
        NAMES.check("t4", "p")
