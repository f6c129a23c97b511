"""Copies between host and GPU, and kernels while they run."""

from __future__ import annotations

import torch

from runtime.exchange.staging import Buffer, CopyStream
from runtime.microbench.bench import Bench, Call
from runtime.microbench.inputs import Shape, facts_of, matrix_of
from runtime.microbench.maps import learnt_map
from runtime.microbench.sums import product

WIDTH = 256
"""Values of a row: 1 KiB."""

BESIDE = 1 << 24
"""Bytes of a copy that runs beside a kernel."""


def measure(bench: Bench) -> None:
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
    kernels = {
        "spmm": (facts, product(bench, matrix, 128)[0]),
        "gemm": (shape, learnt_map(bench, nodes, 128, 128)),
    }
    for name, (params, call) in kernels.items():
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
