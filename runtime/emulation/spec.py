"""What is emulated, as the parent tells its workers and the workers write it into `run.json`."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from gcnsim.errors import ScenarioError
from gcnsim.ids import Rank

NAME: Final = "GCNSIM_EMULATION"
"""The environment variable that holds the facts as a JSON object."""

LIMITERS: Final = ("netns", "userns", "exchange")
LATENCIES: Final = ("none", "netem", "exchange")
_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {"limiter": LIMITERS, "latency_by": LATENCIES}

PAYLOAD_SHARE: Final = 1448 / 1538
"""Of a full Ethernet frame with preamble and gap (1538 bytes, MTU 1500), what TCP with timestamps carries."""

_COUNTS: Final = ("hosts", "workers_per_host", "cores")
_KINDS: Final[Mapping[str, tuple[type, ...]]] = {"int": (int,), "float": (int, float), "str": (str,)}


@dataclass(frozen=True, slots=True)
class Emulation:
    """The emulated cluster of a run.

    bandwidth: bytes/s asked for, of each host's link in each direction, as the simulator's `cluster.bandwidth`: of the
    wire, of which TCP payload gets PAYLOAD_SHARE. measured: payload bytes/s that the slowest host received before the
    training, None where nothing was measured (one host; no link, but a limiter in the exchange). burst: bytes that an
    idle link lets pass at once. cores: of the machine, shared by all hosts. congestion: TCP's control of it.
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

    def host_of(self, rank: Rank) -> int:
        """The host of a worker; torchrun numbers them host by host."""
        return rank // self.workers_per_host

    def asdict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)

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
            found = json.loads(text)
        except ValueError:
            found = None
        known = {field.name: str(field.type) for field in fields(cls)}
        if not isinstance(found, dict) or found.keys() != known.keys():
            raise ScenarioError(f"{NAME}: {text[:80]!r} is not what runtime.emulate sets")
        for name, kind in known.items():
            fits = _is(found[name], kind) and (found[name] or name not in _COUNTS)
            if not fits or found[name] not in _CHOICES.get(name, (found[name],)):
                raise ScenarioError(f"{NAME}: {name} is {found[name]!r}, which runtime.emulate never sets")
        return cls(**found)


def _is(value: object, kind: str) -> bool:
    """Whether `value` is of the type that an annotation names, and no negative number."""
    if value is None or isinstance(value, bool):
        return value is None and kind.endswith("None")
    fits = isinstance(value, _KINDS[kind.split()[0]])
    return fits and not (isinstance(value, int | float) and value < 0)
