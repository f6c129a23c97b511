"""Transfers between processes, by size, in seconds and in processor time; and the servers that they connect.

Which workers stand on which server, what hardware each is, and what the network between carries. Gloo carries tensors
of the host, NCCL those of GPUs. **NCCL's have not run on GPUs yet.** Between servers transfers are measured as training
makes them: by gloo, between the processes that train; for links alone also by NCCL.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

import numpy as np
import torch
import torch.distributed as dist

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Rank
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.launch import Place
from runtime.microbench import network
from runtime.microbench.bench import Bench, no_collector
from runtime.microbench.measurements import BETWEEN_SERVERS, Measurement, MicrobenchRequest
from runtime.microbench.process_group import measured
from runtime.record import hardware, versions
from runtime.train.setup import check_gpus

NCCL: Final = "nccl_"
"""Before the names of transfers that NCCL carries."""

BATCHES: Final = 5
"""Processor time is read so often, since reading it costs a message's worth."""

MOST_REPEATS: Final = 2_000


@dataclass(frozen=True, slots=True)
class Timed:
    """One transfer repeated. seconds: of each. cpu: processor seconds of each process a transfer, [process][batch]."""

    seconds: list[float]
    cpu: list[list[float]]


@dataclass(frozen=True, slots=True)
class Carrier:
    """What carries messages. channel: theirs. control: gloo's, of the same processes, for numbers on the host.
    device: where tensors lie. name: before the names of transfers."""

    channel: Channel
    control: Channel
    device: torch.device
    name: str = ""

    @classmethod
    def gloo(cls, channel: Channel) -> Carrier:
        """Of tensors on the host."""
        return cls(channel, channel, torch.device("cpu"))

    @property
    def rank(self) -> Rank:
        """Of this process."""
        return self.control.rank

    def buffer(self, nbytes: int) -> torch.Tensor:
        """A tensor of so many bytes."""
        return torch.zeros(max(1, nbytes // 4), device=self.device)

    def exchange(self, messages: Sequence[Message]) -> None:
        """Send and receive all `messages`; returns when they are through."""
        self.channel.exchange(messages)
        self._through()

    def all_reduce(self, tensor: torch.Tensor) -> None:
        """Sum `tensor` over all processes; returns when it is summed."""
        self.channel.wait(self.channel.all_reduce(tensor))
        self._through()

    def _through(self) -> None:
        # NCCL's calls return before the GPU has done what they ask for.
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)


def over_nccl(name: str, members: Sequence[Rank], control: Channel, device: torch.device) -> Carrier:
    """NCCL among the GPUs of `members`, whose own is `device`; all workers open it. control: gloo's among them."""
    group = dist.new_group(list(members), timeout=timedelta(seconds=control.timeout_s), backend="nccl")
    carrier = Carrier(Channel(name, group, control.rank, control.timeout_s), control, device, NCCL)
    if control.rank in members:
        # The first use of a communicator needs all of them.
        carrier.all_reduce(carrier.buffer(4))
    return carrier


def pairs(bench: Bench, carrier: Carrier, peer: Rank) -> None:
    """`p2p_oneway` and its processor times between the two processes of `carrier`. params: bytes.

    peer: the other one; worker 0 is one of them.
    """
    sizes = bench.budget.of(
        (1 << 10,), (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22), tuple(4**i for i in range(5, 13))
    )
    for nbytes in (4, *sizes):
        whole, tiny = carrier.buffer(nbytes), carrier.buffer(4)
        first, answer = (whole, tiny) if carrier.rank == 0 else (tiny, whole)

        def oneway(first: torch.Tensor = first, answer: torch.Tensor = answer) -> None:
            for tensor, outgoing in ((first, True), (answer, False))[:: 1 if carrier.rank == 0 else -1]:
                carrier.exchange([Message(peer, tensor, outgoing)])

        _record(bench, carrier, "p2p_oneway", {"bytes": nbytes}, oneway, ("_cpu_sender", "_cpu_receiver"))


def all_reduces(bench: Bench, carrier: Carrier, processes: int) -> None:
    """`all_reduce` among the processes of `carrier`. params: bytes (of the tensor summed)."""
    sizes = bench.budget.of((1 << 10,), (1 << 10, 1 << 16, 1 << 20), tuple(4**i for i in range(5, 12)))
    for nbytes in sizes:
        tensor = carrier.buffer(nbytes)

        def call(tensor: torch.Tensor = tensor) -> None:
            carrier.all_reduce(tensor)

        _record(bench, carrier, "all_reduce", {"bytes": nbytes}, call, ("_cpu",), processes)


def _record(
    bench: Bench,
    carrier: Carrier,
    kernel: str,
    params: dict[str, float],
    call: Callable[[], None],
    cpu: tuple[str, ...],
    processes: int = 2,
) -> None:
    """Repeat `call` on all processes at once; the first one tells. cpu: kernels of its processor time.

    Several of them are of one process each, by rank; a single one is of all.
    """
    timed, kernel = repeated(bench, carrier.control, call), carrier.name + kernel
    if carrier.rank:
        return
    bench.found(kernel, params, timed.seconds, processes)
    if len(cpu) == 1:
        bench.found(kernel + cpu[0], params, np.mean(timed.cpu, axis=0).tolist(), processes)
    else:
        for name, found in zip(cpu, timed.cpu, strict=True):
            bench.found(kernel + name, params, found, processes)


def repeated(bench: Bench, channel: Channel, call: Callable[[], None]) -> Timed:
    """`call`, which all processes of `channel` make together, repeated as often as the first one says."""
    channel.barrier()
    call()
    start = time.perf_counter()
    call()
    once = time.perf_counter() - start
    wanted = max(bench.budget.samples, bench.budget.sample_s / max(once, 1e-9))
    agreed = torch.tensor([int(min(wanted, MOST_REPEATS)) // BATCHES + 1])
    channel.broadcast(agreed)
    channel.barrier()
    seconds: list[float] = []
    cpu: list[float] = []
    with no_collector():
        for _ in range(BATCHES):
            before = time.process_time()
            for _ in range(int(agreed)):
                start = time.perf_counter()
                call()
                seconds.append(time.perf_counter() - start)
            cpu.append((time.process_time() - before) / int(agreed))
    every = [tensor.tolist() for tensor in channel.gather(torch.tensor(cpu, dtype=torch.float64))]
    return Timed(seconds, every)


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
