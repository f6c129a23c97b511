"""What accelerator every emulated worker has, as the parent tells its workers and they write it into `run.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Annotated, Any, Final, TypeAlias

from gcnsim.ids import Rank, Seconds
from gcnsim.shapes import SINCE, Amount, Count, Positive, Within

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
    figures: Mapping[str, float] | None = field(default=None, metadata=SINCE)
    """Of the device, as they were, in SI units."""
    realtime: bool | None = field(default=None, metadata=SINCE)
    """Whether workers were first in line for a core, which needs a right."""

    def asdict(self) -> dict[str, Any]:
        """As plain JSON values."""
        return asdict(self)
