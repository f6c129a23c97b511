"""One worker's process, from its rank to its exit code: no error is lost, and nothing keeps it from ending.

It joins and leaves the process group here, which imports torch.

The process keeps the memory of freed tensors, so that the next iteration writes into it again. By default glibc returns
blocks of many megabytes to the system when they are freed, and takes new ones an instant later. The system zeroes each
page of these when it is first written, thousands of times in an iteration.

Required libraries are checked before anything is started: the extra `runtime` may not be installed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Mapping
from datetime import timedelta
from importlib.util import find_spec
from typing import Any, Final, NoReturn

from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.resources import ALLOCATION
from runtime.launch.launchers import RENDEZVOUS, Place, place
from runtime.launch.verdict import report_failure

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


_PARTING_S: Final = 5.0
"""The most seconds for leaving the process group."""


def run_worker(main: Callable[[Place], int]) -> NoReturn:
    """Run `main` as this worker and end the process with its code; 2 after a user error, 1 after any other.

    The process ends even if threads or libraries hang: after a success it waits only for the process group, for 5 s. So
    `atexit` functions are not run. With GCNSIM_DEBUG=1 an internal error prints its traceback.
    """
    code = _outcome(main)
    if code == 0:
        parting = threading.Thread(target=_part, name="parting", daemon=True)
        parting.start()
        parting.join(_PARTING_S)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            stream.flush()
    os._exit(code)


def _outcome(main: Callable[[Place], int]) -> int:
    try:
        where = place()
        assert where is not None, "a worker has a place"
        return main(where)
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        report_failure(RuntimeError(error.code))
        return 1
    except KeyboardInterrupt:
        return 130
    except GcnsimError as error:
        report_failure(error)
        return 2
    except BaseException as error:
        if os.environ.get("GCNSIM_DEBUG") == "1":
            traceback.print_exc()
        report_failure(error)
        return 1


def _part() -> None:
    """Leave after all peers have finished: a failure now affects no one else."""
    with contextlib.suppress(Exception):
        disconnect()


_TRIM_THRESHOLD, _TOP_PAD, _MMAP_MAX = -1, -2, -4
_NEVER: Final = -1
_PIECE: Final = 1 << 26
"""Bytes by which the heap grows."""


def disable_malloc_trim(environment: Mapping[str, str] = os.environ) -> bool:
    """Make this process keep freed memory and take large blocks from its heap (glibc's mallopt(3)).

    Call it after all imports, so that memory freed before has gone back to the system. Returns False, and changes
    nothing, if a variable of ALLOCATION is set or there is no glibc.
    """
    if any(name in environment for name in ALLOCATION):
        return False
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        return False
    return all(mallopt(*item) for item in ((_MMAP_MAX, 0), (_TRIM_THRESHOLD, _NEVER), (_TOP_PAD, _PIECE)))


_NEEDED: Final = ("torch", "safetensors")


def check_libraries() -> None:
    """Raise ScenarioError if torch or safetensors is not installed. Neither is imported."""
    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise ScenarioError(f"training needs {' and '.join(missing)}; pip install 'gcnsim[runtime]'")
