"""Transfers between processes: by size, in seconds and in processor time.

Gloo carries tensors of the host, NCCL those of GPUs. **NCCL's have not run on GPUs yet.**
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import numpy as np
import torch
import torch.distributed as dist

from gcnsim.core.ids import Rank
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.microbench.bench import Bench, no_collector

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
