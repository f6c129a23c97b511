"""The cluster: GPUs, hosts and a switch as a directed graph of links, and the routes that bytes take through it.

Servers hold consecutive ranks (partition ids in order). Traffic between GPUs is staged through host memory, as gloo
does and as machines without NVLink must: device-to-host over PCIe, then either the server's NIC, the switch and the
other server's NIC, or a copy inside host memory, then host-to-device over PCIe. Every link is one direction of a
full-duplex channel. A server's CPU cores are a link too: work done on them is shared by the same fair rule. Where a
cluster is emulated on one machine, all its servers have the cores of that machine in common.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from gcnsim.errors import ScenarioError
from gcnsim.ids import Bytes, Rank, Seconds, Server

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True, slots=True)
class LinkSpec:
    """What a kind of link offers per direction.

    capacity: payload bytes per second after framing (cores for a CPU). latency_s: delay of a message before its first
    byte arrives. half_size: message size, in bytes, that reaches half of the capacity; b bytes occupy the link like
    b + half_size bytes. queue: bytes that each transfer under way has waiting in the link's queue, first in first out:
    a message that starts then waits for all of them. 0 where the link takes turns between connections. cores: of a
    CPU on which threads take turns, each for slice_s while others wait; 0 where all work shares the cores equally.
    """

    capacity: float
    latency_s: Seconds = 0.0
    half_size: Bytes = 0.0
    queue: Bytes = 0.0
    cores: int = 0
    slice_s: Seconds = 0.0


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of one channel. kind: `pcie`, `nic`, `memory` or `cpu`."""

    name: str
    kind: str
    source: str
    target: str
    spec: LinkSpec


@dataclass(frozen=True)
class Cluster:
    """Servers and GPUs; `server_of[rank]` is the machine that holds the GPU. Link ids are positions in `links`.

    shared_cores: all servers use the cores of server 0. staging: by rank, the link that everything a worker sends to or
    hears from another passes on the host side; none where the hosts do not limit workers.
    """

    server_of: tuple[Server, ...]
    links: tuple[Link, ...]
    shared_cores: bool = False
    staging: tuple[int, ...] = ()

    @property
    def gpus(self) -> int:
        """Number of GPUs (= workers)."""
        return len(self.server_of)

    @property
    def servers(self) -> int:
        """Number of servers."""
        return max(self.server_of) + 1

    @cached_property
    def topology(self) -> nx.DiGraph[str]:
        """The networkx graph; each edge carries the id of its link."""
        import networkx as nx

        graph: nx.DiGraph[str] = nx.DiGraph()
        for index, link in enumerate(self.links):
            graph.add_edge(link.source, link.target, link=index)
        return graph

    @cached_property
    def _routes(self) -> dict[tuple[str, str], tuple[int, ...]]:
        return {}

    def route(self, source: str, target: str) -> tuple[int, ...]:
        """Ids of the links on the shortest path from node `source` to node `target`.

        Raises ScenarioError when the topology does not connect them.
        """
        key = (source, target)
        if key not in self._routes:
            self._routes[key] = self._shortest(source, target)
        return self._routes[key]

    @cached_property
    def _leaving(self) -> dict[str, list[tuple[str, int]]]:
        """By node, where each link that leaves it goes, and its id."""
        leaving: dict[str, list[tuple[str, int]]] = {}
        for index, link in enumerate(self.links):
            leaving.setdefault(link.source, []).append((link.target, index))
        return leaving

    def _shortest(self, source: str, target: str) -> tuple[int, ...]:
        """Breadth first, at least one link. By hand: importing networkx takes a third as long as all other imports."""
        reached: dict[str, tuple[int, ...]] = {source: ()}
        for node in (waiting := [source]):
            for after, link in self._leaving.get(node, []):
                if after == target:
                    return (*reached[node], link)
                if after not in reached:
                    reached[after] = (*reached[node], link)
                    waiting.append(after)
        raise ScenarioError(f"cluster: no path from {source} to {target}")

    def to_host(self, rank: Rank) -> tuple[int, ...]:
        """Route of a device-to-host copy."""
        return self.route(f"gpu{rank}", f"host{self.server_of[rank]}")

    def to_device(self, rank: Rank) -> tuple[int, ...]:
        """Route of a host-to-device copy."""
        return self.route(f"host{self.server_of[rank]}", f"gpu{rank}")

    def between(self, source: Rank, target: Rank) -> tuple[int, ...]:
        """Route from the host memory of one worker to that of another: the network, or host memory itself."""
        way = self.route(f"host{self.server_of[source]}", f"host{self.server_of[target]}")
        return (self.staging[source], *way, self.staging[target]) if self.staging else way

    def cores(self, rank: Rank) -> tuple[int, ...]:
        """The CPU cores that this worker shares with the others of its server (of all servers when emulated)."""
        server = 0 if self.shared_cores else self.server_of[rank]
        return self.route(f"threads{server}", f"cores{server}")

    def latency(self, route: tuple[int, ...]) -> Seconds:
        """Sum of the latencies along a route."""
        return sum(self.links[link].spec.latency_s for link in route)

    def queue(self, route: tuple[int, ...]) -> Bytes:
        """Largest queue per transfer along a route."""
        return max((self.links[link].spec.queue for link in route), default=0.0)

    def half_size(self, route: tuple[int, ...]) -> Bytes:
        """Largest half-size along a route."""
        return max((self.links[link].spec.half_size for link in route), default=0.0)


def build_cluster(
    *,
    gpus: int,
    gpus_per_server: int,
    pcie: LinkSpec,
    nic: LinkSpec,
    memory: LinkSpec,
    cores: LinkSpec,
    shared_cores: bool = False,
    staging: LinkSpec | None = None,
) -> Cluster:
    """Servers of `gpus_per_server` GPUs (the last may hold fewer), one NIC each, on one non-blocking switch.

    shared_cores: they are emulated on one machine, so `cores` are those of all together. staging: what the host side of
    one worker moves, sent and received together; None: no limit of its own.

    Raises ScenarioError for a non-positive count or a link without capacity.
    """
    if gpus < 1 or gpus_per_server < 1:
        raise ScenarioError(f"cluster: gpus ({gpus}) and gpus_per_server ({gpus_per_server}) must be at least 1")
    for kind, spec in {"pcie": pcie, "nic": nic, "memory": memory, "cpu": cores}.items():
        if not spec.capacity > 0:
            raise ScenarioError(f"cluster: {kind} capacity must be > 0, got {spec.capacity}")
    server_of = tuple(rank // gpus_per_server for rank in range(gpus))
    links: list[Link] = []
    # The switch adds no delay of its own: `latency_s` of the NIC is end to end, so only the sending side carries it.
    receive = LinkSpec(nic.capacity, 0.0, nic.half_size, nic.queue)
    for server in range(server_of[-1] + 1):
        links += [
            Link(f"nic{server}.tx", "nic", f"host{server}", "switch", nic),
            Link(f"nic{server}.rx", "nic", "switch", f"host{server}", receive),
            Link(f"memory{server}", "memory", f"host{server}", f"host{server}", memory),
        ]
        if server == 0 or not shared_cores:
            links.append(Link(f"cpu{server}", "cpu", f"threads{server}", f"cores{server}", cores))
    for rank, server in enumerate(server_of):
        links += [
            Link(f"pcie{rank}.up", "pcie", f"gpu{rank}", f"host{server}", pcie),
            Link(f"pcie{rank}.down", "pcie", f"host{server}", f"gpu{rank}", pcie),
        ]
    first = len(links)
    if staging is not None:
        links += [Link(f"staging{rank}", "memory", f"out{rank}", f"in{rank}", staging) for rank in range(gpus)]
    return Cluster(server_of, tuple(links), shared_cores, tuple(range(first, len(links))))
