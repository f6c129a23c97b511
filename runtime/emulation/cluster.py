"""An emulated cluster from its making to its removal: hosts, their measured rate, torchrun in each, and one verdict."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.processes import cores
from gcnsim.core.units import BANDWIDTH
from runtime.emulation.background import sending
from runtime.emulation.network import CONGESTION, DEVICE, Network, burst, has_netem, network
from runtime.emulation.spec import COPIES, PAYLOAD_SHARE, TABLE_BYTES, Accelerator, Emulation
from runtime.emulation.throughput import free_port, measure
from runtime.launch.launchers import RENDEZVOUS
from runtime.launch.parent import ProcessGroup, ProcessSpec, StopRequests, answer
from runtime.launch.verdict import FAILURES, Exit, read_failures

PORT: Final = 29400
ENOUGH: Final = 0.97
"""Of the payload that the asked bandwidth carries, what must be measured."""

_MEASURE_S: Final = (0.6, 4.0)
_MEASURE_BYTES: Final = 2.5e6
"""Slow links are measured for longer, until so much has passed."""

_TRIES: Final = 3
_GRACE_S, _LEAVE_S = 10.0, 35.0
_FOLDER: Final = "gcnsim-emulate-"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class EmulationRequest:
    """A cluster to emulate. bandwidth: bytes/s of the wire, `written` as the user wrote it. limiter: as settled.

    accelerator: what waits stand for, None where workers compute; bandwidth is then what is really made. local: bytes/s
    between the workers of a host.
    """

    hosts: int
    workers_per_host: int
    bandwidth: float
    written: str
    latency_s: float
    limiter: str
    accelerator: Accelerator | None = None
    local: float | None = None

    @property
    def workers(self) -> int:
        """On all hosts."""
        return self.hosts * self.workers_per_host


def emulate(request: EmulationRequest, training: Sequence[str], tell: Callable[[Emulation], None], say: Say) -> int:
    """Train with the arguments `training` on the cluster; the exit code, as `runtime.launch.launch` gives it.

    tell: is told what was made and measured, before the training. say: says how it ended, if not well.
    Raises ScenarioError when the system refuses, or cannot carry the bandwidth.
    """
    with StopRequests() as requests, _made(request) as (made, latency_by):
        facts = _measured(request, made, latency_by, requests)
        if requests.signum:
            return answer(requests, [], [], say)
        tell(facts)
        with _folder() as folder:
            return _trained(facts, made, training, requests, folder, say)


@contextlib.contextmanager
def _made(request: EmulationRequest) -> Iterator[tuple[Network | None, str]]:
    """The network, or None where the exchange limits the rate; and what makes the latency."""
    if request.limiter == "exchange":
        yield None, "exchange" if request.latency_s else "none"
        return
    by = "none" if not request.latency_s else "netem" if has_netem() else "exchange"
    with network(request.hosts, request.bandwidth, request.latency_s if by == "netem" else 0.0, request.local) as made:
        yield made, by


@contextlib.contextmanager
def _folder() -> Iterator[Path]:
    """A folder for what hosts and workers report, named after this process."""
    with tempfile.TemporaryDirectory(prefix=f"{_FOLDER}{os.getpid()}-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        for inner in ("words", "hosts", "logs"):
            (folder / inner).mkdir()
        yield folder


def clean_folders() -> list[str]:
    """Remove the folders that a dead process of ours left; their names."""
    found = []
    for path in sorted(Path(tempfile.gettempdir()).glob(f"{_FOLDER}*-*")):
        pid = path.name.removeprefix(_FOLDER).split("-")[0]
        if pid.isdigit() and not Path("/proc", pid).exists() and path.stat().st_uid == os.geteuid():
            shutil.rmtree(path, ignore_errors=True)
            found.append(path.name)
    return found


def _measured(request: EmulationRequest, made: Network | None, latency_by: str, requests: StopRequests) -> Emulation:
    """The facts, with the measured rate. Raises ScenarioError for a bandwidth that the machine does not carry."""
    wanted = request.bandwidth * PAYLOAD_SHARE
    seconds = min(max(_MEASURE_S[0], _MEASURE_BYTES / wanted), _MEASURE_S[1])
    rate: float | None = None
    for _ in range(_TRIES if request.hosts > 1 else 0):
        rate = max(measure(made, seconds, calm=request.local is not None) or 0.0, rate or 0.0)
        if rate >= ENOUGH * wanted or requests.signum:
            break
    if rate is not None and rate < ENOUGH * wanted and not requests.signum:
        raise ScenarioError(
            f"--bandwidth: {request.written} is more than this machine carries between {request.hosts} emulated hosts: "
            f"measured {8e-6 * rate / PAYLOAD_SHARE:.0f}Mbps of the wire, {BANDWIDTH.shown_as(rate)} of payload, "
            f"where {BANDWIDTH.shown_as(wanted)} are needed"
        )
    return Emulation(
        hosts=request.hosts,
        workers_per_host=request.workers_per_host,
        bandwidth=request.bandwidth,
        measured=rate if made is not None else None,
        burst=burst(request.bandwidth, calm=request.local is not None) if made is not None else 0,
        latency_s=request.latency_s,
        latency_by=latency_by,
        limiter=request.limiter,
        cores=cores(),
        congestion=CONGESTION if made is not None else _congestion(),
        accelerator=None if request.accelerator is None else request.accelerator.asdict(),
        one_session=True,
    )


def _congestion() -> str:
    """TCP's congestion control on this machine."""
    try:
        return Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text(encoding="utf-8").strip()
    except OSError:
        return "unknown"


def _trained(
    facts: Emulation, made: Network | None, training: Sequence[str], requests: StopRequests, folder: Path, say: Say
) -> int:
    port = PORT if made is not None else free_port()
    group = ProcessGroup(requests, _GRACE_S, _LEAVE_S)
    accelerator = None if facts.accelerator is None else Accelerator(**facts.accelerator)
    if accelerator is not None and accelerator.gpus_per_switch:
        (folder / "copies").write_bytes(bytes(2 * TABLE_BYTES * facts.hosts * facts.workers_per_host))
    others = 0.0 if accelerator is None else accelerator.background / accelerator.scale
    with sending(made, others), group.all_ended():
        group.start([_process(facts, made, host, port, training, folder) for host in range(facts.hosts)])
        group.supervise()
    reports = {host: _report(folder / "hosts" / f"{host}.json") for host in range(facts.hosts)}
    ends = [Exit(**item, stop_signal=0) for report in reports.values() for item in report["exits"]]
    code = answer(requests, ends, read_failures(folder / "words"), say)
    if code:
        return code
    for exit in sorted(group.exits, key=lambda exit: exit.at):
        # No worker failed, so torchrun did: it ends its workers before it ends.
        if not exit.willing:
            say(f"host {exit.rank}: {reports[exit.rank]['error'] or _ended(exit)}")
            return 1
    return 0


def _report(path: Path) -> dict[str, Any]:
    """What a host reported; nothing where it was killed before it could."""
    if not path.exists():
        return {"exits": [], "error": None}
    report: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return report


def _ended(exit: Exit) -> str:
    if exit.stuck:
        return "did not end when asked to and was killed"
    if exit.code < 0:
        return f"torchrun was killed by {signal.Signals(-exit.code).name}"
    return f"torchrun ended with exit code {exit.code} and gave no reason"


def _process(
    facts: Emulation, made: Network | None, host: int, port: int, training: Sequence[str], folder: Path
) -> ProcessSpec:
    """torchrun on one host."""
    first = "127.0.0.1" if made is None else made.address(0)
    own = "127.0.0.1" if made is None else made.address(host)
    agent = [sys.executable, "-m", "runtime.emulation.host", str(os.getpid()), str(folder / "hosts" / f"{host}.json")]
    torchrun = [f"--nnodes={facts.hosts}", f"--node-rank={host}", f"--nproc-per-node={facts.workers_per_host}"]
    torchrun += ["--rdzv-backend=static", f"--master-addr={first}", f"--master-port={port}", f"--local-addr={own}"]
    torchrun += ["--max-restarts=0", f"--log-dir={folder / 'logs'}", "-m", "runtime.train"]
    threads = max(1, facts.cores // (facts.hosts * facts.workers_per_host))
    env = {name: value for name, value in os.environ.items() if name not in ("RANK", "WORLD_SIZE", RENDEZVOUS)}
    env |= {"OMP_NUM_THREADS": str(threads), "TORCH_CPP_LOG_LEVEL": os.environ.get("TORCH_CPP_LOG_LEVEL", "ERROR")}
    env |= {"GLOO_SOCKET_IFNAME": "lo" if made is None else DEVICE, FAILURES: str(folder / "words")}
    if (folder / "copies").exists():
        env[COPIES] = str(folder / "copies")
    prefix = [] if made is None else made.inside(host)
    return ProcessSpec([*prefix, *agent, *torchrun, "--threads", str(threads), *training], env | facts.environment())
