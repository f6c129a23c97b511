"""Traffic of others: full frames from one emulated host to another, at a fixed rate whatever else the links carry.

`python -m runtime.emulation.background sink ADDRESS PORT` listens and throws away; `... send ADDRESS PORT RATE` sends
RATE bytes of the wire a second, until it is ended.
"""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Final

from gcnsim.core.signals import die_with_parent
from runtime.emulation.network import Network

PORT: Final = 5202
FRAME: Final = 1538
"""Bytes of a full frame on the wire, preamble and gap included."""

_PAYLOAD: Final = 1472
_PAUSE_S: Final = 2e-3
"""Frames go in small groups: a thread cannot be woken for each."""


@contextlib.contextmanager
def sending(network: Network | None, rate: float) -> Iterator[None]:
    """`rate` bytes/s of the wire from host 0 to host 1 as long as the block lasts; nothing where it is 0."""
    if network is None or not rate:
        yield
        return
    there = [network.address(1), str(PORT)]
    command = [sys.executable, "-m", "runtime.emulation.background", str(os.getpid())]
    parts = [(1, ["sink", *there]), (0, ["send", *there, str(rate)])]
    started = [subprocess.Popen([*network.inside(host), *command, *words]) for host, words in parts]
    try:
        yield
    finally:
        for item in started:
            item.kill()
            item.wait()


def main(argv: Sequence[str]) -> int:
    """Be the sink or the sender."""
    parent, what, address, port, *rate = argv
    die_with_parent(int(parent))
    place = address, int(port)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as own:
        if what == "sink":
            own.bind(place)
            # What nobody reads is dropped by the system as soon as the socket's buffer is full.
            while True:
                time.sleep(3600)
        _send(own, place, float(rate[0]))
    return 0


def _send(own: socket.socket, place: tuple[str, int], rate: float) -> None:
    frame, begun, sent = bytes(_PAYLOAD), time.monotonic(), 0
    while True:
        time.sleep(_PAUSE_S)
        owed = int((time.monotonic() - begun) * rate / FRAME) - sent
        for _ in range(owed):
            with contextlib.suppress(OSError):
                own.sendto(frame, place)
        sent += owed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
