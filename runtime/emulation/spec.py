"""What is emulated, as the parent tells its workers and the workers write it into `run.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from gcnsim.errors import FileError, ScenarioError
from gcnsim.ids import Rank
from gcnsim.io.json_files import mistake, parse_json

COPIES: Final = "GCNSIM_COPIES"
"""The environment variable that names the file of the host's shared copy links."""

REACHED, AHEAD = "reached", "ahead"
RECEIVES: Final = (REACHED, AHEAD)

TABLE_CELLS: Final = 1 + 3 * 128
"""Numbers that say what is under way on one of them."""

TABLE_BYTES: Final = 8 * TABLE_CELLS


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The device that waits stand for.

    name: a device of the catalogue, or the file of one. scale: how many times longer the waits are than they stand
    for, and how many times slower the links. bandwidth: bytes/s of each host's link that is stood for, of the wire.
    host: the CPU side, of the catalogue. gpus_per_switch: workers that share the uplink of a PCIe switch; 0: each has
    its own. slow_worker, slow_factor: the worker whose kernels take so many times as long; None: none does.
    background: bytes/s of the wire that others send from host 0 to host 1, as stood for; 0: nothing. receives: when a
    synchronous transfer's receives are posted: where the worker reaches it, as the runtime does, or all as the
    iteration begins, AHEAD, as where every layer has a buffer of its own. latency_s,
    local_latency_s, message_s: measured before the first iteration, as stood for: a small message from a worker to
    another host's, to one of the same host, and each message right behind another; None: there is no such pair.
    queue: bytes that a connection may have in a link's queue, by the settings of the hosts.
    figures: of the device, as they were. realtime: whether workers were first in line for a core, which needs a right.
    """

    name: str
    scale: float
    bandwidth: float
    host: str
    gpus_per_switch: int = 0
    slow_worker: int | None = None
    slow_factor: float = 1.0
    background: float = 0.0
    receives: str = REACHED
    latency_s: float | None = None
    local_latency_s: float | None = None
    message_s: float | None = None
    queue: int = 0
    figures: Mapping[str, float] | None = None
    realtime: bool | None = None

    def asdict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)


NAME: Final = "GCNSIM_EMULATION"
"""The environment variable that holds the facts as a JSON object."""

LIMITERS: Final = ("netns", "userns", "exchange")

PAYLOAD_SHARE: Final = 1448 / 1538
"""Of a full Ethernet frame with preamble and gap (1538 bytes, MTU 1500), what TCP with timestamps carries."""


@dataclass(frozen=True, slots=True)
class Emulation:
    """The emulated cluster of a run.

    bandwidth: bytes/s asked for, of each host's link in each direction, as the simulator's `cluster.bandwidth`: of the
    wire, of which TCP payload gets PAYLOAD_SHARE. measured: payload bytes/s that the slowest host received before the
    training, None where nothing was measured (one host; no link, but a limiter in the exchange). burst: bytes that an
    idle link lets pass at once. cores: of the machine, shared by all hosts. congestion: TCP's control of it.
    accelerator: what waits stand for (`Accelerator`); None where workers compute. one_session:
    whether all workers are in one session of the system, and so share the cores as equals.
    """

    hosts: int
    workers_per_host: int
    bandwidth: float
    measured: float | None
    burst: int
    latency_s: float
    latency_by: str
    limiter: str
    cores: int
    congestion: str
    accelerator: Mapping[str, Any] | None = None
    one_session: bool = False

    def host_of(self, rank: Rank) -> int:
        """The host of a worker; torchrun numbers them host by host."""
        return rank // self.workers_per_host

    def asdict(self) -> dict[str, Any]:
        """As plain JSON values; without an accelerator where there is none."""
        found = asdict(self)
        if self.accelerator is None:
            del found["accelerator"]
        return found

    def environment(self) -> dict[str, str]:
        """The environment variable by which workers know."""
        return {NAME: json.dumps(self.asdict())}

    @classmethod
    def here(cls, env: Mapping[str, str] | None = None) -> Emulation | None:
        """The emulation this worker is part of; None where nothing is emulated. Raises ScenarioError for nonsense."""
        text = (os.environ if env is None else env).get(NAME)
        if text is None:
            return None
        try:
            found = parse_json(text, NAME)
        except FileError:
            found = None
        wrong = mistake(found, "run", "emulation") or (None if found else "nothing is emulated")
        if wrong:
            raise ScenarioError(f"{NAME}: {wrong}; runtime.emulate sets it")
        return cls(**found)
