"""Specifications of links, the optional paths of a cluster, and the names of links.

A link's name (`gcnsim/hardware/topology.py`) is parsed to find its owner, its family and its description.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Bytes, Rank, Seconds, Server

RING: Final = "ring"
TREE: Final = "tree"
ALLREDUCES: Final = (RING, TREE)
"""Orders in which the gradients of all workers are summed (`gcnsim.schedule.collectives`)."""


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """The properties of a kind of link per direction.

    capacity: payload bytes per second after framing (cores for a CPU). latency_s: delay of a message before its first
    byte arrives, independent of its size; it does not occupy the link. A message of latency_s x capacity bytes
    (Hockney's half-size) reaches half of the capacity. startup_s: the part of latency_s that is work on the message
    (call, set-up) and not travel, so the next message of its connection waits for it too. At most latency_s. queue:
    bytes that each active transfer has waiting in the link's first-in first-out queue; a new message waits for all of
    them. 0 if the link alternates between connections. cores: cores of a CPU whose threads take turns, each for slice_s
    while others wait; 0 if all work shares the cores equally. wake_s: the most time before a thread with new work and
    less core time may preempt another; None: slice_s.
    """

    capacity: float
    latency_s: Seconds = 0.0
    startup_s: Seconds = 0.0
    queue: Bytes = 0.0
    cores: int = 0
    slice_s: Seconds = 0.0
    wake_s: Seconds | None = None


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of one channel. kind: `pcie`, `nvlink`, `nic`, `rack`, `memory` or `cpu`."""

    name: str
    kind: str
    source: str
    target: str
    spec: LinkSpec


@dataclass(frozen=True, slots=True)
class Sockets:
    """The CPU time of a message between hosts at each end: its bytes over bandwidth, plus message_s."""

    bandwidth: float
    message_s: Seconds


@dataclass(frozen=True, slots=True)
class Paths:
    """The optional paths of a cluster in addition to GPU-host links and NICs; by default none.

    nvlink: a GPU's links to the others of its server, in total; None: none. nvlink_gpus: the number of consecutive GPUs
    of a server that they join; 0: all. gpus_per_switch: the GPUs that share one uplink of a PCIe switch; 0: separate
    uplinks. servers_per_rack: the servers (the last rack may have fewer) that share uplinks, slower by
    `oversubscription` than their NICs together; 0: one switch for all. host_memory: the memory bandwidth shared by
    copies and network traffic of a server; None: unlimited. direct: bytes between GPUs are streamed without whole
    copies in host memory. gpudirect: data between GPUs and the NIC bypass host memory. peer_to_peer: direct copies
    within a server bypass host memory; without it they are streamed through it. allreduce: the algorithm that sums
    gradients. sockets: the CPU time of messages between hosts; None: none.
    """

    nvlink: LinkSpec | None = None
    nvlink_gpus: int = 0
    gpus_per_switch: int = 0
    servers_per_rack: int = 0
    oversubscription: float = 1.0
    host_memory: LinkSpec | None = None
    direct: bool = False
    gpudirect: bool = False
    peer_to_peer: bool = True
    allreduce: str = RING
    sockets: Sockets | None = None

    def __post_init__(self) -> None:
        for kind, spec in {"nvlink": self.nvlink, "host_memory": self.host_memory}.items():
            if spec is not None and not spec.capacity > 0:
                raise ScenarioError(f"cluster: {kind} capacity must be > 0, got {spec.capacity}")
        if min(self.gpus_per_switch, self.servers_per_rack) < 0 or not self.oversubscription >= 1:
            raise ScenarioError(
                f"cluster: gpus_per_switch ({self.gpus_per_switch}) and servers_per_rack ({self.servers_per_rack}) "
                f"must be at least 0, oversubscription ({self.oversubscription}) at least 1"
            )


SERVER: Final = "server"
WORKER: Final = "worker"
RACK: Final = "rack"


class LinkFamily(NamedTuple):
    """Links whose names have the same prefix. owner: the owner of each. text: a link in words, by its number and, for a
    PCIe switch, its place in the server. others: the other links of its kind, in words. head: the heading of a column.
    """

    owner: str
    text: str
    others: str
    head: str


FAMILIES: Final[Mapping[str, LinkFamily]] = {
    "nic": LinkFamily(SERVER, "NIC of server {0}", "those of other servers", "NIC"),
    "pcie": LinkFamily(WORKER, "PCIe of worker {0}", "those of other workers", "PCIe"),
    "pcie-switch": LinkFamily(SERVER, "PCIe switch {1} of server {0}", "other switches", "PCIe switch {1}"),
    "nvlink": LinkFamily(WORKER, "NVLink of worker {0}", "those of other workers", "NVLink"),
    "memory": LinkFamily(SERVER, "host memory copies of server {0}", "those of other servers", "memory"),
    "dram": LinkFamily(SERVER, "host memory of server {0}", "those of other servers", "host memory"),
    "staging": LinkFamily(WORKER, "host memory copies of worker {0}", "those of other workers", "memory copies"),
    "rack": LinkFamily(RACK, "uplink of rack {0}", "those of other racks", "uplink"),
    "cpu": LinkFamily(SERVER, "CPU cores of server {0}", "those of other servers", "CPU cores"),
}
"""The families by prefix of their names."""

_NAME: Final = re.compile(r"([a-z-]+?)([0-9]{1,9})(?:\.([0-9]{1,9}))?(?:\.([a-z]+))?")


@dataclass(frozen=True, slots=True)
class LinkName:
    """A parsed link name: `pcie-switch0.1.up` is the uplink of switch 1 of server 0.

    number: of its server, worker or rack. place: of a PCIe switch in its server, else None. way: `tx`, `rx`, `up` or
    `down`; None for links with one direction.
    """

    family: str
    number: int
    place: int | None
    way: str | None

    @classmethod
    def of(cls, name: str) -> LinkName | None:
        """The parts of a name; None for an unknown name."""
        match = _NAME.fullmatch(name)
        if match is None or match[1] not in FAMILIES:
            return None
        return cls(match[1], int(match[2]), None if match[3] is None else int(match[3]), match[4])

    @property
    def text(self) -> str:
        """Its description, without the direction."""
        return FAMILIES[self.family].text.format(self.number, self.place)

    @property
    def others(self) -> str:
        """The other links of its kind, in words."""
        return FAMILIES[self.family].others

    @property
    def head(self) -> str:
        """Its heading among the links of its owner."""
        return FAMILIES[self.family].head.format(self.number, self.place)

    @property
    def of_server(self) -> Server | None:
        """Its server; None for links of workers and racks."""
        return self.number if FAMILIES[self.family].owner == SERVER else None

    @property
    def of_worker(self) -> Rank | None:
        """Its worker; None for links of servers and racks."""
        return self.number if FAMILIES[self.family].owner == WORKER else None

    def in_server(self, gpus_per_server: int) -> Server | None:
        """The server that contains it, also for a worker's link; None for links of racks."""
        return self.of_server if self.of_worker is None else self.of_worker // gpus_per_server

    def serves(self, worker: Rank, gpus_per_server: int) -> bool:
        """Whether it belongs to this worker, to its server, or to no single one."""
        own = self.in_server(gpus_per_server) in (None, worker // gpus_per_server)
        return own and self.of_worker in (None, worker)
