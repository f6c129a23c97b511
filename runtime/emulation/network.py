"""Network namespaces as hosts, each joined by a link of a chosen bandwidth to a switch in a namespace of its own.

Needs Linux, `ip` and `tc`, and the right to make namespaces: root's, or a user's own. Where there is none, the exchange
itself limits the rate. A link is shaped both ways by a token bucket: what a host sends at its end of the link, what it
receives at the switch's end.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from gcnsim.core.errors import ScenarioError

DEVICE: Final = "nic"
"""The link's device inside a host; namespaces have names of their own."""

CONGESTION: Final = "reno"
"""TCP's congestion control inside: every kernel has it and every namespace may use it; a choice makes runs alike."""

FRAME_SHARE: Final = 1514 / 1538
"""What the shaper counts of a full frame on the wire: neither preamble nor checksum nor gap."""

_NAME: Final = re.compile(r"gcnsim-(\d+)-(?:h\d+|sw|try)")
_BURST_S: Final = 1.5e-3
_LEAST_BURST, _MOST_BURST = 16_384, 4_000_000
_CALM_BURST_S: Final = 0.6e-3
_LEAST_CALM_BURST: Final = 12_288
_CALM_QUEUE: Final = 16_384
"""Bytes of a connection in a link's queue: links that are many times slower than those they stand for would otherwise
make a small message wait many times as long."""

_CALM_BUFFER: Final = 65_536
"""Bytes that a connection sends ahead of its receiver. Where several hosts send to one, they wait at its link's end."""

_LOCAL_FRAME: Final = 16_384
_LOCAL_PACKET: Final = 70_000
"""More than the largest packet of the loopback device."""

_QUEUE: Final = 20_000_000
_HEADERS_SHARE: Final = 0.9
_MOST_PACKET: Final = 65_536
_FOLDER: Final = Path("/run/netns")
_DEATH_S: Final = 5.0


class NetworkError(ScenarioError):
    """A namespace, device or shaper that the system refuses to make; the message ends with the system's words."""


@dataclass(frozen=True, slots=True)
class Network:
    """Names and addresses of the hosts that process `pid` makes."""

    pid: int
    hosts: int

    @property
    def switch(self) -> str:
        """The switch's namespace."""
        return f"gcnsim-{self.pid}-sw"

    def name(self, host: int) -> str:
        """The namespace of a host."""
        return f"gcnsim-{self.pid}-h{host}"

    def address(self, host: int) -> str:
        """The address of a host on the emulated network."""
        return f"10.213.{host // 250}.{host % 250 + 1}"

    def inside(self, host: int) -> list[str]:
        """The words that run a command in a host."""
        return ["ip", "netns", "exec", self.name(host)]


def burst(bandwidth: float, *, calm: bool = False) -> int:
    """Bytes that an idle link of `bandwidth` bytes/s lets pass at once. calm: no core is busy, so timers are on time.

    A shaper's timer fires late on busy cores: a burst below what passes meanwhile loses bandwidth, and every byte
    above it travels for nothing after a pause. 1.5 ms held the rate under load (docs/emulation.md).
    """
    if calm:
        return int(min(max(_CALM_BURST_S * bandwidth, _LEAST_CALM_BURST), _MOST_BURST))
    return int(min(max(_BURST_S * bandwidth, _LEAST_BURST), _MOST_BURST))


def small_queue(hosts: int) -> int:
    """Bytes that each connection under way has in the queue of a link between `hosts` hosts whose cores are not busy.

    Between two, what the sender's side may queue; where several may send to one host, what its link's end holds back.
    """
    return _CALM_BUFFER if hosts > 2 else _CALM_QUEUE


def largest_packet(bandwidth: float, *, calm: bool = False) -> int:
    """Bytes of the largest packet that TCP hands to the link's device, which a real card would cut into frames.

    A shaper cuts what exceeds its burst into frames, on a core: that took ten times the processor time per byte on
    links whose burst was below 68 kB (64 KiB with a header for each of the frames).
    """
    return int(min(burst(bandwidth, calm=calm) * _HEADERS_SHARE, _MOST_PACKET))


def refused() -> str | None:
    """Why this process cannot make shaped namespaces; None when it can."""
    lacking = [tool for tool in ("ip", "tc") if shutil.which(tool) is None]
    if lacking:
        return f"{' and '.join(lacking)} not found"
    name = f"gcnsim-{os.getpid()}-try"
    try:
        _run("ip", "netns", "add", name)
        _run("ip", "-n", name, "link", "add", "bridge", "type", "bridge")
        _run("tc", "-n", name, "qdisc", "add", "dev", "bridge", "root", *_shaper(1e6))
    except NetworkError as error:
        return str(error)
    finally:
        _remove(name)
    return None


def has_netem() -> bool:
    """Whether the kernel can delay packets; asked where namespaces can be made."""
    name = f"gcnsim-{os.getpid()}-try"
    try:
        _run("ip", "netns", "add", name)
        _run("tc", "-n", name, "qdisc", "add", "dev", "lo", "root", "netem", "delay", "1ms")
    except NetworkError:
        return False
    finally:
        _remove(name)
    return True


@contextlib.contextmanager
def network(hosts: int, bandwidth: float, latency_s: float, local: float | None = None) -> Iterator[Network]:
    """`hosts` hosts, as long as the block lasts; links of `bandwidth` bytes/s each way, of the wire.

    latency_s: one way between two hosts, by netem; 0: none. local: bytes/s that the workers of a host send one another,
    all together; None: as fast as they can. Where it is given nothing computes, so bursts are small. Raises
    NetworkError.
    """
    made = Network(os.getpid(), hosts)
    _remove_all(made.pid)
    try:
        _run("ip", "netns", "add", made.switch)
        _run("ip", "-n", made.switch, "link", "add", "bridge", "type", "bridge")
        _run("ip", "-n", made.switch, "link", "set", "bridge", "up")
        for host in range(hosts):
            _join(made, host, bandwidth, latency_s, local)
        yield made
    finally:
        _remove_all(made.pid)


def _join(made: Network, host: int, bandwidth: float, latency_s: float, local: float | None) -> None:
    """Make a host and its link to the switch."""
    name, switch, port, calm = made.name(host), made.switch, f"port{host}", local is not None
    _run("ip", "netns", "add", name)
    _run("ip", "-n", switch, "link", "add", port, "type", "veth", "peer", "name", DEVICE, "netns", name)
    _run("ip", "-n", switch, "link", "set", port, "master", "bridge", "up")
    _run("ip", "-n", name, "addr", "add", f"{made.address(host)}/16", "dev", DEVICE)
    _run("ip", "-n", name, "link", "set", DEVICE, "gso_max_size", str(largest_packet(bandwidth, calm=calm)))
    for device in (DEVICE, "lo"):
        _run("ip", "-n", name, "link", "set", device, "up")
    # What all other hosts send at once to one waits at the switch: nothing of it may be dropped.
    for where, device, senders in _ends(made, host):
        shaper = _shaper(bandwidth, senders, burst(bandwidth, calm=calm))
        _run("tc", "-n", where, "qdisc", "add", "dev", device, "root", "handle", "1:", *shaper)
    if local is not None:
        shaper = _shaper(local, 1, max(burst(local, calm=True), _LOCAL_PACKET))
        _run("ip", "-n", name, "link", "set", "lo", "mtu", str(_LOCAL_FRAME))
        _run("tc", "-n", name, "qdisc", "add", "dev", "lo", "root", *shaper)
    if latency_s:
        # Beneath the shaper, and at one end alone: a message passes the sender's link end once.
        delay = ("netem", "delay", f"{1e6 * latency_s:.3f}us", "limit", "100000")
        _run("tc", "-n", name, "qdisc", "add", "dev", DEVICE, "parent", "1:1", *delay)
    # A network card queues about a millisecond and takes turns between connections; one long queue, as the shaper
    # has, would make a small message wait behind megabytes of rows.
    buffers = f"4096 {_CALM_BUFFER} 131072" if calm else "4096 65536 262144"
    queued = _CALM_QUEUE if calm else 131_072
    settings = [f"tcp_limit_output_bytes={queued}", f"tcp_congestion_control={CONGESTION}"]
    # Pauses are as many times longer as everything else: they are none that a connection would start anew after.
    settings += ["tcp_slow_start_after_idle=0"] if calm else []
    # A switch has little memory; what one connection may have on its way bounds the queue before a busy receiver, which
    # would else grow to what TCP's window allows: megabytes, and a fifth of a second for whoever comes last.
    settings += [f"tcp_wmem={buffers}", f"tcp_rmem={buffers}"]
    _run(*made.inside(host), "sysctl", "-q", "-w", *(f"net.ipv4.{setting}" for setting in settings))


def reshape(made: Network, host: int, first: float, bandwidth: float) -> None:
    """Give the link of a host another bandwidth than its `first`, bytes/s of the wire, while it is in use.

    Its burst stays: a packet that waits already, larger than a smaller burst, would wait for ever. Raises NetworkError.
    """
    for where, device, senders in _ends(made, host):
        shaper = _shaper(bandwidth, senders, burst(first))
        _run("tc", "-n", where, "qdisc", "change", "dev", device, "root", "handle", "1:", *shaper)


def _ends(made: Network, host: int) -> tuple[tuple[str, str, int], ...]:
    """Both ends of a host's link: the namespace, the device, and how many hosts send through it."""
    return (made.name(host), DEVICE, 1), (made.switch, f"port{host}", made.hosts)


def _shaper(bandwidth: float, senders: int = 1, size: int | None = None) -> list[str]:
    size = burst(bandwidth) if size is None else size
    rate = f"{8 * FRAME_SHARE * bandwidth:.0f}bit"
    return ["tbf", "rate", rate, "burst", f"{size}b", "limit", f"{senders * max(_QUEUE, 4 * size)}b"]


def clean() -> list[str]:
    """Remove namespaces that a dead process of ours left, and end what runs in them; their names."""
    found = []
    for name in _names():
        match = _NAME.fullmatch(name)
        if match and not Path("/proc", match[1]).exists():
            _remove(name)
            found.append(name)
    return found


def _names() -> list[str]:
    try:
        return sorted(os.listdir(_FOLDER))
    except OSError:
        return []


def _remove_all(pid: int) -> None:
    for name in _names():
        match = _NAME.fullmatch(name)
        if match and int(match[1]) == pid:
            _remove(name)


def _remove(name: str) -> None:
    """Remove a namespace of ours, its links with it, after the end of what runs in it."""
    end = time.monotonic() + _DEATH_S
    while pids := _ask("ip", "netns", "pids", name).split():
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
        if time.monotonic() > end:
            break
        time.sleep(0.02)
    _ask("ip", "netns", "del", name)


def _ask(*words: str) -> str:
    """What a command prints; nothing where it fails."""
    done = subprocess.run(words, check=False, capture_output=True, text=True, process_group=0)
    return done.stdout if done.returncode == 0 else ""


def _run(*words: str) -> None:
    try:
        # In a process group of its own: Ctrl-C is answered between the steps, not in the middle of one.
        done = subprocess.run(words, check=False, capture_output=True, text=True, process_group=0)
    except OSError as error:
        raise NetworkError(f"{words[0]}: cannot be run: {error.strerror}") from None
    if done.returncode:
        message = " ".join(done.stderr.split()) or f"exit code {done.returncode}"
        raise NetworkError(f"{' '.join(words)}: {message}")


INSIDE: Final = "GCNSIM_USERNS"
"""Set to 1 in the process that was started again inside a user namespace."""

_UNSHARE: Final = ("unshare", "--user", "--map-root-user", "--net", "--mount")


def inside() -> bool:
    """Whether this process runs in the user namespace that `enter` made."""
    return os.environ.get(INSIDE) == "1"


def limiter_of(limiter: str) -> str:
    """The limiter to use: the one asked for, or for `auto` the first that works here.

    Raises ScenarioError, with the system's words, when the one asked for does not work.
    """
    if inside():
        _make_room()
        limiter = "netns"
    if limiter == "exchange":
        return limiter
    root = refused() if limiter in ("auto", "netns") else None
    if limiter == "netns" and root is not None:
        raise ScenarioError(f"--limiter: netns is not possible here: {root}; allowed: auto, userns, exchange")
    if limiter in ("auto", "netns") and root is None:
        return "userns" if inside() else "netns"
    own = _refused_own()
    if limiter == "userns" and own is not None:
        raise ScenarioError(f"--limiter: userns is not possible here: {own}; allowed: auto, netns, exchange")
    return "exchange" if own is not None else "userns"


def enter(argv: Sequence[str]) -> NoReturn:
    """Run `python -m runtime.emulate` with `argv` in a user namespace, in place of this process."""
    os.environ[INSIDE] = "1"
    os.execvp(_UNSHARE[0], [*_UNSHARE, sys.executable, "-m", "runtime.emulate", *argv])


def _refused_own() -> str | None:
    """Why no user namespace with namespaces in it can be made; None when it can."""
    code = "from runtime.emulation.network import limiter_of; limiter_of('netns')"
    try:
        command = [*_UNSHARE, sys.executable, "-c", code]
        env = {**os.environ, INSIDE: "1"}
        done = subprocess.run(command, env=env, check=False, capture_output=True, text=True, process_group=0)
    except OSError as error:
        return f"{_UNSHARE[0]}: {error.strerror}"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["unshare failed"])[-1]


def _make_room() -> None:
    """A folder for the names of namespaces that this mount namespace alone sees."""
    names = Path("/run/netns")
    over = names if names.is_dir() else names.parent
    done = subprocess.run(["mount", "-t", "tmpfs", "gcnsim", str(over)], check=False, capture_output=True, text=True)
    if done.returncode:
        raise ScenarioError(f"--limiter: userns is not possible here: {' '.join(done.stderr.split())}")
