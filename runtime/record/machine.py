"""What a run ran on: this machine, the versions, and the memory this process took at most."""

from __future__ import annotations

import platform
import resource
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

from gcnsim.resources import usable_resources

_CPU_INFO = Path("/proc/cpuinfo")


def versions() -> dict[str, str]:
    """Versions of gcnsim, python, torch and numpy."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("gcnsim", "numpy", "torch")}


def hardware(cuda: bool = False) -> dict[str, Any]:
    """This machine: cpu (model), what this process may use of it (cores, quota of CPU time in CPUs or None,
    memory_bytes), and gpus (names; with `cuda` only)."""
    found = usable_resources()
    return {
        "cpu": _cpu(),
        "cores": found.cores,
        "quota": found.quota,
        "memory_bytes": found.memory_bytes or 0,
        "gpus": _gpus() if cuda else [],
    }


def peak_memory(cuda: bool = False) -> dict[str, int | None]:
    """Most bytes this process held so far: host_bytes resident, device_bytes in tensors on its GPU (None without)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    # Kernels report it in KiB; macOS in bytes.
    host = peak if sys.platform == "darwin" else 1024 * peak
    return {"host_bytes": host, "device_bytes": _device_bytes() if cuda else None}


def _cpu() -> str:
    try:
        lines = _CPU_INFO.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, "") or platform.processor() or platform.machine() or "unknown"


def _gpus() -> list[str]:
    import torch

    return [torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count())]


def _device_bytes() -> int:
    import torch

    return int(torch.cuda.max_memory_allocated())
