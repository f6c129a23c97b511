"""What an accelerator's waits need: options, a clock, copies."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import numpy as np
import pytest

from gcnsim.core.streams import stream
from runtime.accelerator.machine import NS, CopyLink, Lane, Table, now, shared, sleep_until
from runtime.emulate.command import main
from runtime.emulation.spec import TABLE_BYTES
from runtime.launch import Place
from tests.runtime.crew import Crew

HERE = "--hosts 2 --bandwidth 10Gbps --accelerator t4"
WRONG = {
    "device": ("--hosts 2 --bandwidth 10Gbps --accelerator rxt-4090", "unknown device 'rxt-4090'; did you mean"),
    "core": (
        "--hosts 2 --bandwidth 10Gbps --accelerator cpu-core",
        "--accelerator: cpu-core is not a GPU; workers",
    ),
    "file": ("--hosts 2 --bandwidth 10Gbps --accelerator no.yaml", "no.yaml: cannot be read"),
    "alone": ("--hosts 2 --bandwidth 10Gbps --scale 3", "--scale: 3.0 needs --accelerator; allowed: with it only"),
    "fast": (f"{HERE} --scale 0.5", "--scale: 0.5 is not allowed; a number of at least 1"),
    "slow": (f"{HERE} --scale 9999", "--scale: 9999 makes links slower than 5 Mbit/s; allowed: 1 to 2000"),
    "host": (f"{HERE} --host other", "unknown host 'other'; known: Standard_NC4as_T4_v3"),
    "crowd": (f"{HERE} --workers-per-host 17", "--workers-per-host: 17 is more than the 16 cores of generic-16"),
    "latency": (f"{HERE} --latency 1ms", "--latency: is not modelled with --accelerator, whose latency is measured"),
    "limiter": (f"{HERE} --limiter exchange", "--limiter: exchange has no links to measure; allowed with"),
    "no rank": (f"{HERE} --slow-worker two", "--slow-worker: 'two' is not allowed; allowed: RANK:FACTOR"),
    "rank": (f"{HERE} --slow-worker 2:1.5", "--slow-worker: 2 is not allowed; a whole number of at least 0"),
    "factor": (f"{HERE} --slow-worker 1:1", "--slow-worker: 1 is not allowed; a number above 1"),
    "lonely": ("--hosts 1 --bandwidth 10Gbps --accelerator t4 --background 1Gbps", "--background: goes from host 0"),
    "others": (
        f"{HERE} --background 10Gbps",
        "--background: 10Gbps is not allowed; a bandwidth above 0B/s and at most 9Gbps",
    ),
    "switch": (f"{HERE} --gpus-per-switch -1", "--gpus-per-switch: -1 is not allowed; a whole number of at least 0"),
    "receives": (f"{HERE} --receives never", "Invalid value for '--receives': 'never' is not one of 'reached'"),
    "method": (
        f"{HERE} -- --method pipegcn-g",
        "--method: pipegcn-g is not possible with --accelerator; allowed: full",
    ),
    "model": (f"{HERE} -- --model gat", "--model: gat is not possible with --accelerator; allowed: gcn, graphsage"),
    "dropout": (f"{HERE} -- --dropout 0.5", "--dropout: 0.5 is not possible with --accelerator; allowed: 0.0"),
}


@pytest.mark.parametrize(("typed", "words"), WRONG.values(), ids=WRONG)
def test_every_mistake_is_one_line(
    typed: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(typed.split()) == 2
    done = capsys.readouterr()
    assert done.err.startswith(f"runtime.emulate: {words}")
    assert (done.err.count("\n"), done.out) == (1, "")


LENGTH, COUNT, LATE = 4_000_000, 50, 200_000_000


def test_pieces_that_are_ready_follow_one_another_exactly_and_lateness_does_not_add_up() -> None:
    lane, begun = Lane(), now()
    ends = [lane.work(begun, LENGTH)[1] for _ in range(COUNT)]
    assert ends == [begun + LENGTH * (index + 1) for index in range(COUNT)]
    # One late waking at the most is left, however many pieces there were.
    assert 0 <= now() - ends[-1] < LATE


def test_a_piece_waits_until_it_is_ready() -> None:
    lane, begun = Lane(), now()
    assert lane.work(begun, LENGTH) == (begun, begun + LENGTH)
    later = begun + 3 * LENGTH
    assert lane.work(later, LENGTH) == (later, later + LENGTH)


def test_an_instant_that_has_passed_is_not_waited_for() -> None:
    begun = now()
    sleep_until(begun - NS)
    assert now() - begun < LATE


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
