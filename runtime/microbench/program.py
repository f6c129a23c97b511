"""What every process of the micro-benchmarks does, in one order: kernels alone, then at once, then transfers.

Kernels beside other work are here: copies between host and GPU, and kernels and iterations in several processes at
once.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist

from runtime.aggregate import matrix_kind
from runtime.data import DatasetCache
from runtime.exchange import Channel
from runtime.exchange.staging import Buffer, CopyStream
from runtime.launch import Place, connect, disable_malloc_trim
from runtime.microbench import kernels, network
from runtime.microbench.bench import Bench, Call, Shape, facts_of, matrix_of, no_collector, prepared, saved_graph
from runtime.microbench.kernels import activation, learnt_map, product
from runtime.microbench.measurements import Measurement, MicrobenchRequest
from runtime.microbench.network import Carrier
from runtime.options import Options
from runtime.train.reduce import LocalSums
from runtime.train.setup import WorkerState, device_of, prepare

WIDTH = 256
"""Values of a row: 1 KiB."""

BESIDE = 1 << 24
"""Bytes of a copy that runs beside a kernel."""


def measure_copies(bench: Bench) -> None:
    """`copy_to_device`, `copy_to_host`; `spmm`, `gemm` once more, and beside copies: `spmm_copying`, `gemm_copying`.

    params of the copies: bytes, pinned; of the others: those of the kernel.
    """
    for pinned in (True, False):
        for nbytes in bench.budget.of((1 << 14,), (1 << 14, 1 << 20, 1 << 24), tuple(4**i for i in range(5, 14))):
            host, there = _pair(bench, nbytes, pinned)
            params = {"bytes": nbytes, "pinned": int(pinned)}
            bench.time("copy_to_device", params, _copy(there, host))
            bench.time("copy_to_host", params, _copy(host, there))
    _kernels(bench)


def _kernels(bench: Bench) -> None:
    entries, nodes = bench.budget.of((1_000, 100), (4_000_000, 200_000), (4_000_000, 200_000))
    made = Shape(entries, nodes, nodes, skewed=True, local=True).made()
    matrix = matrix_of(made, bench.device, bench.request.aggregator)
    facts: dict[str, float] = {**facts_of(made), "width": 128, "hot": 0}
    shape: dict[str, float] = {"rows": nodes, "d_in": 128, "d_out": 128, "bias": 1}
    calls = {
        "spmm": (facts, product(bench, matrix, 128)[0]),
        "gemm": (shape, learnt_map(bench, nodes, 128, 128)),
    }
    for name, (params, call) in calls.items():
        bench.time(name, params, call)
        bench.time(f"{name}_copying", params, _beside(bench, call))
        if bench.on_gpu:
            # The last copies may be under way, and others use their memory next.
            torch.cuda.synchronize(bench.device)


def _beside(bench: Bench, call: Call) -> Call:
    """`call` with a copy each way under way on streams of their own, begun anew when the one before is done."""
    channels = []
    for there_first in (True, False):
        host, there = _pair(bench, BESIDE, True)
        channels.append((CopyStream(bench.device), (there, host) if there_first else (host, there)))
    ends = [torch.cuda.current_stream().record_event() for _ in channels]

    def both(i: int) -> None:
        for index, (stream, (target, source)) in enumerate(channels):
            if ends[index].query():
                with stream.after(None):
                    target.copy_(source, non_blocking=True)
                    ends[index] = torch.cuda.current_stream().record_event()
        call(i)

    return both


def _pair(bench: Bench, nbytes: int, pinned: bool) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows on the host and on the device, staged as transfers are; written, since pages never written are none yet."""
    rows = max(1, nbytes // (4 * WIDTH))
    host = Buffer(WIDTH, torch.float32, torch.device("cpu"), pinned=pinned).first(rows)
    return host.fill_(1.0), Buffer(WIDTH, torch.float32, bench.device).first(rows).fill_(1.0)


def _copy(target: torch.Tensor, source: torch.Tensor) -> Call:
    return lambda _: target.copy_(source, non_blocking=True)


ALONE = Place(0, 1, 0, 1, True)
CLASSES = 16

Kernel = tuple[str, dict[str, float], Call]


def kernels_at_once(bench: Bench) -> list[Kernel]:
    """What runs in every process: name, params and call, made once. Its own data each."""
    return [*_products(bench), *_maps(bench), _iteration(bench)]


def measure_sharing(bench: Bench, ready: list[Kernel], channel: Channel | None, processes: int) -> None:
    """`shared_*`: each kernel in all processes of `channel` for the same while (None: in this one alone).

    seconds: of one call, the while over the calls done in it, the mean of the processes; low, high: over processes.
    params as those of the kernel alone.
    """
    for name, params, call in ready:
        call(0)
        if channel is not None:
            channel.barrier()
        own = torch.tensor([_seconds_per_call(call, bench.budget.window_s)], dtype=torch.float64)
        found = [float(tensor) for tensor in ([own] if channel is None else channel.gather(own))]
        if channel is None or channel.rank == 0:
            bench.found(f"shared_{name}", params, found, processes, sum(found) / len(found))


def _seconds_per_call(call: Call, window_s: float) -> float:
    """Of as many calls as fit into a while; the last one may end after it."""
    count = 0
    with no_collector():
        start = time.perf_counter()
        while (spent := time.perf_counter() - start) < window_s:
            call(count)
            count += 1
    return spent / count


def _products(bench: Bench) -> list[Kernel]:
    """One that fits the caches of one core, and one that does not."""
    found: list[Kernel] = []
    sizes = bench.budget.of([(1_000, 100)], [(30_000, 2_000), (600_000, 40_000)], [(30_000, 2_000), (600_000, 40_000)])
    for entries, nodes in sizes:
        rows = Shape(entries, nodes, nodes, skewed=True, local=True).made()
        matrix = matrix_of(rows, bench.device, bench.request.aggregator)
        width = bench.budget.of(16, 64, 64)
        found.append(("spmm", {**facts_of(rows), "width": width, "hot": 0}, product(bench, matrix, width)[0]))
    return found


def _maps(bench: Bench) -> list[Kernel]:
    rows, width = bench.budget.of((64, 16), (4_096, 128), (4_096, 128))
    many = bench.budget.of(64, 32_768, 32_768)
    shape: dict[str, float] = {"rows": rows, "d_in": width, "d_out": width, "bias": 1}
    return [
        ("gemm", shape, learnt_map(bench, rows, width, width)),
        ("relu", dict[str, float](rows=many, width=width), activation(bench, many, width)),
    ]


def _iteration(bench: Bench) -> Kernel:
    size = bench.budget.of((64, 400, 16, 16, 2), (4_000, 60_000, 128, 128, 2), (4_000, 60_000, 128, 128, 2))
    return "iteration", *iterations(bench, *size)


def iterations(
    bench: Bench, nodes: int, entries: int, features: int, hidden: int, layers: int
) -> tuple[dict[str, float], Call]:
    """What is trained, and one iteration of it after another: full-graph training, recorded as by default."""
    worker, params = _worker(bench, nodes, entries, features, hidden, layers)

    def call(i: int) -> None:
        worker.trainer.iteration(i, LocalSums())
        worker.recorder.end_iteration()

    return params, call


def _worker(
    bench: Bench, nodes: int, entries: int, features: int, hidden: int, layers: int
) -> tuple[WorkerState, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="gcnsim-microbench-") as folder:
        path, graph = saved_graph(Path(folder), nodes, entries)
        options = Options(
            graph=path,
            random_features=features,
            random_classes=CLASSES,
            hidden=hidden,
            layers=layers,
            workers=1,
            device=bench.request.device,
            threads=bench.request.threads,
            aggregator=bench.request.aggregator,
        )
        worker = prepare(options, ALONE, bench.device, DatasetCache())
    sizes = {"nodes": nodes, "entries": graph.entries, "features": features, "hidden": hidden}
    return worker, {**sizes, "classes": CLASSES, "layers": layers}


PATIENCE_S = 1800.0
"""The other members wait for the first one's measurements; the parent ends them when it fails."""


def run(request: MicrobenchRequest, place: Place, tell: Callable[[Measurement], None]) -> None:
    """Take all measurements with the other members; the first one tells of them.

    Raises ScenarioError for CUDA where there is none, and for kernels of a library that cannot be imported.
    """
    options = Options(device=request.device, threads=request.threads)
    matrix_kind(request.aggregator)
    bench = Bench(request, device_of(options, ALONE), tell)
    if bench.device.type == "cpu":
        # Memory as training has it.
        disable_malloc_trim()
    channels: dict[int, Channel] = {}
    if place.world > 1:
        connect(place, PATIENCE_S, "gloo")
        counts = {*request.workers, 2, place.world} if request.network else {*request.workers, place.world}
        channels = {count: _channel(count, place) for count in sorted(counts) if count > 1}
    # Made before anything is timed: who makes it keeps a core from the one that measures.
    ready = kernels_at_once(bench) if bench.device.type == "cpu" else []
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
            measure_copies(shorter)


def _shared(bench: Bench, ready: list[Kernel], place: Place, channels: dict[int, Channel]) -> None:
    """What processes cost one another."""
    for count in bench.request.workers:
        _together(place, channels)
        if place.rank < count:
            measure_sharing(bench, ready, channels.get(count), count)


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
