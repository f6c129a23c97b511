"""Ranks for tests: processes that are started once and train many small runs, since importing torch takes seconds.

A job is a function of tests.runtime.jobs; every rank of a run calls it with its place and the same arguments. A rank
that raises fails the test with its traceback.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from runtime.launch import Place

PATIENCE_S = 120.0
LEAVING_S = 5.0


class Crew:
    """Up to `size` ranks."""

    def __init__(self, size: int) -> None:
        """Start them; they import torch side by side."""
        context = multiprocessing.get_context("spawn")
        self._ends: list[Connection] = []
        self._processes = []
        for _ in range(size):
            ours, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            process.start()
            theirs.close()
            self._ends.append(ours)
            self._processes.append(process)

    def run(self, world: int, job: Callable[..., Any], *args: Any) -> list[Any]:
        """What `job(place, *args)` returned on each rank."""
        name = f"{job.__module__}:{job.__name__}"
        with tempfile.TemporaryDirectory() as folder:
            meeting = str(Path(folder, "meeting"))
            for rank, end in enumerate(self._ends[:world]):
                end.send((name, Place(rank, world, rank, world, True), meeting, args))
            found: dict[int, tuple[bool, Any]] = {}
            while len(found) < world:
                waiting = [end for rank, end in enumerate(self._ends[:world]) if rank not in found]
                ready = wait(waiting, timeout=PATIENCE_S)
                assert ready, f"ranks {sorted(set(range(world)) - set(found))} of {name} are silent"
                for rank, end in enumerate(self._ends[:world]):
                    if end in ready:
                        found[rank] = end.recv()
        failed = [f"rank {rank}:\n{found[rank][1]}" for rank in range(world) if not found[rank][0]]
        assert not failed, "\n".join(failed)
        return [found[rank][1] for rank in range(world)]

    def close(self) -> None:
        """End the processes."""
        for process in self._processes:
            process.kill()
            process.join()


def _serve(end: Connection) -> None:
    import torch

    warnings.simplefilter("error")
    torch.set_num_threads(1)
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    while True:
        try:
            name, place, meeting, args = end.recv()
        except EOFError:
            return
        os.environ["GCNSIM_RENDEZVOUS"] = meeting
        module, function = name.split(":")
        try:
            answer: tuple[bool, Any] = (True, getattr(importlib.import_module(module), function)(place, *args))
        except Exception:
            answer = (False, traceback.format_exc())
        _mark(Path(meeting), place.rank).touch()
        end.send(answer)
        _wait_for_others(Path(meeting), place)
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        # A meeting that failed has been counted too, and the count names the next one.
        torch.distributed.distributed_c10d._world.group_count = 0


def _mark(meeting: Path, rank: int) -> Path:
    """The file that says a rank has ended."""
    return meeting.with_name(f"ended-{rank}")


def _wait_for_others(meeting: Path, place: Place) -> None:
    """Let the other ranks end too: one that leaves at once breaks the connections they are still making."""
    marks = [_mark(meeting, rank) for rank in range(place.world)]
    end = time.monotonic() + LEAVING_S
    while meeting.parent.is_dir() and not all(mark.exists() for mark in marks) and time.monotonic() < end:
        time.sleep(0.005)
