"""A server with two T4 whose figures are known: the measurements that its laws give, and runs on two of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from gcnsim.cost import elementwise_seconds, gemm_seconds, rows_seconds, spmm_seconds
from gcnsim.cost.layers import RELU_BACKWARD_PASSES, RELU_PASSES
from gcnsim.hardware import Curve, DeviceProfile, Figure, device
from gcnsim.records.run_files import CLUSTER, Cluster, write_cluster
from tests.gcnsim.evidence.made_calibration import MACHINE, VERSIONS, messages, point, sampling

T4S = ("Tesla T4", "Tesla T4")
DEVICE: Mapping[str, float] = {
    "launch_s": 0.0,
    "memory_bandwidth": 280e9,
    "flops_fp32": 7e12,
    "spmm_efficiency": 0.7,
    "gemm_efficiency": 1.0,
    "gather_efficiency": 0.5,
    "elementwise_efficiency": 1.0,
}
CALL_S = 1e-5
"""Of its host, for which the next kernel waits where it is the longer one."""

COPIES: Mapping[str, float] = {"bandwidth": 11e9, "efficiency": 1.0, "latency_s": 1.4e-5}
UNPINNED = 3.0
"""How many times longer copies take that are not pinned."""

SUM_BESIDE, MAP_BESIDE = 1.25, 1.1
"""How many times longer kernels take beside copies."""

BESIDE_SUM: Mapping[str, Any] = {"entries": 1_000_000, "rows": 50_000, "columns": 50_000, "width": 128, "hot": 0}
BESIDE_MAP: Mapping[str, Any] = {"rows": 50_000, "d_in": 128, "d_out": 128, "bias": 1}


def known_gpu(curve: Curve | None = None, **changes: float) -> DeviceProfile:
    """The GPU of that server."""
    figures: dict[str, Any] = {
        name: Figure(value, "fitted", "chosen for a test", "2026") for name, value in (dict(DEVICE) | changes).items()
    }
    return replace(device("t4"), spmm_curve=curve, multiprocessors=None, cache_bandwidth=None, **figures)


def measurements(chosen: DeviceProfile | None = None, call_s: float = CALL_S) -> dict[str, Any]:
    """What micro-benchmarks of that server would write, were its laws exact. call_s: of its host."""
    gpu = chosen or known_gpu()
    kernels = [*_passes(gpu), *_maps(gpu), *_sums(gpu)]
    for kernel in kernels:
        kernel["seconds"] = max(kernel["seconds"], call_s)
    found = [*kernels, *_copies(), *_beside(gpu), *sampling(), *messages()]
    return {
        "schema": "gcnsim.measurements/1",
        "machine": {**MACHINE, "gpus": list(T4S)},
        "versions": dict(VERSIONS),
        "options": {"budget": "quick", "device": "cuda", "threads": 1, "workers": [1, 2], "network": True},
        "seconds": 60.0,
        "measurements": [point("launch", call_s), *found],
    }


def _passes(gpu: DeviceProfile) -> Iterator[dict[str, Any]]:
    for rows, width in ((256, 16), (65_536, 64), (65_536, 256)):
        values = float(rows * width)
        yield point("relu", elementwise_seconds(gpu, values, RELU_PASSES), rows=rows, width=width)
        yield point("relu_backward", elementwise_seconds(gpu, values, RELU_BACKWARD_PASSES), rows=rows, width=width)
        for name in ("pack", "scatter"):
            yield point(name, rows_seconds(gpu, rows, width), rows=rows, source=2 * rows, width=width)


def _maps(gpu: DeviceProfile) -> Iterator[dict[str, Any]]:
    # Narrow ones are bound by memory, tiny ones by the host's call.
    for rows, width in ((256, 16), (500_000, 16), (32_768, 256), (32_768, 512)):
        facts = {"rows": rows, "d_in": width, "d_out": width, "bias": 1}
        once = float(gemm_seconds(gpu, rows, width, width))
        yield point("gemm", once, **facts)
        for given in (0, 1):
            yield point("gemm_backward", (1 + given) * once, **facts, input_grad=given)


def _sums(gpu: DeviceProfile) -> Iterator[dict[str, Any]]:
    for rows, columns, entries in ((1000, 1000, 10_000), (10_000, 10_000, 2_000_000), (300_000, 90_000, 3_000_000)):
        for width in (16, 64, 256):
            facts = {"entries": entries, "rows": rows, "columns": columns, "width": width, "hot": 0}
            yield point("spmm", spmm_seconds(gpu, entries, rows, width, columns), **facts)
            yield point("spmm_t", spmm_seconds(gpu, entries, columns, width, rows), **facts)


def _copies() -> Iterator[dict[str, Any]]:
    rate = COPIES["bandwidth"] * COPIES["efficiency"]
    for nbytes in (4**6, 4**9, 4**12):
        for name in ("copy_to_device", "copy_to_host"):
            seconds = COPIES["latency_s"] + nbytes / rate
            yield point(name, seconds, bytes=nbytes, pinned=1)
            yield point(name, UNPINNED * seconds, bytes=nbytes, pinned=0)


def _beside(gpu: DeviceProfile) -> Iterator[dict[str, Any]]:
    # The sum by itself takes a little longer than its law says; the map by itself was not measured.
    entries, rows = BESIDE_SUM["entries"], BESIDE_SUM["rows"]
    own = 1.02 * float(spmm_seconds(gpu, entries, rows, 128, rows))
    yield point("spmm", own, **BESIDE_SUM)
    yield point("spmm_copying", SUM_BESIDE * own, **BESIDE_SUM)
    yield point("gemm_copying", MAP_BESIDE * float(gemm_seconds(gpu, 50_000, 128, 128)), **BESIDE_MAP)


def on_gpus(folder: Path, cluster: Cluster | None = None, gpus: tuple[str, ...] = T4S) -> Path:
    """The run in `folder` as if trained on `gpus`, on the servers of `cluster`."""
    raw = json.loads((folder / "run.json").read_text())
    raw["hardware"]["gpus"] = list(gpus)
    (folder / "run.json").write_text(json.dumps(raw))
    if cluster is not None:
        write_cluster(folder / CLUSTER, cluster)
    return folder
