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
    accelerator: what waits stand for (`runtime.emulation.accelerator`); None where workers compute. one_session:
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
