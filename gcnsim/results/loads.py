"""Load of workers and links in a simulated run: bytes, and shares of an iteration in [0, 1]."""

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
    """Peak memory of each worker's GPU, in bytes by component; null for methods without a formula for it."""

    device_bytes: Bytes | None
    """Memory of the GPU of the worker that is nearest its limit; null for workers on CPU cores."""
    devices_bytes: tuple[Bytes, ...] | None = field(metadata=SINCE)
    """Memory of every worker's GPU."""
    tightest: Rank = field(metadata=SINCE)
    """The worker that is nearest its GPU's limit."""
    reserved_bytes: Bytes
    """Bytes of each GPU that are reserved for the system."""
    fits: bool | None
    least_gpus: OneOrMore | None
    """The lowest possible number of GPUs of this kind on which it fits; null if unknown."""
    workers: tuple[Annotated[Memory, As(Mapping[str, Bytes])], ...]

    def payload(self) -> dict[str, Any]:
        """As plain data, with the total of each worker."""
        return by_field(self) | {"workers": [by_field(each) | {"total": each.total} for each in self.workers]}


@dataclass(frozen=True, slots=True)
class LinkTraffic:
    """The bytes that a link carries per iteration, and their share of its capacity."""

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
    """Bytes carried divided by capacity; for a server's cores, core-seconds."""

    name: Text
    kind: Text
    server: Server | None
    """Null for the uplink of a rack."""
    utilization: Share


@dataclass(frozen=True, slots=True)
class Utilization:
    """Shares of the measured iterations in which each worker and link is busy, for the recommended setting."""

    workers: tuple[WorkerUse, ...]
    links: tuple[LinkUse, ...]


@dataclass(frozen=True, slots=True)
class StragglerReport:
    """The worker whose part of the graph determines the limit of the recommended setting; null if none stands
    out."""

    worker: Rank
    boundary_nodes: Count
    boundary_nodes_mean: Amount
    """Mean over all workers."""
    share_of_mean: Amount
    """Its load on the limiting resource, divided by the mean load."""
    even_s: Seconds | None
    """Seconds per iteration if all parts were equal; null if that changes nothing."""
    text: Text
