"""The cluster: GPUs, hosts and a switch as a directed graph of links, and the routes of bytes through it.

The links are NICs, racks, host memory, cores, and the links of each GPU. Servers hold consecutive ranks (partition ids
in order).

Traffic between GPUs is staged through host memory, as with gloo and on machines without NVLink. It goes device-to-host
over PCIe, then to the other server or through a copy inside host memory, then host-to-device over PCIe. Between servers
it takes the server's NIC, the switch and the other server's NIC. If a cluster has paths from GPU to GPU (`Paths`),
those are `direct`: one flow over all their links.

Every link is one direction of a full-duplex channel: a GPU copies in both directions at once. A server's CPU cores are
also a link: work on them is shared by the same fair rule. If a cluster is emulated on one machine, all its servers
share that machine's cores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import BoolArray, Bytes, FloatArray, Rank, Seconds, Server, frozen
from gcnsim.hardware.link_specs import RING, Link, LinkSpec, Paths, Sockets

if TYPE_CHECKING:
    import networkx as nx


@dataclass(frozen=True)
class Cluster:
    """Servers and GPUs; `server_of[rank]` is the server of the GPU. Link ids are positions in `links`.

    shared_cores: all servers use the cores of server 0. staging: by rank, the host-side link that all of a worker's
    messages use; empty if the hosts do not limit workers. memories: by server, the memory link that copies and network
    traffic use; empty if it is unlimited. direct_network, direct_server: whether bytes are streamed from GPU to GPU
    without whole copies in host memory, between servers and within one. beside: the direct path between servers
    bypasses host memory. allreduce: the algorithm that sums gradients. sockets: the CPU time of messages between hosts;
    None: none. peers: direct copies within a server bypass host memory. bridged: the number of consecutive GPUs of a
    server joined by NVLink; 0: all, or none.
    """

    server_of: tuple[Server, ...]
    links: tuple[Link, ...]
    shared_cores: bool = False
    staging: tuple[int, ...] = ()
    memories: tuple[int, ...] = ()
    direct_network: bool = False
    direct_server: bool = False
    beside: bool = False
    allreduce: str = RING
    sockets: Sockets | None = None
    peers: bool = True
    bridged: int = 0

    @property
    def gpus(self) -> int:
        """Number of GPUs (= workers)."""
        return len(self.server_of)

    @cached_property
    def servers(self) -> int:
        """Number of servers."""
        return max(self.server_of) + 1

    @cached_property
    def _bridge(self) -> tuple[int, ...]:
        """By rank, the NVLink bridge of its server."""
        first = {server: rank for rank, server in reversed(list(enumerate(self.server_of)))}
        return tuple((rank - first[server]) // self.bridged for rank, server in enumerate(self.server_of))

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

    @cached_property
    def _between(self) -> dict[Server, tuple[tuple[int, ...], ...]]:
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
        """By node, the target and id of each outgoing link."""
        leaving: dict[str, list[tuple[str, int]]] = {}
        for index, link in enumerate(self.links):
            leaving.setdefault(link.source, []).append((link.target, index))
        return leaving

    def _from_host(self, server: Server) -> tuple[tuple[int, ...], ...]:
        """Routes from the host memory of one server to that of every server, in one search, because there may be a
        million pairs.
        """
        source = f"host{server}"
        reached: dict[str, tuple[int, ...]] = {}
        for node in (waiting := [source]):
            way = () if node == source else reached[node]
            for after, link in self._leaving.get(node, []):
                if after not in reached:
                    reached[after] = (*way, link)
                    if after != source:
                        waiting.append(after)
        found = (reached.get(f"host{other}", ()) for other in range(self.servers))
        ways = tuple(
            way + self._memory(*dict.fromkeys((server, other))) if way else () for other, way in enumerate(found)
        )
        if not all(ways):
            raise ScenarioError(f"cluster: no path from {source} to host{ways.index(())}")
        return ways

    def _shortest(self, source: str, target: str) -> tuple[int, ...]:
        """Breadth-first search, at least one link. Implemented here because importing networkx takes a third as long as
        all other imports.
        """
        reached: dict[str, tuple[int, ...]] = {source: ()}
        for node in (waiting := [source]):
            for after, link in self._leaving.get(node, []):
                if after == target:
                    return (*reached[node], link)
                if after not in reached:
                    reached[after] = (*reached[node], link)
                    waiting.append(after)
        raise ScenarioError(f"cluster: no path from {source} to {target}")

    @cached_property
    def _copies(self) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
        """By rank, the routes of its copies to the host and from it."""
        return [
            (
                self.route(f"gpu{rank}", f"host{server}") + self._memory(server),
                self.route(f"host{server}", f"gpu{rank}") + self._memory(server),
            )
            for rank, server in enumerate(self.server_of)
        ]

    def to_host(self, rank: Rank) -> tuple[int, ...]:
        """Route of a device-to-host copy."""
        return self._copies[rank][0]

    def to_device(self, rank: Rank) -> tuple[int, ...]:
        """Route of a host-to-device copy."""
        return self._copies[rank][1]

    def between(self, source: Rank, target: Rank) -> tuple[int, ...]:
        """Route from the host memory of one worker to that of another: the network, or host memory itself."""
        server = self.server_of[source]
        ways = self._between.get(server)
        if ways is None:
            ways = self._between[server] = self._from_host(server)
        way = ways[self.server_of[target]]
        return (self.staging[source], *way, self.staging[target]) if self.staging else way

    def direct(self, source: Rank, target: Rank) -> tuple[int, ...] | None:
        """Route from GPU to GPU on which bytes are streamed; None if they are copied to the host first."""
        ends = self.server_of[source], self.server_of[target]
        if ends[0] == ends[1]:
            if self.bridged and self._bridge[source] == self._bridge[target]:
                return self.route(f"gpu{source}", f"gpu{target}")
            if not self.direct_server:
                return None
            if not self.peers:
                return tuple(dict.fromkeys(self.to_host(source) + self.to_device(target)))
            return self.route(f"gpu{source}", f"gpu{target}")
        if not self.direct_network:
            return None
        if self.beside:
            # The NIC is attached to the same switch (or root) as the GPU, so no host link is crossed.
            up, down = (
                self.route(f"gpu{source}", f"host{ends[0]}")[:1],
                self.route(f"host{ends[1]}", f"gpu{target}")[-1:],
            )
            return up + self.route(f"host{ends[0]}", f"host{ends[1]}") + down
        return tuple(dict.fromkeys(self.to_host(source) + self.between(source, target) + self.to_device(target)))

    @cached_property
    def staged(self) -> BoolArray:
        """bool[gpus, gpus]: whether rows from one worker to another are copied to the host first."""
        found: BoolArray = ~np.eye(self.gpus, dtype=np.bool_)
        if self.direct_network or self.direct_server:
            for rank, peer in np.argwhere(found).tolist():
                found[rank, peer] = self.direct(rank, peer) is None
        return frozen(found)

    def _memory(self, *servers: Server) -> tuple[int, ...]:
        """The links that traffic uses in the memory of these servers."""
        return tuple(self.memories[server] for server in servers) if self.memories else ()

    def cores(self, rank: Rank) -> tuple[int, ...]:
        """The CPU cores that this worker shares with the others of its server (of all servers when emulated)."""
        server = 0 if self.shared_cores else self.server_of[rank]
        return self.route(f"threads{server}", f"cores{server}")

    def delays(self, routes: Sequence[tuple[int, ...]]) -> FloatArray:
        """Latency, start-up and queue of each route, float64[3, R]; 0 of an empty one."""
        found, lengths = np.zeros((3, len(routes))), np.array([len(route) for route in routes], np.int64)
        some = np.flatnonzero(lengths)
        if some.size:
            latency, startup, queue = self._link_delays[:, list(chain(*routes))]
            at = np.cumsum(lengths[some]) - lengths[some]
            first = np.maximum.reduceat(startup, at)
            found[:, some] = np.add.reduceat(latency - startup, at) + first, first, np.maximum.reduceat(queue, at)
        return found

    @cached_property
    def _link_delays(self) -> FloatArray:
        specs = [link.spec for link in self.links]
        return np.array([[spec.latency_s, spec.startup_s, spec.queue] for spec in specs], np.float64).T

    def latency(self, route: tuple[int, ...]) -> Seconds:
        """Sum of the latencies along a route, except that only the largest start-up counts."""
        specs = [self.links[link].spec for link in route]
        return sum(spec.latency_s - spec.startup_s for spec in specs) + self.startup(route)

    def startup(self, route: tuple[int, ...]) -> Seconds:
        """Largest start-up along a route: one call starts all its links in parallel."""
        return max((self.links[link].spec.startup_s for link in route), default=0.0)

    def queue(self, route: tuple[int, ...]) -> Bytes:
        """Largest queue per transfer along a route."""
        return max((self.links[link].spec.queue for link in route), default=0.0)


def build_cluster(
    *,
    gpus: int,
    gpus_per_server: int,
    pcie: LinkSpec | Sequence[LinkSpec],
    nic: LinkSpec,
    memory: LinkSpec,
    cores: LinkSpec,
    shared_cores: bool = False,
    staging: LinkSpec | None = None,
    paths: Paths | None = None,
) -> Cluster:
    """Servers of `gpus_per_server` GPUs (the last may have fewer), one NIC each, on one non-blocking switch.

    pcie: of every GPU, or one for each rank. shared_cores: the servers are emulated on one machine, so `cores` are
    shared by all. staging: the capacity of the host side of one worker, sent and received together; None: unlimited.
    paths: the optional paths; None: none. Raises ScenarioError for a non-positive count or a link without capacity.
    """
    if gpus < 1 or gpus_per_server < 1:
        raise ScenarioError(f"cluster: gpus ({gpus}) and gpus_per_server ({gpus_per_server}) must be at least 1")
    own = [pcie] * gpus if isinstance(pcie, LinkSpec) else list(pcie)
    if len(own) != gpus:
        raise ScenarioError(f"cluster: {len(own)} PCIe links for {gpus} GPUs")
    for kind, spec in [*(("pcie", item) for item in own), ("nic", nic), ("memory", memory), ("cpu", cores)]:
        if not spec.capacity > 0:
            raise ScenarioError(f"cluster: {kind} capacity must be > 0, got {spec.capacity}")
    has = paths or Paths()
    server_of = tuple(rank // gpus_per_server for rank in range(gpus))
    servers = range(server_of[-1] + 1)
    links = _network(len(servers), nic, memory, None if shared_cores else cores, has)
    if shared_cores:
        links.insert(3, Link("cpu0", "cpu", "threads0", "cores0", cores))
    links += _devices(server_of, own, has)
    first = len(links)
    if staging is not None:
        links += [Link(f"staging{rank}", "memory", f"out{rank}", f"in{rank}", staging) for rank in range(gpus)]
    last = len(links)
    joined_all = has.nvlink is not None and not has.nvlink_gpus
    if has.host_memory is not None:
        links += [
            Link(f"dram{server}", "memory", f"reads{server}", f"writes{server}", has.host_memory) for server in servers
        ]
    return Cluster(
        server_of,
        tuple(links),
        shared_cores,
        tuple(range(first, last)),
        tuple(range(last, len(links))),
        has.direct or has.gpudirect,
        has.direct or joined_all,
        has.gpudirect,
        has.allreduce,
        has.sockets,
        has.peer_to_peer or joined_all,
        0 if has.nvlink is None else has.nvlink_gpus,
    )


def _network(servers: int, nic: LinkSpec, memory: LinkSpec, cores: LinkSpec | None, has: Paths) -> list[Link]:
    """NICs, copies within host memory, and the cores of each server; the uplinks of racks."""
    # Switches add no delay: `latency_s` of the NIC is end to end, so only the sending side has it.
    receive = LinkSpec(nic.capacity, queue=nic.queue)
    links: list[Link] = []
    for server in range(servers):
        switch = f"rack{server // has.servers_per_rack}" if has.servers_per_rack else "switch"
        links += [
            Link(f"nic{server}.tx", "nic", f"host{server}", switch, nic),
            Link(f"nic{server}.rx", "nic", switch, f"host{server}", receive),
            Link(f"memory{server}", "memory", f"host{server}", f"host{server}", memory),
        ]
        if cores is not None:
            links.append(Link(f"cpu{server}", "cpu", f"threads{server}", f"cores{server}", cores))
    if has.servers_per_rack:
        for rack in range(-(-servers // has.servers_per_rack)):
            # The uplink of the last rack matches the servers it has.
            held = min(has.servers_per_rack, servers - rack * has.servers_per_rack)
            uplink = LinkSpec(nic.capacity * held / has.oversubscription)
            links += [
                Link(f"rack{rack}.up", "rack", f"rack{rack}", "switch", uplink),
                Link(f"rack{rack}.down", "rack", "switch", f"rack{rack}", uplink),
            ]
    return links


def _devices(server_of: tuple[Server, ...], pcie: Sequence[LinkSpec], has: Paths) -> list[Link]:
    """The links of each GPU: to the others of its server, and to its host, possibly behind a shared PCIe switch."""
    links: list[Link] = []
    uplinks: dict[str, LinkSpec] = {}
    for rank, server in enumerate(server_of):
        place_in_server = rank - server_of.index(server)
        if has.nvlink is not None:
            arrive = LinkSpec(has.nvlink.capacity)
            bridge = f".{place_in_server // has.nvlink_gpus}" if has.nvlink_gpus else ""
            links += [
                Link(f"nvlink{rank}.tx", "nvlink", f"gpu{rank}", f"nvlinks{server}{bridge}", has.nvlink),
                Link(f"nvlink{rank}.rx", "nvlink", f"nvlinks{server}{bridge}", f"gpu{rank}", arrive),
            ]
        root = f"host{server}"
        if has.gpus_per_switch:
            place = place_in_server // has.gpus_per_switch
            root = f"pcie-switch{server}.{place}"
            if root not in uplinks:
                uplinks[root] = LinkSpec(pcie[rank].capacity)
                links += [
                    Link(f"{root}.up", "pcie", root, f"host{server}", uplinks[root]),
                    Link(f"{root}.down", "pcie", f"host{server}", root, uplinks[root]),
                ]
        links += [
            Link(f"pcie{rank}.up", "pcie", f"gpu{rank}", root, pcie[rank]),
            Link(f"pcie{rank}.down", "pcie", root, f"gpu{rank}", pcie[rank]),
        ]
    return links
