"""A machine whose figures are known: its calibration records, and the measurements that they give."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gcnsim import __version__
from gcnsim.records.calibration import Calibration, Fitted, Residual, Source

MACHINE: Mapping[str, Any] = {"cpu": "Xeon", "cores": 2, "memory_bytes": 2**34, "gpus": []}
VERSIONS: Mapping[str, str] = {"gcnsim": __version__, "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"}

DEVICE: Mapping[str, float] = {
    "memory_bandwidth": 20e9,
    "flops_fp32": 60e9,
    "spmm_efficiency": 0.4,
    "gemm_efficiency": 1.0,
    "gather_efficiency": 0.3,
    "elementwise_efficiency": 1.0,
}
HOST: Mapping[str, float] = {
    "cores": 2.0,
    "message_s": 5e-5,
    "socket_bandwidth": 1.5e9,
    "busy_core_rate": 0.7,
    "slice_s": 4e-3,
    "wake_s": 5e-5,
    "reduce_step_s": 3e-4,
}
DRAW_S = 2e-4
"""Of drawing a graph, however small."""

DRAWING: Mapping[str, float] = {"sample_edges_per_s": 60e6, "sort_edges_per_s": 10e6, "build_entries_per_s": 20e6}
NETWORK: Mapping[str, float] = {"efficiency": 0.94, "latency_s": 2e-4, "queue": 262_144.0}


@dataclass(frozen=True, slots=True)
class World:
    """Measurements of a machine, and runs of one whose coefficients are known to be others. files: of compute times."""

    measurements: Path
    seen: list[Path]
    unseen: list[Path]
    found: Calibration
    file: Path
    files: list[Path] = field(default_factory=list)


def fitted(values: Mapping[str, float]) -> dict[str, Fitted]:
    return {name: Fitted(value, "chosen for a test") for name, value in values.items()}


def calibration(**changes: Any) -> Calibration:
    """A record of that machine's links and cores, with `changes`."""
    record = Calibration(
        device="cpu-core",
        machine=dict(MACHINE),
        versions=dict(VERSIONS),
        inputs=(Source("measurements", "links.json", "ab" * 32),),
        figures={"device": {}, "host": fitted(HOST), "network": fitted(NETWORK)},
        curve=(),
        graphs={},
        residuals=(Residual("sockets", 12, 0.05, 0.1, -0.01),),
        error=None,
        spread=None,
        beside_busy=None,
        ranges={"workers": (2.0, 6.0), "bandwidth": (2.5e7, 2.5e8)},
        seconds=61.5,
    )
    return replace(record, **changes)


def of_gpu(**changes: Any) -> Calibration:
    """A record of a GPU of that machine, with `changes`."""
    figures = {"device": fitted(DEVICE), "host": fitted({**HOST, "call_s": 3e-5}), "network": fitted(NETWORK)}
    known: dict[str, Any] = {"figures": figures, "curve": ((1e4, 0.5), (1e8, 0.3)), "graphs": {"feed": 1.25}}
    return calibration(device="t4", **known | changes)


def measurements() -> dict[str, Any]:
    """What `runtime.measure --links` would write on that machine."""
    options = {"budget": "full", "device": "cpu", "threads": 1, "workers": [1, 2], "network": True, "kernels": False}
    return {
        "schema": "gcnsim.measurements/1",
        "machine": dict(MACHINE),
        "versions": dict(VERSIONS),
        "options": options,
        "seconds": 60.0,
        "measurements": [*_sharing(), *messages()],
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


def sampling() -> Iterator[dict[str, Any]]:
    """Graphs drawn on a core."""
    for entries, kept, rows in (
        (50_000, 1500, 5_000),
        (50_000, 20_000, 5_000),
        (600_000, 60_000, 20_000),
        (600_000, 180_000, 20_000),
    ):
        facts = {"entries": entries, "kept": kept, "rows": rows}
        yield point("draw", DRAW_S + entries / DRAWING["sample_edges_per_s"], **facts)
        yield point("thin", (kept + rows) / DRAWING["build_entries_per_s"], **facts)
        for name, share in (("probabilities", 0.9), ("inclusion", 0.02), ("reweigh", 0.08)):
            yield point(name, share * entries / DRAWING["sort_edges_per_s"], entries=entries)


def _sharing() -> Iterator[dict[str, Any]]:
    alone = 0.02
    for processes, seconds in ((1, alone), (2, alone / HOST["busy_core_rate"]), (4, 2 * alone)):
        yield point("shared_spmm", seconds, processes, entries=500_000, width=64)


def messages() -> Iterator[dict[str, Any]]:
    """Messages between two processes."""
    for nbytes in (4, 65_536, 1_048_576):
        work = 2 * HOST["message_s"] + nbytes / HOST["socket_bandwidth"]
        yield point("p2p_oneway_cpu_sender", work, 2, bytes=nbytes)
        yield point("p2p_oneway_cpu_receiver", work, 2, bytes=nbytes)
        there = NETWORK["latency_s"] + 2 * HOST["message_s"]
        yield point("p2p_oneway", 2 * there + nbytes / 1e9, 2, bytes=nbytes)
    for processes in (2, 4, 6):
        yield point("all_reduce_cpu", 2 * (processes - 1) * HOST["reduce_step_s"], processes, bytes=1_024)
