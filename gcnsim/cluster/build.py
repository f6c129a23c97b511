"""A cluster written as links: NICs, racks, host memory, cores, and what each GPU hangs off."""

from __future__ import annotations

from collections.abc import Sequence

from gcnsim.cluster.links import Link, LinkSpec, Paths
from gcnsim.cluster.topology import Cluster
from gcnsim.errors import ScenarioError
from gcnsim.ids import Server


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
    """Servers of `gpus_per_server` GPUs (the last may hold fewer), one NIC each, on one non-blocking switch.

    pcie: of every GPU, or one for each rank. shared_cores: the servers are emulated on one machine, so `cores` are
    those of all together. staging: what the host side of one worker moves, sent and received together; None: no limit
    of its own. paths: what there is besides; None: nothing.

    Raises ScenarioError for a non-positive count or a link without capacity.
    """
    if gpus < 1 or gpus_per_server < 1:
        raise ScenarioError(f"cluster: gpus ({gpus}) and gpus_per_server ({gpus_per_server}) must be at least 1")
    own = [pcie] * gpus if isinstance(pcie, LinkSpec) else list(pcie)
    if len(own) != gpus:
        raise ScenarioError(f"cluster: {len(own)} PCIe links for {gpus} GPUs")
    for kind, spec in [*(("pcie", each) for each in own), ("nic", nic), ("memory", memory), ("cpu", cores)]:
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
        links += [Link(f"dram{each}", "memory", f"reads{each}", f"writes{each}", has.host_memory) for each in servers]
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
    # Switches add no delay of their own: `latency_s` of the NIC is end to end, so only the sending side carries it.
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
            # The last rack may hold fewer servers: its uplink is that of those it holds.
            held = min(has.servers_per_rack, servers - rack * has.servers_per_rack)
            uplink = LinkSpec(nic.capacity * held / has.oversubscription)
            links += [
                Link(f"rack{rack}.up", "rack", f"rack{rack}", "switch", uplink),
                Link(f"rack{rack}.down", "rack", "switch", f"rack{rack}", uplink),
            ]
    return links


def _devices(server_of: tuple[Server, ...], pcie: Sequence[LinkSpec], has: Paths) -> list[Link]:
    """The links of each GPU: to the others of its server, and to its host, behind a PCIe switch where it shares one."""
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
