"""Transfers between processes of this machine, over its loopback: by size and number of peers, in seconds and in
processor time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch

from gcnsim.ids import Rank
from runtime.exchange import Channel
from runtime.exchange.channels import Message
from runtime.microbench.bench import Bench, no_collector

BATCHES: Final = 5
"""Processor time is read so often, since reading it costs a message's worth."""

MOST_REPEATS: Final = 2_000
_WINDOWS: Final = 2
_STAT: Final = Path("/proc/stat")


@dataclass(frozen=True, slots=True)
class Timed:
    """One transfer repeated. seconds: of each. cpu: processor seconds of each process a transfer, [process][batch]."""

    seconds: list[float]
    cpu: list[list[float]]


def pairs(bench: Bench, channel: Channel, peer: Rank) -> None:
    """`p2p_oneway`, `p2p_both` and their processor times between the two processes of `channel`. params: bytes.

    peer: the other one; worker 0 is one of them.
    """
    sizes = bench.budget.of(
        (1 << 10,), (1 << 10, 1 << 14, 1 << 17, 1 << 20, 1 << 22), tuple(4**i for i in range(5, 13))
    )
    for nbytes in (4, *sizes):
        out, into, tiny = _buffer(nbytes), _buffer(nbytes), _buffer(4)
        first, answer = (out, tiny) if channel.rank == 0 else (tiny, into)

        def oneway(first: torch.Tensor = first, answer: torch.Tensor = answer) -> None:
            for tensor, outgoing in ((first, True), (answer, False))[:: 1 if channel.rank == 0 else -1]:
                channel.exchange([Message(peer, tensor, outgoing)])

        def both(out: torch.Tensor = out, into: torch.Tensor = into) -> None:
            channel.exchange([Message(peer, into, False), Message(peer, out, True)])

        params = {"bytes": nbytes}
        _record(bench, channel, "p2p_oneway", params, oneway, ("_cpu_sender", "_cpu_receiver"))
        _record(bench, channel, "p2p_both", params, both, ("_cpu",))


def interrupts(bench: Bench, channel: Channel) -> None:
    """`p2p_both_softirq`: what a transfer both ways costs the machine in interrupts, where the system shows it.

    The system counts in ticks of some ms, so many transfers are counted at once; whatever else the machine does in the
    meantime is counted too. params: bytes.
    """
    for nbytes in (1 << 10, 1 << 20):
        messages = [Message(1 - channel.rank, _buffer(nbytes), outgoing) for outgoing in (False, True)]
        channel.barrier()
        start = time.perf_counter()
        channel.exchange(messages)
        count = torch.tensor([1 + int(_WINDOWS * bench.budget.window_s / (time.perf_counter() - start))])
        channel.broadcast(count)
        before = _interrupt_seconds()
        for _ in range(int(count)):
            channel.exchange(messages)
        after = _interrupt_seconds()
        if channel.rank == 0 and before is not None and after:
            bench.found("p2p_both_softirq", {"bytes": nbytes}, [(after - before) / int(count)], 2)


def all_reduces(bench: Bench, channel: Channel, processes: int) -> None:
    """`all_reduce` among the processes of `channel`. params: bytes (of the tensor summed)."""
    sizes = bench.budget.of((1 << 10,), (1 << 10, 1 << 16, 1 << 20), tuple(4**i for i in range(5, 12)))
    for nbytes in sizes:
        tensor = _buffer(nbytes)

        def call(tensor: torch.Tensor = tensor) -> None:
            channel.wait(channel.all_reduce(tensor))

        _record(bench, channel, "all_reduce", {"bytes": nbytes}, call, ("_cpu",), processes)


def all_to_alls(bench: Bench, channel: Channel, processes: int) -> None:
    """`all_to_all` among the processes of `channel`. params: bytes (of each message), peers."""
    peers = [rank for rank in range(processes) if rank != channel.rank]
    for nbytes in bench.budget.of((1 << 10,), (1 << 10, 1 << 16, 1 << 20), tuple(4**i for i in range(5, 12))):
        messages = [Message(peer, _buffer(nbytes), outgoing) for outgoing in (False, True) for peer in peers]

        def call(messages: list[Message] = messages) -> None:
            channel.exchange(messages)

        _record(bench, channel, "all_to_all", {"bytes": nbytes, "peers": len(peers)}, call, ("_cpu",), processes)


def _record(
    bench: Bench,
    channel: Channel,
    kernel: str,
    params: dict[str, float],
    call: Callable[[], None],
    cpu: tuple[str, ...],
    processes: int = 2,
) -> None:
    """Repeat `call` on all processes at once; the first one tells. cpu: kernels of its processor time.

    Several of them are of one process each, by rank; a single one is of all.
    """
    timed = repeated(bench, channel, call)
    if channel.rank:
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


def _interrupt_seconds() -> float | None:
    """Seconds that all cores have spent in interrupts since the system started; None where it does not say."""
    try:
        fields = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()
    except OSError:
        return None
    ticks = sum(int(field) for field in fields[6:8])
    return ticks / os.sysconf("SC_CLK_TCK")


def _buffer(nbytes: int) -> torch.Tensor:
    return torch.zeros(max(1, nbytes // 4))
