"""A machine whose figures are known: its calibration record, and the measurements that its laws give."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from gcnsim import __version__
from gcnsim.calibration_record.record import Calibration, Fitted, Residual, Source
from gcnsim.cost import elementwise_seconds, rows_seconds
from gcnsim.cost.core import RELU_BACKWARD_PASSES, RELU_PASSES, sum_seconds
from gcnsim.cost.maps import map_seconds
from gcnsim.hardware import Curve, DeviceProfile, Figure, device

MACHINE: Mapping[str, Any] = {"cpu": "Xeon", "cores": 2, "memory_bytes": 2**34, "gpus": []}
VERSIONS: Mapping[str, str] = {"gcnsim": __version__, "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"}

DEVICE: Mapping[str, float] = {
    "launch_s": 2e-6,
    "memory_bandwidth": 20e9,
    "flops_fp32": 60e9,
    "spmm_efficiency": 0.4,
    "gemm_efficiency": 1.0,
    "gather_efficiency": 0.3,
    "elementwise_efficiency": 1.0,
}
HOST: Mapping[str, float] = {
    "cores": 2.0,
    "sample_edges_per_s": 60e6,
    "sort_edges_per_s": 10e6,
    "build_entries_per_s": 20e6,
    "message_s": 5e-5,
    "socket_bandwidth": 1.5e9,
    "busy_core_rate": 0.7,
    "slice_s": 4e-3,
    "wake_s": 5e-5,
    "reduce_step_s": 3e-4,
    "draw_s": 2e-4,
    "loss_values_per_s": 1e8,
    "dropout_values_per_s": 2e8,
    "iteration_s": 1e-3,
    "work_spread": 0.0,
}
NETWORK: Mapping[str, float] = {"efficiency": 0.94, "latency_s": 2e-4, "queue": 262_144.0}


@dataclass(frozen=True, slots=True)
class World:
    """Measurements of a machine, and runs of one whose coefficients are known to be others."""

    measurements: Path
    seen: list[Path]
    unseen: list[Path]
    found: Calibration
    file: Path


def fitted(values: Mapping[str, float]) -> dict[str, Fitted]:
    return {name: Fitted(value, "chosen for a test") for name, value in values.items()}


def calibration(**changes: Any) -> Calibration:
    """A record of that machine, with `changes`."""
    record = Calibration(
        device="cpu-core",
        machine=dict(MACHINE),
        versions=dict(VERSIONS),
        inputs=(Source("measurements", "profile.json", "ab" * 32),),
        figures={"device": fitted(DEVICE), "host": fitted(HOST), "network": fitted(NETWORK)},
        curve=((1e4, 0.5), (1e8, 0.3)),
        graphs={"feed": 1.25},
        residuals=(Residual("spmm", 12, 0.05, 0.1, -0.01),),
        error=None,
        spread=None,
        ranges={"workers": (2.0, 6.0), "bandwidth": (2.5e7, 2.5e8)},
        seconds=61.5,
    )
    return replace(record, **changes)


def known_device(curve: Curve | None = None) -> DeviceProfile:
    """The device of that machine."""
    figures: dict[str, Any] = {
        name: Figure(value, "fitted", "chosen for a test", "2026") for name, value in DEVICE.items()
    }
    return replace(device("cpu-core"), spmm_curve=curve, **figures)


def measurements(curve: Curve | None = None) -> dict[str, Any]:
    """What micro-benchmarks of that machine would write, were its laws exact."""
    chosen = known_device(curve)
    kernels = [*_kernels(chosen), *_dropouts(), *_products(chosen), *_losses()]
    found = [*kernels, *sampling(), *_sharing(chosen), *messages()]
    return {
        "schema": "gcnsim.measurements/1",
        "machine": dict(MACHINE),
        "versions": dict(VERSIONS),
        "options": {"budget": "quick", "device": "cpu", "threads": 1, "workers": [1, 2], "network": True},
        "seconds": 60.0,
        "measurements": found,
    }


def write_measurements(path: Path, document: Mapping[str, Any] | None = None) -> Path:
    path.write_text(json.dumps(measurements() if document is None else document))
    return path


def point(kernel: str, seconds: Any, processes: int = 1, **params: float) -> dict[str, Any]:
    value = float(seconds)
    numbers = {name: float(param) for name, param in params.items()}
    return {
        "kernel": kernel,
        "params": numbers,
        "threads": 1,
        "processes": processes,
        "seconds": value,
        "low": value,
        "high": value,
        "repeats": 5,
    }


def _kernels(chosen: DeviceProfile) -> Iterator[dict[str, Any]]:
    yield point("iteration", 16 * DEVICE["launch_s"], nodes=64, entries=200)
    yield point("iteration", 1e-2, nodes=8000, entries=200_000)
    for rows, width in ((100, 16), (4096, 64), (65_536, 256)):
        yield point("relu", elementwise_seconds(chosen, float(rows * width), RELU_PASSES), rows=rows, width=width)
        back = elementwise_seconds(chosen, float(rows * width), RELU_BACKWARD_PASSES)
        yield point("relu_backward", back, rows=rows, width=width)
        for name in ("pack", "scatter"):
            yield point(name, rows_seconds(chosen, rows, width), rows=rows, source=2 * rows, width=width)
    for rows, width in ((2048, 64), (32_768, 128)):
        forward = map_seconds(chosen, rows, width, width) - DEVICE["launch_s"]
        yield point("gemm", forward, rows=rows, d_in=width, d_out=width, bias=1)
        for given in (0, 1):
            seconds = (1 + given) * forward
            yield point("gemm_backward", seconds, rows=rows, d_in=width, d_out=width, bias=1, input_grad=given)


def _dropouts() -> Iterator[dict[str, Any]]:
    for rows, width in ((65_536, 16), (65_536, 128)):
        yield point("dropout", 1e-5 + rows * width / HOST["dropout_values_per_s"], rows=rows, width=width)


def _losses() -> Iterator[dict[str, Any]]:
    for rows, classes in ((1000, 16), (20_000, 40)):
        facts = {"rows": rows, "nodes": rows, "classes": classes}
        for name, share in (("loss", 0.25), ("loss_backward", 0.3), ("correct", 0.45)):
            yield point(name, share * rows * classes / HOST["loss_values_per_s"], **facts)


def _products(chosen: DeviceProfile) -> Iterator[dict[str, Any]]:
    sizes = ((1000, 10_000), (2000, 60_000), (20_000, 200_000), (200_000, 2_000_000))
    for rows, entries in sizes:
        for width in (16, 64, 256):
            facts = {"entries": entries, "rows": rows, "columns": rows, "width": width, "hot": 0}
            seconds = sum_seconds(chosen, entries, rows, width, rows)
            yield point("spmm", seconds, **facts)
            yield point("spmm_t", seconds, **facts)


def sampling() -> Iterator[dict[str, Any]]:
    """Graphs drawn on a core."""
    for entries, kept, rows in (
        (50_000, 1500, 5_000),
        (50_000, 20_000, 5_000),
        (600_000, 60_000, 20_000),
        (600_000, 180_000, 20_000),
    ):
        facts = {"entries": entries, "kept": kept, "rows": rows}
        yield point("draw", HOST["draw_s"] + entries / HOST["sample_edges_per_s"], **facts)
        yield point("thin", (kept + rows) / HOST["build_entries_per_s"], **facts)
        for name, share in (("probabilities", 0.9), ("inclusion", 0.02), ("reweigh", 0.08)):
            yield point(name, share * entries / HOST["sort_edges_per_s"], entries=entries)


def _sharing(chosen: DeviceProfile) -> Iterator[dict[str, Any]]:
    alone = float(sum_seconds(chosen, 500_000, 40_000, 64, 40_000))
    for processes, seconds in ((1, alone), (2, alone / HOST["busy_core_rate"]), (4, 2 * alone)):
        yield point("shared_spmm", seconds, processes, entries=500_000, width=64)


def messages() -> Iterator[dict[str, Any]]:
    """Messages between two processes, and what an iteration costs besides."""
    for nbytes in (4, 65_536, 1_048_576):
        work = 2 * HOST["message_s"] + nbytes / HOST["socket_bandwidth"]
        yield point("p2p_oneway_cpu_sender", work, 2, bytes=nbytes)
        yield point("p2p_oneway_cpu_receiver", work, 2, bytes=nbytes)
        there = NETWORK["latency_s"] + 2 * HOST["message_s"]
        yield point("p2p_oneway", 2 * there + nbytes / 1e9, 2, bytes=nbytes)
    for processes in (2, 4, 6):
        yield point("all_reduce_cpu", 2 * (processes - 1) * HOST["reduce_step_s"], processes, bytes=1_024)
    for name in ("optimizer_step", "gradients"):
        yield point(name, HOST["iteration_s"] / 2, parameters=1_000, tensors=4)
