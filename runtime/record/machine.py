"""The environment of a run: the machine, the versions, and the peak memory of this process."""

from __future__ import annotations

import platform
import resource
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, NotRequired, TypeAlias, TypedDict

from gcnsim.core.resources import usable_resources
from gcnsim.core.shapes import Count, OneOrMore, Positive, Within

_CPU_INFO = Path("/proc/cpuinfo")

Versions: TypeAlias = Annotated[Mapping[str, str], Within(required=("gcnsim", "python", "torch", "numpy"))]


class MachineFacts(TypedDict):
    """A machine that something was measured on."""

    cpu: str
    """Its model."""
    cores: OneOrMore
    """That the process may use."""
    quota: NotRequired[Positive | None]
    """CPUs' worth of time that its containers grant it; null without a limit. Older files lack it."""
    memory_bytes: Count
    gpus: list[str]
    """Names; empty unless measured on cuda."""


class PeakMemory(TypedDict):
    """The most that a worker's process held."""

    host_bytes: Count
    """Resident."""
    device_bytes: Count | None
    """In tensors on its GPU; null without one."""


def versions() -> dict[str, str]:
    """Versions of gcnsim, python, torch and numpy."""
    return {"python": platform.python_version()} | {name: version(name) for name in ("gcnsim", "numpy", "torch")}


def hardware(cuda: bool = False) -> MachineFacts:
    """This machine; its GPUs with `cuda` only."""
    resources = usable_resources()
    return {
        "cpu": _cpu(),
        "cores": resources.cores,
        "quota": resources.quota,
        "memory_bytes": resources.memory_bytes or 0,
        "gpus": _gpus() if cuda else [],
    }


def peak_memory(cuda: bool = False) -> PeakMemory:
    """The most bytes of this process so far."""
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
