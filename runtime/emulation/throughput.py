"""How much TCP payload the links carry: every host sends to the next one and receives from the one before, all at once.

`python -m runtime.emulation.throughput OWN_ADDRESS OWN_PORT NEXT_ADDRESS NEXT_PORT SECONDS` is one host's part; it
prints the bytes per second that it received.
"""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import Final

from runtime.emulation.network import Network
from runtime.launch.watch import realtime_priority

PORT: Final = 5201
_CHUNK: Final = 1 << 18
_LEFT_OUT: Final = 0.25
"""Of the time, at its start: the burst of an idle link passes, and TCP finds its speed."""

_COMING_S: Final = 10.0


def measure(network: Network | None, seconds: float, *, calm: bool = False) -> float | None:
    """Payload bytes/s that the slowest host receives; over loopback between two processes without a network.

    calm: by processes that are first in line for a core, as workers are that wait in place of computing. None when
    a pump fails.
    """
    if network is None:
        places = [("127.0.0.1", free_port()) for _ in range(2)]
    else:
        places = [(network.address(host), PORT) for host in range(network.hosts)]
    pumps = []
    for host, (address, port) in enumerate(places):
        there = places[(host + 1) % len(places)]
        words = [address, str(port), there[0], str(there[1]), str(seconds), *(["calm"] if calm else [])]
        command = [sys.executable, "-m", "runtime.emulation.throughput", *words]
        prefix = [] if network is None else network.inside(host)
        pumps.append(subprocess.Popen([*prefix, *command], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL))
    found = []
    for pump in pumps:
        try:
            out, _ = pump.communicate(timeout=2 * _COMING_S + seconds)
        except subprocess.TimeoutExpired:
            pump.kill()
            out, _ = pump.communicate()
        found.append(float(out) if pump.returncode == 0 and out.strip() else None)
    rates = [rate for rate in found if rate is not None]
    return min(rates) if rates and len(rates) == len(pumps) else None


def free_port() -> int:
    """A port of this machine that nobody uses."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


def main(argv: Sequence[str]) -> int:
    """One host's part."""
    own, port, there, other, seconds, *calm = argv
    if calm:
        realtime_priority(True)
    server = socket.create_server((own, int(port)))
    server.settimeout(_COMING_S)
    sender = threading.Thread(target=_send, args=(there, int(other), float(seconds)), daemon=True)
    sender.start()
    source, _ = server.accept()
    sys.stdout.write(f"{_received(source, float(seconds))}\n")
    sender.join(_COMING_S)
    return 0


def _send(address: str, port: int, seconds: float) -> None:
    """Send for `seconds`, and a little more, so that no receiver's time ends with a trickle."""
    sink, chunk = _connected(address, port), bytes(_CHUNK)
    end = time.monotonic() + 1.1 * seconds
    with contextlib.suppress(OSError):
        while time.monotonic() < end:
            sink.sendall(chunk)
    sink.close()


def _connected(address: str, port: int) -> socket.socket:
    end = time.monotonic() + _COMING_S
    while True:
        try:
            return socket.create_connection((address, port), timeout=_COMING_S)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


def _received(source: socket.socket, seconds: float) -> float:
    """Bytes per second of what comes, from when the start is over until `seconds` have passed."""
    source.settimeout(_COMING_S)
    buffer = bytearray(_CHUNK)
    total, first, begin, counted = 0, None, None, 0
    while True:
        size = source.recv_into(buffer)
        now = time.monotonic()
        first = now if first is None else first
        total += size
        if begin is None and now - first >= _LEFT_OUT * seconds:
            begin, counted = now, total
        if not size or now - first >= seconds:
            break
    source.close()
    if begin is None or now <= begin:
        return 0.0
    return (total - counted) / (now - begin)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
