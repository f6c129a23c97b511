"""What workers and links of a simulated run hold, carry and do: bytes, and shares of an iteration in [0, 1]."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from gcnsim.cost import Memory
from gcnsim.ids import Bytes, Rank, Seconds, Server
from gcnsim.results.plain import by_field
from gcnsim.shapes import SINCE, Amount, As, Count, OneOrMore, Positive, Share, Text, Within


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """What each worker's GPU holds at its peak, in bytes by component; null for methods without a law for it."""

    device_bytes: Bytes | None
    """Memory of the GPU of the worker that is nearest its limit; null of workers on CPU cores."""
    devices_bytes: tuple[Bytes, ...] | None = field(metadata=SINCE)
    """Memory of every worker's GPU."""
    tightest: Rank = field(metadata=SINCE)
    """The worker that is nearest its GPU's limit."""
    reserved_bytes: Bytes
    """Of each, for the system."""
    fits: bool | None
    least_gpus: OneOrMore | None
    """The fewest GPUs of this kind that hold it, of those that can be asked for; null where that is not known."""
    workers: tuple[Annotated[Memory, As(Mapping[str, Bytes])], ...]

    def payload(self) -> dict[str, Any]:
        """As plain data; of each worker the total besides."""
        return by_field(self) | {"workers": [by_field(each) | {"total": each.total} for each in self.workers]}


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """What a link carries per iteration, and the share of its capacity that this is."""

    bytes: Positive
    utilization: Annotated[float, Within(minimum=0, maximum=1.01)]


@dataclass(frozen=True, slots=True)
class WorkerUse:
    """Shares of the measured iterations in which a worker is busy. All but gpu and waiting overlap."""

    worker: Rank
    server: Server
    gpu: Share
    """Kernels."""
    sampler: Share
    copies: Share
    """Rows packed and copied between device and host."""
    reduce: Share
    """The all-reduce."""
    waiting: Share
    """The GPU waits for communication."""


@dataclass(frozen=True, slots=True)
class LinkUse:
    """What was carried over what could have been, of core-seconds for a server's cores."""

    name: Text
    kind: Text
    server: Server | None
    """Null of an uplink of racks."""
    utilization: Share


@dataclass(frozen=True, slots=True)
class Utilization:
    """Of the recommended setting: the share of the measured iterations in which each worker and each link is busy."""

    workers: tuple[WorkerUse, ...]
    links: tuple[LinkUse, ...]


@dataclass(frozen=True, slots=True)
class StragglerReport:
    """The worker whose part of the graph makes the recommended setting's limit what it is; null where none stands
    out."""

    worker: Rank
    boundary_nodes: Count
    boundary_nodes_mean: Amount
    """Of all workers."""
    share_of_mean: Amount
    """Its load behind the limit over the mean worker's."""
    even_s: Seconds | None
    """Seconds per iteration if all parts were alike; null where that changes nothing."""
    text: Text
