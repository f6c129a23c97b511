"""Two network namespaces joined by a link of a chosen bandwidth, for as long as a block lasts.

Needs Linux, `ip` and `tc`, and the right to make namespaces. Only what it made, it removes.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

NAMES = ("gcnsim-bench-0", "gcnsim-bench-1")
DEVICES = ("gsbench0", "gsbench1")
ADDRESSES = ("10.213.77.1", "10.213.77.2")


def possible() -> bool:
    """Whether this process may make such a link."""
    return os.geteuid() == 0 and all(shutil.which(tool) for tool in ("ip", "tc"))


@contextmanager
def link(megabits: float) -> Iterator[None]:
    """A link of `megabits` per second each way between the namespaces NAMES."""
    remove()
    try:
        for name in NAMES:
            _run("ip", "netns", "add", name)
        _run("ip", "link", "add", DEVICES[0], "type", "veth", "peer", "name", DEVICES[1])
        for name, device, address in zip(NAMES, DEVICES, ADDRESSES, strict=True):
            _run("ip", "link", "set", device, "netns", name)
            for words in (
                f"ip addr add {address}/24 dev {device}",
                f"ip link set {device} up",
                "ip link set lo up",
                f"tc qdisc add dev {device} root tbf rate {megabits:.3f}mbit burst 256kb limit 20mb",
                # A network card queues about a millisecond and takes turns between connections; one long queue, as the
                # shaper has, would make a small message wait behind megabytes of rows.
                "sysctl -q -w net.ipv4.tcp_limit_output_bytes=131072",
            ):
                _run("ip", "netns", "exec", name, *words.split())
        yield
    finally:
        remove()


def remove() -> None:
    """Remove the namespaces of an earlier run, and the link with them."""
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)
