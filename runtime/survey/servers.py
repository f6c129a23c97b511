"""The servers of a cluster: the workers on each, their hardware, and the capacity of the network between them.

Transfers are measured in the same way as training makes them: by gloo, between the training processes.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist

from gcnsim.errors import ScenarioError
from gcnsim.runs.files import Cluster
from runtime.emulation.spec import PAYLOAD_SHARE
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.launch import Place
from runtime.microbench import Measurement, MicrobenchRequest, TimeBudget, network
from runtime.microbench.bench import Bench
from runtime.record import hardware, versions
from runtime.train.setup import check_gpus

PATIENCE_S: Final = 3600.0
"""The other workers wait while worker 0 measures kernels."""

MESSAGE: Final = 1 << 22
"""Bytes of the messages that fill the links."""

_FILLS: Final = 4.0
"""The measurement windows during which the links are loaded."""


@dataclass(frozen=True, slots=True)
class Servers:
    """All workers, `each` of them on every one of `count` servers.

    channel: of all workers, with a long timeout. facts: of each server.
    """

    place: Place
    channel: Channel
    count: int
    each: int
    facts: tuple[dict[str, Any], ...]
    versions: dict[str, str]


def meet(place: Place, device: str) -> Servers:
    """Exchange facts between all workers in the joined process group.

    Raises ScenarioError if a server has fewer GPUs than workers, servers have unequal numbers of workers, ranks are not
    ordered by server, or versions differ: the simulator supports no such cluster.
    """
    channel = _channel("survey", list(range(place.world)), place)
    cuda = device == "cuda"
    if cuda:
        check_gpus(place)
    mine = {
        "local": place.local_rank,
        "of": place.local_world,
        "hardware": hardware(cuda),
        "versions": versions_here(cuda),
    }
    descriptions = [json.loads(array) for array in channel.gather_arrays(json.dumps(mine).encode())]
    for rank, other in enumerate(descriptions):
        if other["of"] != place.local_world or other["local"] != rank % place.local_world:
            raise ScenarioError(
                f"worker {rank} is number {other['local']} of {other['of']} on its server; allowed: as many workers on "
                "every server, their ranks in a row"
            )
        for name, version in other["versions"].items():
            if version != descriptions[0]["versions"].get(name):
                raise ScenarioError(
                    f"worker {rank} has {name} {version}, worker 0 has {descriptions[0]['versions'].get(name)}; "
                    "allowed: the same"
                )
    facts = tuple(other["hardware"] for other in descriptions[:: place.local_world])
    return Servers(place, channel, len(facts), place.local_world, facts, descriptions[0]["versions"])


def versions_here(cuda: bool) -> dict[str, str]:
    """The versions that must be the same on all servers."""
    return versions() | ({"cuda": str(torch.version.cuda)} if cuda else {})


def _channel(name: str, members: list[int], place: Place) -> Channel:
    """A channel among `members`; all workers open it."""
    group = dist.new_group(members, timeout=timedelta(seconds=PATIENCE_S), backend="gloo")
    return Channel(name, group, place.rank, PATIENCE_S)


def transfers(servers: Servers, budget: TimeBudget, tell: Callable[[Measurement], None]) -> None:
    """Transfers between servers: `p2p_*` from the first to the second, all-reduces and exchanges of all.

    All workers call it together; worker 0 decides.
    """
    place = servers.place
    request = MicrobenchRequest(budget=budget, workers=(min(place.world, 64),))
    bench = Bench(request, torch.device("cpu"), tell)
    ends = [0, servers.each]
    pair = _channel("pair", ends, place)
    if place.rank in ends:
        network.pairs(bench, pair, sum(ends) - place.rank)
    servers.channel.barrier()
    network.all_reduces(bench, servers.channel, place.world)
    network.all_to_alls(bench, servers.channel, place.world)
    servers.channel.barrier()


def carried(servers: Servers, window_s: float) -> float:
    """Payload bytes/s that the slowest server receives while all servers send to the next with all their workers."""
    channel, place, each = servers.channel, servers.place, servers.each
    into, out = torch.zeros(MESSAGE // 4), torch.zeros(MESSAGE // 4)
    messages = [
        Message((place.rank - each) % place.world, into, False),
        Message((place.rank + each) % place.world, out, True),
    ]

    def rounds(count: int) -> float:
        channel.barrier()
        start = time.perf_counter()
        for _ in range(count):
            channel.exchange(messages)
        return (time.perf_counter() - start) / count

    rounds(2)
    agreed = torch.tensor([1 + int(_FILLS * window_s / max(rounds(4), 1e-6))])
    channel.broadcast(agreed)
    rate = torch.tensor([MESSAGE / rounds(int(agreed))], dtype=torch.float64)
    rates = [float(tensor) for tensor in channel.gather(rate)]
    return min(sum(rates[first : first + each]) for first in range(0, place.world, each))


def cluster_of(servers: Servers, measured: float, bandwidth: float | None) -> Cluster:
    """The facts that a simulation needs. bandwidth: raw; None: derived from the `measured` payload rate."""
    return Cluster(
        hosts=servers.count,
        workers_per_host=servers.each,
        bandwidth=measured / PAYLOAD_SHARE if bandwidth is None else bandwidth,
        measured=measured,
    )
