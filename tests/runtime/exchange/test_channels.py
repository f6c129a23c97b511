"""Channels over real ranks: messages of any size, collectives, and peers that fail or keep silent."""

from __future__ import annotations

import numpy as np
import pytest

from tests.runtime.crew import Crew
from tests.runtime.exchange.channel_jobs import apart, collected, deserted, gathered, left_alone, message, swapped


def test_parcels_of_unequal_sizes_some_of_them_empty(crew: Crew) -> None:
    sizes = [[0, 5, 0, 1], [2, 0, 300, 0], [0, 0, 0, 0], [7, 1, 2, 0]]
    content = crew.run(4, swapped, sizes, 3)
    for rank, (found, done) in enumerate(content):
        for turn, incoming in enumerate(found):
            for m, rows in enumerate(incoming):
                assert np.array_equal(rows, message(m, rank, sizes[m][rank], turn)), f"{m} to {rank}"
        coming = [(m, False) for m in range(4) if sizes[m][rank]]
        going = [(m, True) for m in range(4) if sizes[rank][m]]
        assert len(done) == 3 * len(coming + going), "empty messages never travel"
        assert set(done) == set(coming + going)
        for turn in range(3):
            text = done[turn * len(coming + going) :][: len(coming + going)]
            assert text[: len(coming)] == coming, "receives first"


def test_arrays_of_different_lengths(crew: Crew) -> None:
    payloads = [b"", b"\x00\x01\xff", bytes(range(256)) * 40]
    for found in crew.run(3, gathered, payloads):
        assert found == payloads


def test_arrays_that_are_all_empty(crew: Crew) -> None:
    assert crew.run(2, gathered, [b"", b""]) == [[b"", b""]] * 2


def test_collectives(crew: Crew) -> None:
    assert crew.run(3, collected) == [(7.0, [1.0, 2.0, 4.0], 2.0, True)] * 3


def test_transfers_of_different_lanes_never_meet(crew: Crew) -> None:
    assert crew.run(2, apart) == [(1.0, 2.0)] * 2


@pytest.mark.parametrize("kind", ["rows", "sum"])
def test_a_silent_peer_is_found_by_the_timeout(crew: Crew, kind: str) -> None:
    content = crew.run(3, left_alone, 1, 2.0, kind)
    for rank in (0, 2):
        text, seconds = content[rank]
        # Of a sum nobody can say who is missing; the first to give up also closes the connection of the other.
        assert text.startswith("worker 1: " if kind == "rows" else "a worker: "), text
        assert "\n" not in text
        assert text.endswith("(channel rows)")
        assert seconds < 30.0
    assert any("timed out: no answer within 2 s" in content[rank][0] for rank in (0, 2))
    if kind == "rows":
        assert all("timed out: no answer within 2 s" in content[rank][0] for rank in (0, 2))


def test_a_peer_that_left_is_named(crew: Crew) -> None:
    content = crew.run(3, deserted, 2)
    for rank in (0, 1):
        assert content[rank].startswith("worker 2: the connection failed: "), content[rank]
        assert "\n" not in content[rank]
