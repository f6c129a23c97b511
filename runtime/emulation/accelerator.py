"""What accelerator every emulated worker has, as the parent tells its workers and they write it into `run.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

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
