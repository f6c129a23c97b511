"""The servers of a cluster: which workers stand on which, what hardware each is, and what the network between carries.

Transfers are measured as training makes them: by gloo, between the processes that train; for links alone also by NCCL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import torch
import torch.distributed as dist

from gcnsim.core.errors import ScenarioError
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.launch import Place
from runtime.microbench import network
from runtime.microbench.bench import Bench
from runtime.microbench.measurements import BETWEEN_SERVERS, Measurement, MicrobenchRequest
from runtime.microbench.network import Carrier
from runtime.microbench.process_group import measured
from runtime.record import hardware, versions
from runtime.train.setup import check_gpus

MEETING_S: Final = 120.0
"""How long workers wait for one another at the start."""

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


def measured_together(
    servers: Servers, request: MicrobenchRequest, show: Callable[[Measurement], None] = lambda _: None
) -> tuple[list[Measurement], float | None]:
    """What `request` asks: of the first server alone, transfers between all of them, where they are several.

    All workers call this, worker 0 has the measurements; all have the payload bytes/s of the slowest server, None of a
    single one. `show` is told of each as it comes.
    """
    several, found = servers.count > 1, list[Measurement]()
    if servers.place.rank == 0:
        found = measured(replace(request, network=request.network and not several), show)
    servers.channel.barrier()
    if not several:
        return found, None

    def tell(measurement: Measurement) -> None:
        found.append(measurement)
        show(measurement)

    return found, _transfers(servers, Bench(request, torch.device("cpu"), tell))


def _transfers(servers: Servers, bench: Bench) -> float:
    """Transfers between servers: `p2p_*` from the first to the second, sums of all, then `links_filled`.

    Gives the payload bytes/s of the slowest server.
    """
    place, ends = servers.place, [0, servers.each]
    pair = _channel("pair", ends, place)
    _of_carriers(servers, bench, Carrier.gloo(pair), Carrier.gloo(servers.channel))
    rate = carried(servers, bench)
    if bench.request.device == "cuda" and not bench.request.kernels and dist.is_nccl_available():
        device = torch.device("cuda", 0 if check_gpus(place) else place.local_rank)
        torch.cuda.set_device(device)
        gpus = network.over_nccl("pair of GPUs", ends, pair, device)
        every = network.over_nccl("GPUs", range(place.world), servers.channel, device)
        _of_carriers(servers, bench, gpus, every)
    return rate


def _of_carriers(servers: Servers, bench: Bench, pair: Carrier, every: Carrier) -> None:
    """Transfers of the first workers of two servers, then of all workers."""
    place, ends = servers.place, [0, servers.each]
    if place.rank in ends:
        network.pairs(bench, pair, sum(ends) - place.rank)
    servers.channel.barrier()
    network.all_reduces(bench, every, place.world)
    servers.channel.barrier()


def carried(servers: Servers, bench: Bench) -> float:
    """Payload bytes/s that the slowest server receives while every one sends to the next, all its workers at once.

    Tells of it as `links_filled`. params: bytes (that a server receives in a round), servers. seconds: of a round at
    the slowest server.
    """
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
    agreed = torch.tensor([1 + int(_FILLS * bench.budget.window_s / max(rounds(4), 1e-6))])
    channel.broadcast(agreed)
    rate = torch.tensor([MESSAGE / rounds(int(agreed))], dtype=torch.float64)
    rates = [float(tensor) for tensor in channel.gather(rate)]
    servers_rates = [sum(rates[first : first + each]) for first in range(0, place.world, each)]
    if place.rank == 0:
        nbytes = each * MESSAGE
        params = {"bytes": nbytes, "servers": servers.count}
        seconds = [nbytes / one for one in servers_rates]
        bench.found(BETWEEN_SERVERS, params, seconds, place.world, max(seconds))
    return min(servers_rates)
