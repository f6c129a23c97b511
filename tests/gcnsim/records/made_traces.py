"""Trace files in the shape of `torch.profiler`, made by hand so that every part of an iteration is known."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gcnsim.timeline.breakdown import EXPOSED, HIDDEN, OTHER, Parts

Event = dict[str, Any]

MAIN, PID, MS = 4001, 4000, 1e3
"""Thread, process, microseconds in a millisecond."""


def event(
    cat: str, name: str, start_ms: float, lasted_ms: float, tid: Any = MAIN, pid: Any = PID, **args: Any
) -> Event:
    """A complete event, milliseconds."""
    found = {"ph": "X", "cat": cat, "name": name, "pid": pid, "tid": tid, "ts": start_ms * MS, "dur": lasted_ms * MS}
    return found | ({"args": args} if args else {})


class Gpu:
    """Events of a GPU and of the CPU that launches them."""

    def __init__(self, device: int = 0, first: int = 0) -> None:
        """first: least correlation of its launches."""
        self.device, self.events, self._link = device, list[Event](), first

    def runs(
        self, cat: str, name: str, start: float, lasted: float, launched: float, stream: int = 7, **args: Any
    ) -> None:
        """What a launch at `launched` put on a stream."""
        self._link += 1
        call = "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel"
        self.events.append(event("cuda_runtime", call, launched, 0.01, correlation=self._link, cbid=211))
        place = {"device": self.device, "stream": stream, "correlation": self._link, **args}
        self.events.append(event(cat, name, start, lasted, stream, self.device, **place))


def cuda_events(rank: int = 0, steps: int = 5, device: int = 0, first: int = 0) -> list[Event]:
    """Iterations of 100 ms, the GPU 20 ms behind its CPU.

    Of an iteration the GPU idles 20 ms, in the first 5 of which the CPU samples; then 10 ms of copies, 30 of sums over
    neighbours, 15 of messages whose last 5 lie beneath a product of 10, an all-reduce of 15 that took rank 1 the last 5
    alone (it computed before), and 5 of the optimizer.
    """
    gpu = Gpu(device, first)
    for n in range(steps):
        cpu, at = 100.0 * n, 100.0 * n + 20.0
        gpu.events += [
            event("user_annotation", f"ProfilerStep#{n}", cpu, 100.0),
            event("user_annotation", "my_sampling", cpu, 5.0),
            event("cpu_op", "aten::mm", cpu + 6, 1.0),
            event("user_annotation", "nccl:all_reduce", cpu + 50, 40.0),
            event("user_annotation", "Optimizer.step#Adam.step", cpu + 90, 5.0),
            event("python_function", "train.py(12): step", cpu, 90.0) | {"dur": -5},
            {"ph": "f", "id": n, "pid": device, "tid": 7, "ts": at * MS, "cat": "ac2g", "name": "ac2g", "bp": "e"},
        ]
        gpu.runs("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", at, 10.0, cpu + 6, bytes=1_000_000)
        gpu.runs("kernel", "void cusparse::csrmm_v2_kernel<float>(int)", at + 10, 30.0, cpu + 10)
        gpu.runs("kernel", "ncclDevKernel_SendRecv(ncclDevComm*)", at + 40, 15.0, cpu + 20, stream=20)
        gpu.runs("kernel", "ampere_sgemm_128x64_tn", at + 50, 10.0, cpu + 30)
        name, early = "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*)", 0.0
        if rank:
            gpu.runs("kernel", "ampere_sgemm_128x64_tn", at + 60, 10.0, cpu + 40)
            early = 10.0
        gpu.runs("kernel", name, at + 60 + early, 15.0 - early, cpu + 60, stream=21)
        gpu.runs("kernel", "void at::native::multi_tensor_apply_kernel<float>(float*)", at + 75, 5.0, cpu + 91)
    return gpu.events


CUDA_PARTS: dict[str, float] = {
    "compute": 0.040,
    "handling": 0.0,
    "optimizer": 0.005,
    "exposed_sampling": 0.005,
    "network": 0.010,
    "copies": 0.010,
    "reduce": 0.005,
    "waiting": 0.010,
    "rest": 0.015,
    "hidden_comm": 0.005,
}
"""Of rank 0, beside rank 1."""


def by_part(parts: Parts) -> dict[str, float]:
    """Seconds by the name of the part."""
    return {name: getattr(parts, f"{name}_s") for name in ("compute", *EXPOSED, *OTHER, HIDDEN)}


def document(events: Sequence[Event], rank: int | None = None, world: int = 2) -> dict[str, Any]:
    """A whole file."""
    about: dict[str, Any] = (
        {} if rank is None else {"distributedInfo": {"backend": "nccl", "rank": rank, "world_size": world}}
    )
    head = {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "Tesla T4", "totalGlobalMem": 15843721216}],
        **about,
    }
    return {**head, "displayTimeUnit": "ms", "traceEvents": list(events), "traceName": "t.json"}


def write(path: Path, made: Any, indent: int | None = 2) -> Path:
    """`made` as JSON, gzip by the suffix."""
    text = json.dumps(made, indent=indent).encode()
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)
    return path


def folder(path: Path) -> Path:
    """Two ranks, whose files' names are in the other order."""
    write(path / "a_host_11.pt.trace.json", document(cuda_events(1), 1))
    write(path / "b_host_12.pt.trace.json.gz", document(cuda_events(0), 0))
    (path / "settings.json").write_text("{}")
    return path
