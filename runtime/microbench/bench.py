"""Timing one kernel: warm up, repeat until there is enough, with the garbage collector off."""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Final

import numpy as np
import torch

from runtime.microbench.measurements import Measurement
from runtime.microbench.request import MicrobenchRequest, TimeBudget

SEED: Final = 0
"""Of all inputs, which are the same in every run."""

APART: Final = 32 << 20
"""Bytes touched between two uses of the same rows where they shall not be in the cache of one core: as in training,
whose other work lies between."""

APART_ON_GPU: Final = 512 << 20
"""The same on a GPU: twice the largest last cache in the catalogue."""

_LEAST_S: Final = 20e-6
"""A sample shorter than this is of several calls: reading the clock costs a thousandth of it."""

_LEAST_CUDA_S: Final = 1e-3
_AWAKE: Final = 2_048

Call = Callable[[int], object]
"""A kernel; the argument counts the calls, to take buffers in turn by."""


@dataclass(frozen=True)
class Bench:
    """Where kernels are timed, and to whom it is told."""

    request: MicrobenchRequest
    device: torch.device
    tell: Callable[[Measurement], None]

    @property
    def budget(self) -> TimeBudget:
        """How thoroughly."""
        return self.request.budget

    def time(self, kernel: str, params: Mapping[str, float], call: Call) -> None:
        """Measure `call` alone on this machine and tell of it."""
        sampled = _cuda_samples if self.on_gpu else samples
        seconds = sampled(call, self.budget)
        # An iteration takes as long as all its kernels together, so what one takes on average counts, slow ones too.
        self.found(kernel, params, seconds, mean=fmean(seconds))

    def found(
        self,
        kernel: str,
        params: Mapping[str, float],
        seconds: Sequence[float],
        processes: int = 1,
        mean: float | None = None,
    ) -> None:
        """Tell of samples taken elsewhere. mean: what counts instead of their median."""
        low, middle, high = (float(value) for value in np.quantile(seconds, (0.1, 0.5, 0.9)))
        value = middle if mean is None else mean
        plain = {name: float(number) for name, number in params.items()}
        self.tell(Measurement(kernel, plain, self.request.threads, processes, value, low, high, len(seconds)))

    @property
    def on_gpu(self) -> bool:
        """Whether kernels run on a GPU, which takes larger ones."""
        return self.device.type == "cuda"

    def sets(self, nbytes: float) -> int:
        """How many buffers of `nbytes` to take in turn, so that APART bytes (APART_ON_GPU) lie between two uses."""
        return max(1, min(math.ceil(self._apart / max(nbytes, 1)), 512))

    @property
    def _apart(self) -> int:
        if self.budget.level == "tiny":
            return 1 << 16
        return APART_ON_GPU if self.on_gpu else APART

    def wake(self) -> None:
        """Keep a GPU busy for a while: one that had nothing to do runs at a low clock."""
        if not self.on_gpu:
            return
        engine: Any = torch.autograd.backward
        square = torch.ones(_AWAKE, _AWAKE, device=self.device, requires_grad=True)
        # torch warns where the first kernel of its thread of backward passes is a dense product.
        engine((square * square).sum())
        start = time.perf_counter()
        with torch.no_grad():
            while time.perf_counter() - start < self.budget.window_s:
                torch.mm(square, square)
                torch.cuda.synchronize(self.device)


@contextmanager
def no_collector() -> Iterator[None]:
    """A block in which no cycles of garbage are looked for."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def samples(call: Call, budget: TimeBudget) -> list[float]:
    """Seconds per call, at least `budget.samples` of them."""
    count = 0

    def several(calls: int) -> float:
        nonlocal count
        start = time.perf_counter()
        for i in range(count, count + calls):
            call(i)
        seconds = time.perf_counter() - start
        count += calls
        return seconds

    with no_collector():
        several(1)
        once = several(1)
        batch = max(1, math.ceil(_LEAST_S / max(once, 1e-9)))
        several(batch)
        return _enough(lambda: several(batch) / batch, budget, batch)


def _cuda_samples(call: Call, budget: TimeBudget) -> list[float]:
    """Seconds per call on the GPU's own clock, calls one after the other without waiting for any.

    A kernel that ends before the host has started the next one takes as long as that start.
    """
    cuda: Any = torch.cuda
    count = 0

    def several(calls: int) -> float:
        nonlocal count
        start, end = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True)
        start.record()
        for i in range(count, count + calls):
            call(i)
        end.record()
        end.synchronize()
        count += calls
        return 1e-3 * float(start.elapsed_time(end))

    with no_collector():
        several(3)
        once = several(3) / 3
        batch = max(1, math.ceil(_LEAST_CUDA_S / max(once, 1e-9)))
        return _enough(lambda: several(batch) / batch, budget, batch)


def _enough(sample: Callable[[], float], budget: TimeBudget, batch: int) -> list[float]:
    found: list[float] = []
    spent = 0.0
    while len(found) < budget.samples or spent < budget.sample_s:
        found.append(sample())
        spent += found[-1] * batch
    return found
