"""What every process of the micro-benchmarks does, in one order: kernels alone, then at once, then transfers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import torch
import torch.distributed as dist

from runtime.aggregate import matrix_kind
from runtime.exchange import Channel
from runtime.launch import Place, connect, disable_malloc_trim
from runtime.microbench import kernels, network, sharing
from runtime.microbench.bench import Bench
from runtime.microbench.inputs import prepared
from runtime.microbench.measurements import Measurement
from runtime.microbench.network import Carrier
from runtime.microbench.request import MicrobenchRequest
from runtime.options import Options
from runtime.train.setup import device_of

PATIENCE_S = 1800.0
"""The other members wait for the first one's measurements; the parent ends them when it fails."""


def run(request: MicrobenchRequest, place: Place, tell: Callable[[Measurement], None]) -> None:
    """Take all measurements with the other members; the first one tells of them.

    Raises ScenarioError for CUDA where there is none, and for kernels of a library that cannot be imported.
    """
    options = Options(device=request.device, threads=request.threads)
    matrix_kind(request.aggregator)
    bench = Bench(request, device_of(options, sharing.ALONE), tell)
    if bench.device.type == "cpu":
        # Memory as training has it.
        disable_malloc_trim()
    channels: dict[int, Channel] = {}
    if place.world > 1:
        connect(place, PATIENCE_S, "gloo")
        counts = {*request.workers, 2, place.world} if request.network else {*request.workers, place.world}
        channels = {count: _channel(count, place) for count in sorted(counts) if count > 1}
    # Made before anything is timed: who makes it keeps a core from the one that measures.
    ready = sharing.kernels(bench) if bench.device.type == "cpu" else []
    _together(place, channels)
    if place.rank == 0 and request.kernels:
        _alone(bench, request.budget.rounds)
    if bench.device.type == "cpu":
        _shared(bench, ready, place, channels)
    _together(place, channels)
    prepared.cache_clear()
    if request.network:
        _network(bench, place, channels)


def _alone(bench: Bench, rounds: int) -> None:
    """So many rounds of what one process measures by itself; the others wait without using a core."""
    shorter = replace(bench, request=replace(bench.request, budget=bench.budget.of_a_round()))
    for _ in range(rounds):
        bench.wake()
        kernels.measure_sums(shorter)
        kernels.measure_maps(shorter)
        kernels.measure_rows(shorter)
        kernels.measure_sampling(shorter)
        if bench.on_gpu:
            sharing.measure_copies(shorter)


def _shared(bench: Bench, ready: list[sharing.Kernel], place: Place, channels: dict[int, Channel]) -> None:
    """What processes cost one another."""
    for count in bench.request.workers:
        _together(place, channels)
        if place.rank < count:
            sharing.measure_sharing(bench, ready, channels.get(count), count)


def _network(bench: Bench, place: Place, channels: dict[int, Channel]) -> None:
    if place.rank < 2:
        network.pairs(bench, Carrier.gloo(channels[2]), 1 - place.rank)
    for count in bench.request.workers:
        _together(place, channels)
        if place.rank < count and count > 1:
            network.all_reduces(bench, Carrier.gloo(channels[count]), count)
    _together(place, channels)
    if bench.device.type == "cuda" and not bench.request.kernels:
        _network_of_gpus(bench, place, channels)


def _network_of_gpus(bench: Bench, place: Place, channels: dict[int, Channel]) -> None:
    """The same over NCCL, of as many processes as have a GPU each."""
    gpus = torch.cuda.device_count()
    for count in sorted(count for count in channels if count <= gpus):
        device = torch.device("cuda", place.rank % gpus)
        torch.cuda.set_device(device)
        carrier = network.over_nccl(f"{count} GPUs", range(count), channels[count], device)
        if place.rank < count:
            if count == 2:
                network.pairs(bench, carrier, 1 - place.rank)
            if count in bench.request.workers:
                network.all_reduces(bench, carrier, count)
        _together(place, channels)


def _channel(count: int, place: Place) -> Channel:
    """A channel among the first `count` members; all members open it."""
    group = dist.new_group(list(range(count)), timeout=timedelta(seconds=PATIENCE_S), backend="gloo")
    return Channel(f"of {count}", group, place.rank, PATIENCE_S)


def _together(place: Place, channels: dict[int, Channel]) -> None:
    """Wait for all members."""
    if place.world > 1:
        channels[place.world].barrier()
