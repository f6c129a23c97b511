"""How long a process that a message wakes waits for a core while all are busy, and how long busy ones keep theirs.

With twice as many busy processes as cores, the mean of the first is `gcnsim.evidence.fit_gpu.WAKE_S`: so long a
thread keeps its core from one that has just been given work. The median of the second is `SLICE_S` there: so long it
keeps its core from one that is as busy.
"""

from __future__ import annotations

import multiprocessing
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Figure, report
from gcnsim.core.resources import usable_resources

MESSAGES, APART_S = 2_000, 5e-3
WORDS = (("median", 50), ("90th percentile", 90), ("99th percentile", 99))
BUSY_S, AWAY_S = 5.0, 2e-4
"""How long busy processes are watched; what they are away for longer, another has run."""

MESSAGE_BYTES = 1 << 17
"""Of the times of one of them at most: a thousand turns a second would be 40 kB."""

STAMP = struct.Struct("d")
"""When the message was sent, by the clock that all processes of a machine share."""


def busy() -> None:
    """Keep a core busy for good."""
    while True:
        pass


def answer(here: socket.socket, results: socket.socket) -> None:
    """Note how long each message of `here` took to be read; send all times when `here` is closed."""
    waited = []
    while stamp := here.recv(STAMP.size):
        waited.append(time.monotonic() - STAMP.unpack(stamp)[0])
    results.sendall(np.array(waited).tobytes())
    results.close()


@contextmanager
def others(count: int) -> Iterator[None]:
    """So many processes that are always busy."""
    processes = [multiprocessing.get_context("fork").Process(target=busy, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.join()


def waits(messages: int, crowd: int) -> NDArray[np.float64]:
    """Seconds from each message until it is read; the sender is busy between them, and so are `crowd` others."""
    context = multiprocessing.get_context("fork")
    there, here = socket.socketpair()
    results, found = socket.socketpair()

    def woken() -> None:
        there.close()
        found.close()
        answer(here, results)

    process = context.Process(target=woken)
    process.start()
    here.close()
    results.close()
    with others(crowd):
        for _ in range(messages):
            until = time.monotonic() + APART_S
            while time.monotonic() < until:
                pass
            there.sendall(STAMP.pack(time.monotonic()))
    # Only now has nobody else that end any more.
    there.close()
    received = b"".join(iter(lambda: found.recv(1 << 16), b""))
    process.join()
    if len(received) != 8 * messages:
        raise RuntimeError(f"{len(received) // 8} of {messages} messages were answered")
    return np.frombuffer(received)


def turns(crowd: int, seconds: float = BUSY_S) -> NDArray[np.float64]:
    """Seconds for which each of `crowd` busy processes ran before another did, all of them together."""
    context = multiprocessing.get_context("fork")
    # Each process sends its times as one message, whole or not at all.
    results, found = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def watched() -> None:
        runs, last = [], time.monotonic()
        began, until = last, last + seconds
        while last < until:
            now = time.monotonic()
            if now - last > AWAY_S:
                runs.append(last - began)
                began = now
            last = now
        results.send(np.array(runs).tobytes())

    processes = [context.Process(target=watched) for _ in range(crowd)]
    for process in processes:
        process.start()
    # Only the processes have that end now: where one ends without a word, nothing is received in its place.
    results.close()
    kept = [np.frombuffer(found.recv(MESSAGE_BYTES)) for _ in processes]
    for process in processes:
        process.join()
    if not all(array.size for array in kept):
        raise RuntimeError("a busy process never gave up its core, or ended")
    return np.concatenate(kept)


def main(messages: int = MESSAGES) -> int:
    """Print the figures of idle and of busy cores."""
    cores = usable_resources().cores
    figures = []
    for name, crowd in (("a core idle", 0), ("all cores busy", cores - 1), ("twice as many busy", 2 * cores - 1)):
        found = 1e3 * waits(messages, crowd)
        figures += [Figure(f"{name}: {word}", float(np.percentile(found, at)), "ms") for word, at in WORDS]
        figures.append(Figure(f"{name}: mean", float(found.mean()), "ms"))
    kept = 1e3 * turns(2 * cores)
    figures += [Figure(f"kept by busy processes, twice as many: {word}", float(np.percentile(kept, at)), "ms")
                for word, at in (("10th percentile", 10), WORDS[0], WORDS[1])]  # fmt: skip
    return report("waking", f"how long does a woken process wait? ({messages:,} messages each)", figures)


if __name__ == "__main__":
    sys.exit(main())
