"""Copies on one link beside the closed form of equal shares, in one process and by way of the file of several."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from gcnsim.core.streams import stream
from runtime.accelerator.clock import now
from runtime.accelerator.machine import CopyLink, Table, shared
from runtime.emulation.spec import TABLE_BYTES
from runtime.launch import Place
from tests.runtime.crew import Crew

RATE = 1e-3
"""Bytes per ns: a megabyte a second."""

MS = 1_000_000


@pytest.mark.parametrize("count", [1, 2, 7])
def test_equal_copies_that_begin_together_end_together(count: int) -> None:
    ends, left = shared(0.0, dict.fromkeys(range(count), (5.0, 1000.0)), RATE, math.inf)
    assert left == {}
    assert list(ends.values()) == pytest.approx([5.0 + count * 1000.0 / RATE] * count)


def test_unequal_copies_end_as_equal_shares_say() -> None:
    """With b1 <= b2 <= ..., the k-th ends after (b1 + ... + bk + (n - k) bk) / rate."""
    sizes = sorted(stream(0, "copies").uniform(1.0, 1e4, 9).tolist())
    ends, _ = shared(0.0, {slot: (0.0, nbytes) for slot, nbytes in enumerate(sizes)}, RATE, math.inf)
    expected = [(sum(sizes[: index + 1]) + (len(sizes) - index - 1) * size) / RATE for index, size in enumerate(sizes)]
    assert [ends[slot] for slot in range(len(sizes))] == pytest.approx(expected)


def test_stopping_on_the_way_changes_nothing() -> None:
    generator = stream(0, "copies on the way")
    copies = {slot: (float(generator.uniform(0, 1e6)), float(generator.uniform(1, 1e3))) for slot in range(12)}
    at_once, _ = shared(0.0, copies, RATE, math.inf)
    ends: dict[int, float] = {}
    time, left = 0.0, dict(copies)
    for until in np.linspace(1e5, 3e7, 60).tolist():
        found, left = shared(time, left, RATE, until)
        ends, time = ends | found, until
    assert left == {}
    assert ends == pytest.approx(at_once)


def test_threads_share_a_link_and_the_instants_are_exact() -> None:
    """The second comes when the first has half its bytes left: both then move at half the rate."""
    link, begun = CopyLink(Table(), RATE), list[int]()
    # A thread that starts late on a busy machine would find the first copy at its end.
    together = Barrier(3, lambda: begun.append(now() + 100 * MS))

    def carried(after: int, nbytes: float) -> float:
        together.wait()
        return (link.carry(begun[0] + after, nbytes) - begun[0]) / MS

    with ThreadPoolExecutor(3) as threads:
        ends = list(threads.map(carried, (0, 20 * MS, 300 * MS), (40_000.0, 40_000.0, 5_000.0)))
    assert ends == pytest.approx([60.0, 80.0, 305.0])


def ready(place: Place) -> None:
    """Nothing: once all have returned, a job begins at once."""


def carried(place: Place, path: str, begun: int, copies: list[tuple[int, int, float]]) -> float:
    """In a process: by its rank, the copy of a link that begins so long after all, and how long after all it ends."""
    link, after, nbytes = copies[place.rank]
    table = Table(Path(path), link)
    assert table._file is not None
    with table._file:
        return (CopyLink(table, RATE).carry(begun + after, nbytes) - begun) / MS


def test_processes_share_a_link_by_way_of_a_file_and_another_link_is_another(crew: Crew, tmp_path: Path) -> None:
    path = tmp_path / "copies"
    path.write_bytes(bytes(2 * TABLE_BYTES))
    copies = [(0, 0, 1_600_000.0), (0, 800 * MS, 1_600_000.0), (1, 0, 1_600_000.0)]
    crew.run(3, ready)
    ends = crew.run(3, carried, str(path), now() + 1_000 * MS, copies)
    assert ends == pytest.approx([2400.0, 3200.0, 1600.0])
