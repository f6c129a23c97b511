"""Joining and leaving the process group: the only place here that knows torch."""

from __future__ import annotations

import os
import sys
from datetime import timedelta

from runtime.launch.place import RENDEZVOUS, Place


def connect(place: Place, timeout_s: float, backend: str) -> None:
    """Join the process group of all workers; returns when all have. `backend` as torch names it, gloo or nccl.

    Workers of our own launcher meet through its file and talk over loopback, all others as MASTER_ADDR and MASTER_PORT
    say. A collective or a peer that takes longer than `timeout_s` is an error, as is a worker that never comes.
    """
    import torch.distributed as dist

    if place.launched and sys.platform.startswith("linux"):
        # Otherwise gloo looks the host's own name up, which fails or is slow on many machines.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    dist.init_process_group(
        backend,
        init_method=f"file://{os.environ[RENDEZVOUS]}" if place.launched else "env://",
        rank=place.rank,
        world_size=place.world,
        timeout=timedelta(seconds=timeout_s),
    )


def disconnect() -> None:
    """Leave the process group, if one was joined."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
