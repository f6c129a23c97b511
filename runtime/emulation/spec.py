"""What is emulated, as the parent passes it to its workers and the workers write it to `run.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.ids import Rank, Seconds
from gcnsim.core.json_files import mistake, parse_json
from gcnsim.core.shapes import OMIT_IF_NONE, SINCE, Amount, As, Count, OneOrMore, Positive, Within

COPIES: Final = "GCNSIM_COPIES"
"""The environment variable that names the file of the host's shared copy links."""

REACHED, AHEAD = "reached", "ahead"
RECEIVES: Final = (REACHED, AHEAD)

TABLE_CELLS: Final = 1 + 3 * 128
"""Numbers that say what is under way on one of them."""

TABLE_BYTES: Final = 8 * TABLE_CELLS

Times: TypeAlias = Annotated[float, Within(minimum=1)]


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The device that the workers' waits stand for; absent where they compute."""

    name: str
    """A device of the catalogue, or the file of one."""
    scale: Times
    """How many times longer the waits were than the times that the record tells, and how many times slower the
    links."""
    bandwidth: Positive
    """Bytes/s of each host's link, framing included, that is stood for; emulation.bandwidth is this over the scale."""
    host: str
    """The CPU side of the servers, of the catalogue."""
    gpus_per_switch: Count = field(default=0, metadata=SINCE)
    """Workers behind one PCIe uplink; 0: each has its own."""
    slow_worker: Rank | None = field(default=None, metadata=SINCE)
    """Whose kernels take slow_factor times as long; null: none does."""
    slow_factor: Times = field(default=1.0, metadata=SINCE)
    background: Amount = field(default=0.0, metadata=SINCE)
    """Bytes/s of the wire that others send from host 0 to host 1, as stood for."""
    receives: Annotated[str, Within(enum=RECEIVES)] = field(default=REACHED, metadata=SINCE)
    """When receives of a synchronous transfer are posted: where the worker reaches it, or ahead, as the iteration
    begins, as where every layer has a buffer of its own."""
    latency_s: Seconds | None = field(default=None, metadata=SINCE)
    """Measured before the first iteration, over the scale: a small message to another host; null: there is none."""
    local_latency_s: Seconds | None = field(default=None, metadata=SINCE)
    """The same to a worker of the same host."""
    message_s: Seconds | None = field(default=None, metadata=SINCE)
    """What a message right behind another adds."""
    queue: Count = field(default=0, metadata=SINCE)
    """Bytes that a connection may have in a link's queue, by the settings of the hosts."""
    measured_compute: str | None = field(default=None, metadata=SINCE)
    """The file of measured times that kernels take; null: those of the cost laws."""
    measured_sha256: str | None = field(default=None, metadata=SINCE)
    """Of that file."""
    figures: Mapping[str, float] | None = field(default=None, metadata=SINCE)
    """Of the device, as they were, in SI units."""
    realtime: bool | None = field(default=None, metadata=SINCE)
    """Whether workers were first in line for a core, which needs a right."""

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
    """The cluster that runtime.emulate made."""

    hosts: OneOrMore
    workers_per_host: OneOrMore
    bandwidth: Amount
    """Bytes/s asked for, of each host's link in each direction, framing included, as `cluster.bandwidth` of a scenario;
    TCP payload gets PAYLOAD_SHARE of it."""
    measured: Amount | None
    """TCP payload, bytes/s, that the slowest host received before the run; null: not measured (one host, or a limiter
    in the exchange)."""
    burst: Count
    """Bytes that an idle link lets pass at once."""
    latency_s: Seconds
    """Added one way between hosts."""
    latency_by: Annotated[str, As(Literal["none", "netem", "exchange"])]
    """None, of packets or of messages."""
    limiter: Annotated[str, Within(enum=LIMITERS)]
    """What makes its links."""
    cores: OneOrMore
    """Of the machine, shared by all hosts."""
    congestion: str
    """TCP's congestion control."""
    accelerator: Annotated[Mapping[str, Any], As(Accelerator)] | None = field(default=None, metadata=OMIT_IF_NONE)
    """What the workers' waits stand for; absent where they compute."""
    one_session: bool = field(default=False, metadata=SINCE)
    """Whether all workers were in one session of the system, so that they shared the cores as equals; each in its own
    where runs do not tell."""

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
        """The emulation this worker is part of; None without one. Raises ScenarioError for nonsense."""
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
