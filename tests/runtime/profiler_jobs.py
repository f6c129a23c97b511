"""What ranks of a test do beneath the PyTorch profiler: training by the runtime, and by code that is not ours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from torch import distributed, nn
from torch.profiler import ProfilerActivity, profile, record_function, schedule

from runtime.launch import Place, connect
from runtime.options import Options
from runtime.train.reduce import LocalSums
from tests.runtime.jobs import ready_at

ACTIVE = 4
"""Iterations that are recorded, after one that is not."""


def _recorded(place: Place, folder: str, step: Callable[[int], None]) -> None:
    path = Path(folder, f"rank{place.rank}.json")
    requested = schedule(wait=0, warmup=1, active=ACTIVE, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=requested) as profiler:
        for t in range(ACTIVE + 1):
            step(t)
            profiler.step()
    profiler.export_chrome_trace(str(path))


def runtime_profiled(place: Place, options: Options, folder: str) -> None:
    """The runtime's own iterations."""
    ready = ready_at(place, replace(options, iterations=ACTIVE + 1))
    _recorded(place, folder, lambda t: ready.trainer.iteration(t, LocalSums()) and None)
    ready.method.drain()
    ready.method.close()


def plain_profiled(place: Place, options: Options, folder: str) -> None:
    """A layer between messages, written with torch alone."""
    connect(place, options.timeout, "gloo")
    torch.manual_seed(place.rank)
    nodes, peer = 400, 1 - place.rank
    adjacency = torch.rand(nodes, nodes)
    layer = nn.Linear(16, 16)
    optimizer = torch.optim.Adam(layer.parameters())
    rows = torch.randn(nodes, 16)

    def step(_: int) -> None:
        with record_function("sampling"):
            chosen = torch.randperm(nodes)[:100]
        received = torch.empty(100, 16)
        transfers = [distributed.isend(rows[chosen].contiguous(), peer), distributed.irecv(received, peer)]
        for transfer in transfers:
            assert transfer is not None
            transfer.wait()
        loss = layer((adjacency @ rows).index_add(0, chosen, received)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        for weight in layer.parameters():
            distributed.all_reduce(weight.grad)
        optimizer.step()

    _recorded(place, folder, step)
