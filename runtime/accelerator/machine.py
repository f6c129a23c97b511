"""One worker's stand-in device: its copy links, and the factor by which everything is slower than on the real one.

The time of a small message is measured before the first iteration. It is measured between one pair of workers of
different hosts and one of the same host, in turn, while all others wait. The time is that of the exchange, its threads
included, as every message of the run has it.

The copies under way on one direction of a PCIe link share it, whether of one worker or of several. All have equal
shares, which is what max-min fairness gives where none crosses a slower link. The copies under way stand in a table
that workers share (a mapped file, one writer at a time). Each computes when it would end if no other came, sleeps until
then, and looks again. A copy that came meanwhile can only have delayed the end, so nobody sleeps too long. The instants
are those of the fluid model, exactly, not those of waking up.

Consecutive waits do not drift: each ends at an absolute instant, computed from the end of the previous one. A thread
wakes about 0.1 ms after the requested instant. Lengths counted from there would accumulate that error; counted from the
instant itself, a shorter sleep compensates a late start. Spans of waits are recorded as the work that they represent.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import math
import mmap
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, Final

import torch

from gcnsim.core.ids import Rank
from gcnsim.hardware import LinkProfile, device, figures_of, host, link
from gcnsim.timeline import Timeline
from runtime.emulation import Accelerator, Emulation
from runtime.emulation.spec import COPIES, TABLE_BYTES, TABLE_CELLS
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.launch import Place
from runtime.launch.watch import realtime_priority
from runtime.record import Recorder

_PR_SET_TIMERSLACK: Final = 29
NS: Final = 1_000_000_000


def now() -> int:
    """Nanoseconds of the machine's monotonic clock, which all its processes share."""
    return time.perf_counter_ns()


def sleep_until(instant: int) -> None:
    """Sleep until `instant`, or not at all if it has passed. Cores are shared, so there is no busy waiting."""
    while (left := instant - time.perf_counter_ns()) > 0:
        time.sleep(left / NS)


def wake_sharply() -> None:
    """Let this thread, and those it starts, be woken on time instead of up to 50 us later (Linux's prctl(2))."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(_PR_SET_TIMERSLACK, 1, 0, 0, 0)


class Lane:
    """A stream: its work runs in sequence, each item from when it is ready and the previous one is done."""

    def __init__(self) -> None:
        self.free = 0
        """When the last piece ended, in ns."""

    def work(self, ready: int, length: int) -> tuple[int, int]:
        """Do work of `length` ns that is ready at the instant `ready`; returns its begin and end."""
        start = max(self.free, ready)
        self.free = start + length
        sleep_until(self.free)
        return start, self.free


class ScaledRecorder(Recorder):
    """A recorder whose clock is `scale` times slower than the machine's."""

    def __init__(self, rank: Rank, scale: float, *, enabled: bool = True) -> None:
        super().__init__(rank, enabled, now=lambda: self.at(now()))
        self._scale = scale

    def at(self, instant: int) -> int:
        """The mark of an instant of the machine's clock, in ns."""
        return round(instant / self._scale)

    def timeline(self, origin_ns: int, offset_ns: int = 0) -> Timeline:
        """See `Recorder.timeline`; both arguments are of the machine's clock."""
        return super().timeline(self.at(origin_ns), round(offset_ns / self._scale))


class WaitMachine:
    """What a worker at `place` has in place of a GPU."""

    def __init__(self, accelerator: Accelerator, emulation: Emulation, place: Place, shared: Path | None) -> None:
        """shared: the file of the copy links that workers have in common; None: they have none."""
        self.accelerator, self.emulation, self.place = accelerator, emulation, place
        self.device, self.host = device(accelerator.name), host(accelerator.host)
        self.scale = accelerator.scale
        copies = link(self.device.link)
        self.copy_latency = self.ns(copies.latency_s.value)
        self.to_host, self.to_device = self._links(copies, shared)
        self.reducing = Lane()
        wake_sharply()

    @classmethod
    def here(cls, place: Place) -> WaitMachine | None:
        """That of this worker; None where it really computes."""
        emulation = Emulation.here()
        if emulation is None or emulation.accelerator is None:
            return None
        shared = os.environ.get(COPIES)
        accelerator = Accelerator(**emulation.accelerator)
        return cls(accelerator, emulation, place, Path(shared) if shared else None)

    def _links(self, copies: LinkProfile, shared: Path | None) -> tuple[CopyLink, CopyLink]:
        """The links to the host and back."""
        rate = copies.bandwidth.value * copies.efficiency.value / self.scale / NS
        if shared is None:
            return CopyLink(Table(), rate), CopyLink(Table(), rate)
        switch = self.place.local_rank // self.accelerator.gpus_per_switch
        first = 2 * (self.emulation.host_of(self.place.rank) * self.emulation.workers_per_host + switch)
        return CopyLink(Table(shared, first), rate), CopyLink(Table(shared, first + 1), rate)

    @property
    def factor(self) -> float:
        """This worker's kernels take so many times as long."""
        return self.accelerator.slow_factor if self.accelerator.slow_worker == self.place.rank else 1.0

    def ns(self, seconds: float) -> int:
        """How long `seconds` of the device take here, in ns."""
        return round(seconds * self.scale * NS)

    def copy(self, way: CopyLink, lane: Lane, ready: int, nbytes: float) -> tuple[int, int]:
        """Copy `nbytes`, in order with the others of `lane`; when it began and ended. Nothing takes no time."""
        start = max(lane.free, ready)
        if nbytes > 0:
            lane.free = way.carry(start + self.copy_latency, nbytes)
        return start, max(lane.free, start) if nbytes > 0 else start

    def recorder(self, *, enabled: bool) -> ScaledRecorder:
        """Of what the waits stand for."""
        return ScaledRecorder(self.place.rank, self.scale, enabled=enabled)

    def measured(self, channel: Channel, control: Channel | None) -> dict[str, Any]:
        """The facts for the run's record, with the network's latencies, just before the first iteration; all workers
        together. From now on this worker is first in line for a core."""
        realtime = realtime_priority(True)
        found = measure(channel, control, self.emulation) if control is not None else {}
        facts: dict[str, Any] = {name: None if value is None else value / self.scale for name, value in found.items()}
        facts["figures"] = {name: figure.value for name, figure in figures_of(self.device).items()}
        accelerator = replace(self.accelerator, realtime=realtime, **facts)
        return self.emulation.asdict() | {"accelerator": accelerator.asdict()}


ROUNDS: Final = 60
BURST: Final = 20
"""Messages one right behind another; what each adds is a message's own cost."""


def measure(channel: Channel, control: Channel, emulation: Emulation) -> dict[str, float | None]:
    """Seconds by name (`latency_s`, `local_latency_s`, `message_s`), the same on all workers; None without a pair."""
    far = emulation.workers_per_host if emulation.hosts > 1 else None
    near = 1 if emulation.workers_per_host > 1 else None
    found: dict[str, float | None] = {"latency_s": None, "local_latency_s": None, "message_s": None}
    for name, peer in (("latency_s", far), ("local_latency_s", near)):
        if peer is None:
            continue
        one = _agreed(channel, control, peer, 1)
        many = _agreed(channel, control, peer, BURST)
        found[name] = one
        if name == "latency_s" or found["message_s"] is None:
            found["message_s"] = max(many - one, 0.0) / (BURST - 1)
    return found


def _agreed(channel: Channel, control: Channel, peer: Rank, count: int) -> float:
    """Seconds of `count` messages one way, half of a round trip, as worker 0 sees it."""
    took = torch.zeros(1, dtype=torch.float64)
    control.barrier()
    if channel.rank in (0, peer):
        took[0] = _one_way(channel, peer if channel.rank == 0 else 0, count, first=channel.rank == 0)
    control.broadcast(took)
    return float(took)


def _one_way(channel: Channel, other: Rank, count: int, *, first: bool) -> float:
    leaving = [Message(other, torch.ones(1), True) for _ in range(count)]
    coming = [Message(other, torch.zeros(1), False) for _ in range(count)]
    seconds = []
    for _ in range(ROUNDS):
        begun = now()
        for messages in (leaving, coming) if first else (coming, leaving):
            channel.exchange(messages)
        seconds.append((now() - begun) * 1e-9 / 2)
    return median(seconds)


_HEAD, _ROW = 1, 3
SLOTS: Final = (TABLE_CELLS - _HEAD) // _ROW
"""Copies that may be under way on one link."""

_FREE, _WAITING, _DONE = 0.0, 1.0, 2.0
_ROUNDING: Final = 1e-6
"""Bytes below which nothing is left of a copy."""


class Table:
    """The copies of one link: the instant up to which they are reckoned, then state, start (end, once done), bytes."""

    def __init__(self, path: Path | None = None, place: int = 0) -> None:
        """Of this worker alone; or, with the file `path`, number `place` of those that workers share."""
        self._lock = threading.Lock()
        self._file = None
        raw: bytearray | mmap.mmap = bytearray(TABLE_BYTES)
        if path is not None:
            self._file = open(path, "r+b")  # noqa: SIM115 - held as long as the worker runs
            raw = mmap.mmap(self._file.fileno(), 0)
        first = TABLE_BYTES * place if path is not None else 0
        self.cells = memoryview(raw)[first : first + TABLE_BYTES].cast("d")

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """No other thread reads or writes the table within the block."""
        with self._lock:
            if self._file is not None:
                fcntl.flock(self._file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                if self._file is not None:
                    fcntl.flock(self._file, fcntl.LOCK_UN)


class CopyLink:
    """One direction of a link. rate: bytes per ns, of all its copies together."""

    def __init__(self, table: Table, rate: float) -> None:
        self._table, self._rate = table, rate

    def carry(self, start: int, nbytes: float) -> int:
        """Copy `nbytes` from the instant `start` on, in ns, and wait; the instant at which the last byte is there."""
        with self._table.alone():
            slot = self._enter(start, nbytes)
            end = self._due(slot)
        while True:
            sleep_until(math.ceil(end))
            with self._table.alone():
                due = self._due(slot)
                if due <= end:
                    self._reckon(due)
                    self._set(slot, _FREE, 0.0, 0.0)
                    return round(due)
            # Others came meanwhile: it ends later.
            end = due

    def _enter(self, start: int, nbytes: float) -> int:
        """A slot with a copy from `start` on; what is reckoned already cannot be changed any more."""
        used = [slot for slot in range(SLOTS) if self._state(slot) != _FREE]
        cells = self._table.cells
        if not used:
            # Not beyond now: a copy that begins before this one may still come.
            cells[0] = min(start, now())
        slot = next(slot for slot in range(SLOTS) if slot not in used)
        self._set(slot, _WAITING, max(start, cells[0]), nbytes)
        return slot

    def _due(self, slot: int) -> float:
        """When a copy ends, or ended, if no other comes."""
        at = _HEAD + slot * _ROW
        if self._table.cells[at] == _DONE:
            return self._table.cells[at + 1]
        ends, _ = shared(self._table.cells[0], self._waiting(), self._rate, math.inf)
        return ends[slot]

    def _reckon(self, until: float) -> None:
        """Bring the table to the instant `until`."""
        cells = self._table.cells
        if until <= cells[0]:
            return
        ends, left = shared(cells[0], self._waiting(), self._rate, until)
        for slot, end in ends.items():
            self._set(slot, _DONE, end, 0.0)
        for slot, (start, nbytes) in left.items():
            self._set(slot, _WAITING, start, nbytes)
        cells[0] = until

    def _waiting(self) -> dict[int, tuple[float, float]]:
        """The copies under way: from when, and the bytes left."""
        cells = self._table.cells
        rows = ((slot, _HEAD + slot * _ROW) for slot in range(SLOTS))
        return {slot: (cells[at + 1], cells[at + 2]) for slot, at in rows if cells[at] == _WAITING}

    def _state(self, slot: int) -> float:
        return self._table.cells[_HEAD + slot * _ROW]

    def _set(self, slot: int, state: float, instant: float, left: float) -> None:
        at = _HEAD + slot * _ROW
        self._table.cells[at], self._table.cells[at + 1], self._table.cells[at + 2] = state, instant, left


def shared(
    time: float, copies: Mapping[int, tuple[float, float]], rate: float, until: float
) -> tuple[dict[int, float], dict[int, tuple[float, float]]]:
    """Equal shares of a link of `rate` from `time` to `until`: the ends of copies, and what is left of others.

    copies: by slot, from when and how many bytes.
    """
    left, ends = dict(copies), dict[int, float]()
    while left and time < until:
        active = [slot for slot, (start, _) in left.items() if start <= time]
        begins = min((start for start, _ in left.values() if start > time), default=math.inf)
        if not active:
            time = min(begins, until)
            continue
        least = min(left[slot][1] for slot in active)
        step = min(least * len(active) / rate, begins - time, until - time)
        moved = step * rate / len(active)
        time += step
        for slot in active:
            start, nbytes = left[slot]
            if nbytes - moved <= _ROUNDING:
                ends[slot] = time
                del left[slot]
            else:
                left[slot] = start, nbytes - moved
    return ends, left
