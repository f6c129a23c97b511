"""How long a process that a message wakes waits for a core while all cores are busy.

The mean with twice as many busy processes as cores is `gcnsim.calibration.laws.WAKE_S`: so long a thread keeps its core
from one that has just been given work.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import struct
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import Figure, report

MESSAGES, APART_S = 2_000, 5e-3
WORDS = (("median", 50), ("90th percentile", 90), ("99th percentile", 99))
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


def main(messages: int = MESSAGES) -> int:
    """Print the figures of idle and of busy cores."""
    cores = len(os.sched_getaffinity(0))
    figures = []
    for name, crowd in (("a core idle", 0), ("all cores busy", cores - 1), ("twice as many busy", 2 * cores - 1)):
        found = 1e3 * waits(messages, crowd)
        figures += [Figure(f"{name}: {word}", float(np.percentile(found, at)), "ms") for word, at in WORDS]
        figures.append(Figure(f"{name}: mean", float(found.mean()), "ms"))
    return report("waking", f"how long does a woken process wait? ({messages:,} messages each)", figures)


if __name__ == "__main__":
    sys.exit(main())
