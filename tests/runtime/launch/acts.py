"""A program that launches itself: `acts.py ACT FOLDER [WORKERS]` is the parent, and in its workers plays ACT.

Workers leave their process numbers in FOLDER, and what they have come to.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

from gcnsim.core.errors import ScenarioError
from runtime.launch import Place, Watch, connect, launch, run_worker

FOLDER = Path(sys.argv[2])
GRACE_S, LEAVE_S = 1.5, float(os.environ.get("LEAVE_S", "2"))


def note(name: str, text: object = "") -> None:
    part = FOLDER / f".{name}"
    part.write_text(str(text), encoding="utf-8")
    part.rename(FOLDER / name)


def work(watch: Watch, limit_s: float = 60.0) -> None:
    """Iterations until somebody asks to stop."""
    end = time.monotonic() + limit_s
    while not watch.stop and time.monotonic() < end:
        time.sleep(0.01)


def await_one(states: str) -> None:
    """Return when worker 1 is in one of `states` as /proc writes them, or gone."""
    while not (FOLDER / "pid-1").exists():
        time.sleep(0.001)
    status = Path("/proc", (FOLDER / "pid-1").read_text(encoding="utf-8"), "stat")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        while status.read_text(encoding="utf-8").rpartition(")")[2].split()[0] not in states:
            time.sleep(0.001)


def fine(where: Place, watch: Watch) -> int:
    sys.stdout.write(f"hello from {where.rank}\n")
    note(f"place-{where.rank}", [where, os.environ.get("OMP_NUM_THREADS"), sys.stdin.read()])
    return 0


def wait(where: Place, watch: Watch) -> int:
    work(watch)
    note(f"stopped-{where.rank}", watch.stop)
    return 0


def raises(where: Place, watch: Watch) -> int:
    if where.rank == 1:
        while len(list(FOLDER.glob("pid-*"))) < where.world:
            time.sleep(0.01)
        raise ValueError("no luck\nframe #0")
    return wait(where, watch)


def refuse(where: Place, watch: Watch) -> int:
    raise ScenarioError("--lr: 'x' is not a number")


def killed(where: Place, watch: Watch) -> int:
    """Worker 1 is killed, and the others see their connections close before the parent has looked."""
    if where.rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    await_one("ZX")
    raise RuntimeError("[pair.cc:534] Connection closed by peer [127.0.0.1]:4711")


def stopped(where: Place, watch: Watch) -> int:
    """Worker 1 stands still, and worker 0 waits in vain for it."""
    if where.rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    await_one("T")
    raise RuntimeError("Timed out waiting 60000ms for recv operation to complete")


def stubborn(where: Place, watch: Watch) -> int:
    if where.rank == 1:
        time.sleep(60.0)
    return wait(where, watch)


def silent(where: Place, watch: Watch) -> int:
    if where.rank == 1:
        os._exit(3)
    return wait(where, watch)


def leaves(where: Place, watch: Watch) -> int:
    if where.rank == 1:
        sys.exit(0)
    return 0


def lingers(where: Place, watch: Watch) -> int:
    threading.Thread(target=time.sleep, args=(60.0,)).start()
    return 0


def family(where: Place, watch: Watch) -> int:
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    note(f"child-{where.rank}", child.pid)
    return wait(where, watch)


def unready(where: Place, watch: Watch) -> int:
    """Preparations, in which nothing looks at the request: `ready` was not called."""
    time.sleep(60.0)
    return 0


def bereft(where: Place, watch: Watch) -> int:
    """Worker 1 dies, or stands still, before a collective that worker 0 waits in."""
    connect(where, 2.0, "gloo")
    import torch
    import torch.distributed as dist

    dist.all_reduce(torch.ones(1))
    if where.rank == 1:
        os.kill(os.getpid(), signal.Signals[os.environ["FATE"]])
    dist.all_reduce(torch.ones(1))
    return 0


def lonely(where: Place, watch: Watch) -> int:
    """Worker 0 waits for worker 1 to join, deep inside torch."""
    if where.rank == 0:
        import torch

        note("waits", torch.__version__)
        connect(where, 60.0, "gloo")
    time.sleep(60.0)
    return 0


def again(where: Place, watch: Watch) -> int:
    """Refused at the first start, fine at the second."""
    count = os.environ["TORCHELASTIC_RESTART_COUNT"]
    if count == "0":
        note(f"error-file-{where.rank}", os.environ["TORCHELASTIC_ERROR_FILE"])
        raise ScenarioError(f"--lr: worker {where.rank} does not like it")
    note(f"count-{where.rank}", count)
    return 0


ACTS: dict[str, Callable[[Place, Watch], int]] = {
    "fine": fine,
    "wait": wait,
    "raises": raises,
    "refuse": refuse,
    "killed": killed,
    "stopped": stopped,
    "stubborn": stubborn,
    "silent": silent,
    "leaves": leaves,
    "lingers": lingers,
    "family": family,
    "unready": unready,
    "bereft": bereft,
    "lonely": lonely,
    "again": again,
}


def play(where: Place) -> int:
    with Watch(where, patience_s=1.0) as watch:
        if sys.argv[1] not in ("unready", "lonely"):
            watch.ready()
        note(f"pid-{where.rank}", os.getpid())
        return ACTS[sys.argv[1]](where, watch)


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which a test run in the background has ignored
    if "RANK" in os.environ:
        run_worker(play)
    sys.exit(
        launch(
            sys.argv[1:],
            int(sys.argv[3]) if len(sys.argv) > 3 else 2,
            extra_env={"OMP_NUM_THREADS": "1"},
            command=[sys.executable, __file__],
            grace_s=GRACE_S,
            leave_s=LEAVE_S,
        )
    )
