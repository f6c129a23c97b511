"""One direction of a PCIe link, shared by the copies that are under way on it, of one worker or of several.

All copies of a link have equal shares of it, which is what max-min fairness gives where none crosses a slower link. The
copies under way stand in a table that workers share (a mapped file, one writer at a time). Each computes when it would
end if no other came, sleeps until then, and looks again: a copy that came meanwhile can only have put the end off, so
nobody sleeps too long. The instants are those of the fluid model, exactly, not those of waking up.
"""

from __future__ import annotations

import contextlib
import fcntl
import math
import mmap
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from runtime.accelerator.clock import now, sleep_until
from runtime.emulation.accelerator import TABLE_BYTES, TABLE_CELLS

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
        """Nobody else reads or writes the table within the block."""
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
