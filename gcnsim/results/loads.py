"""What workers and links of a simulated run hold, carry and do: bytes, and shares of an iteration in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gcnsim.cost import Memory
from gcnsim.ids import Bytes, Rank, Seconds
from gcnsim.results.plain import by_field


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What every worker's GPU holds. device_bytes: what the device of the worker nearest its limit (tightest) has,
    devices_bytes: of all workers, None where that is not known; reserved_bytes: of each, for the system. least_gpus:
    the fewest that would hold it, None where that is not known.
    """

    device_bytes: Bytes | None
    devices_bytes: tuple[Bytes, ...] | None
    tightest: Rank
    reserved_bytes: Bytes
    fits: bool | None
    least_gpus: int | None
    workers: tuple[Memory, ...]

    def payload(self) -> dict[str, Any]:
        """As plain data; of each worker the total besides."""
        return by_field(self) | {"workers": [by_field(each) | {"total": each.total} for each in self.workers]}


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """What a link carries per iteration, and the share of its capacity that this is."""

    bytes: Bytes
    utilization: float


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """Shares of the measured iterations. gpu: kernels; copies: rows packed and copied between device and host; reduce:
    the all-reduce; waiting: the GPU waits for communication. All but gpu and waiting overlap.
    """

    worker: Rank
    server: int
    gpu: float
    sampler: float
    copies: float
    reduce: float
    waiting: float


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What was carried over what could have been, of core-seconds for a server's cores. server: None of an uplink."""

    name: str
    kind: str
    server: int | None
    utilization: float


@dataclass(frozen=True, slots=True)
class Utilization:
    """How busy every worker is, and every link that carries anything."""

    workers: tuple[WorkerUse, ...]
    links: tuple[LinkUse, ...]


@dataclass(frozen=True, slots=True)
class StragglerReport:
    """The worker that the others wait for. boundary_nodes_mean: of all workers; share_of_mean: its load behind the
    limit over the mean worker's. even_s: the iteration if all parts were alike, None where that changes nothing.
    """

    worker: Rank
    boundary_nodes: int
    boundary_nodes_mean: float
    share_of_mean: float
    even_s: Seconds | None
    text: str
