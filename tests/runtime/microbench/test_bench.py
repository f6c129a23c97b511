"""How a kernel is timed."""

from __future__ import annotations

import gc
import time

import pytest
import torch

from gcnsim.hardware import device, devices
from runtime.microbench import FULL, QUICK, TINY, Measurement, MicrobenchRequest, TimeBudget, sums
from runtime.microbench.bench import APART, APART_ON_GPU, Bench, no_collector, samples
from runtime.microbench.sums import MOST_WORK_ON_GPU


def bench(measurements: list[Measurement]) -> Bench:
    return Bench(MicrobenchRequest(TINY), torch.device("cpu"), measurements.append)


def test_samples_are_as_many_and_as_long_as_asked() -> None:
    found = samples(lambda _: time.sleep(0.002), TimeBudget("tiny", 0.03, 5, 0.0))
    assert sum(found) >= 0.03
    assert all(0.002 <= item < 0.1 for item in found)
    assert len(samples(lambda _: time.sleep(0.002), TimeBudget("tiny", 0.0, 5, 0.0))) == 5


def test_a_short_kernel_is_timed_over_several_calls() -> None:
    calls: list[int] = []
    found = samples(calls.append, TimeBudget("tiny", 0.0, 5, 0.0))
    assert len(calls) > 10 * len(found)
    assert calls == list(range(len(calls)))
    assert all(0 < item < 1e-4 for item in found)


def test_rows_apart_come_back_after_so_many_bytes() -> None:
    mine = Bench(MicrobenchRequest(), torch.device("cpu"), lambda _: None)
    assert APART <= mine.sets(1 << 19) * (1 << 19) < 2 * APART
    assert bench([]).sets(1 << 16) == 1, "tests measure the least"


def test_the_collector_is_off_while_timing_and_on_again_after() -> None:
    seen: list[bool] = []
    samples(lambda _: seen.append(gc.isenabled()), TINY)
    assert not any(seen)
    assert gc.isenabled()
    with no_collector():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_what_is_told_is_the_median_or_the_mean_given() -> None:
    measurements: list[Measurement] = []
    bench(measurements).found("relu", {"rows": 2}, [1.0, 2.0, 9.0], processes=3)
    bench(measurements).found("relu", {"rows": 2}, [1.0, 2.0, 9.0], mean=4.0)
    assert (measurements[0].seconds, measurements[0].repeats, measurements[0].processes) == (2.0, 3, 3)
    assert measurements[1].seconds == 4.0
    assert (measurements[0].low, measurements[0].high) == pytest.approx((1.2, 7.6))


def test_buffers_are_taken_in_turn_while_they_fit_a_cache() -> None:
    measurements: list[Measurement] = []
    assert bench(measurements).sets(1 << 15) == 2
    assert bench(measurements).sets(1 << 30) == 1
    assert Bench(MicrobenchRequest(), torch.device("cpu"), measurements.append).sets(1 << 20) == 32


@pytest.mark.parametrize("budget", [QUICK, FULL])
def test_on_a_gpu_rows_lie_further_apart_and_products_outgrow_its_cache(budget: TimeBudget) -> None:
    mine = Bench(MicrobenchRequest(budget, "cuda"), torch.device("cuda"), lambda _: None)
    assert mine.sets(1 << 20) * (1 << 20) == APART_ON_GPU
    caches = {name: gpu.l2_cache.value for name in devices() if (gpu := device(name)).l2_cache is not None}
    assert 2 * max(caches.values()) <= APART_ON_GPU
    gathered = [4.0 * 128 * shape.columns for shape in sums._on_gpu(mine) if shape.entries * 128 <= MOST_WORK_ON_GPU]
    assert min(gathered) < caches["t4"] * 1.5, "held by the cache of any GPU"
    assert max(gathered) > 3 * caches["h200"]
