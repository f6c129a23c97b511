"""Join and leave the process group; the only module of this package that imports torch."""

from __future__ import annotations

import os
import sys
import time
import uuid
from datetime import timedelta
from typing import Any

from gcnsim.core.errors import ScenarioError
from runtime.launch.place import RENDEZVOUS, Place

_POLL_S = 0.02


def connect(place: Place, timeout_s: float, backend: str) -> None:
    """Join the process group of all workers; returns when all have. `backend` in torch's notation, gloo or nccl.

    Workers of the built-in launcher meet through its file and communicate over loopback; all others use MASTER_ADDR and
    MASTER_PORT. A collective or a peer that takes longer than `timeout_s` is an error, and so is a missing worker.
    """
    try:
        _join(place, timeout_s, backend)
    except RuntimeError as error:
        reason = None if place.launched else _unmet(error, timeout_s)
        if reason is None:
            raise
        raise ScenarioError(reason) from error


def _unmet(error: RuntimeError, timeout_s: float) -> str | None:
    """Why workers could not meet, in one line, if torch's error is about that."""
    host, port = os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"]
    if type(error).__name__ not in ("DistNetworkError", "DistStoreError"):
        return None
    if "EADDRINUSE" in str(error):
        return f"MASTER_PORT: port {port} of {host} is in use by another process; allowed: one that is free"
    if "connect" in str(error) or "resolve" in str(error):
        return f"MASTER_ADDR: no process could be reached at {host}, port {port}, within {timeout_s:g} s"
    return None


def _join(place: Place, timeout_s: float, backend: str) -> None:
    import torch.distributed as dist

    if place.launched and sys.platform.startswith("linux"):
        # Otherwise gloo resolves the host's name, which fails or is slow on many machines.
        os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    patience = timedelta(seconds=timeout_s)
    where: dict[str, Any] = {"init_method": f"file://{os.environ[RENDEZVOUS]}" if place.launched else "env://"}
    if not place.launched and os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True":
        host, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
        store = dist.TCPStore(host, port, None, False, patience, wait_for_workers=False)  # type: ignore[attr-defined]
        where = {"store": dist.PrefixStore(_round(store, place, timeout_s), store)}  # type: ignore[attr-defined]
    dist.init_process_group(backend, rank=place.rank, world_size=place.world, timeout=patience, **where)


def _round(store: Any, place: Place, timeout_s: float) -> str:
    """A unique name for this start of the workers, the same on all of them.

    torchrun's store outlives the workers, and with it the addresses of workers replaced by a restart. So worker 0
    chooses a name, and each other worker takes the name that responds; names of earlier starts do not. (The number of
    restarts is unsuitable: servers count separately.)
    """
    mine = uuid.uuid4().hex
    if place.rank == 0:
        store.set("gcnsim/name", mine)
        for rank in range(1, place.world):
            caller = store.get(f"gcnsim/{mine}/{rank}").decode()
            store.set(f"gcnsim/{mine}/{caller}", "yes")
        return mine
    end = time.monotonic() + timeout_s
    while time.monotonic() < end:
        name = store.get("gcnsim/name").decode()
        store.set(f"gcnsim/{name}/{place.rank}", mine)
        if store.check([f"gcnsim/{name}/{mine}"]):
            return str(name)
        time.sleep(_POLL_S)
    raise TimeoutError(f"worker 0 did not answer within {timeout_s:g} s")


def quiet_sockets() -> None:
    """Keep torch's sockets from printing forty lines about a silent peer; the error reports it in one.

    Call it before torch is imported; with GCNSIM_DEBUG=1 they print.
    """
    if os.environ.get("GCNSIM_DEBUG") != "1":
        os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "FATAL")


def disconnect() -> None:
    """Leave the process group, if one was joined."""
    dist = sys.modules.get("torch.distributed")
    if dist is not None and dist.is_available() and dist.is_initialized():
        dist.destroy_process_group()
