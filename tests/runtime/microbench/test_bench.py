"""How a kernel is timed."""

from __future__ import annotations

import gc
import time

import pytest
import torch

from gcnsim.calibration.fitting import FAR_OFF, NEAR_BY
from runtime.microbench import TINY, Measurement, MicrobenchRequest, TimeBudget
from runtime.microbench.bench import APART, FAR, NEAR, Bench, cold_samples, no_collector, samples


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


def test_a_cold_kernel_is_timed_alone_after_other_memory_is_touched() -> None:
    measurements: list[Measurement] = []
    calls: list[int] = []
    mine = Bench(MicrobenchRequest(TimeBudget("tiny", 0.0, 5, 0.0)), torch.device("cpu"), measurements.append)

    def slow(i: int) -> None:
        calls.append(i)
        time.sleep(0.002)

    mine.time_cold("load_rows", {"rows": 2}, slow)
    (measurement,) = measurements
    params = {"rows": 2.0, "apart": float(1 << 16)}
    assert (measurement.kernel, measurement.params, measurement.processes, measurement.repeats) == (
        "load_rows",
        params,
        1,
        5,
    )
    assert 0.002 <= measurement.low <= measurement.seconds <= measurement.high < 0.1
    assert calls == [0, *range(5)], "one call goes before, which is not counted"


def test_a_cold_kernel_is_timed_near_and_far() -> None:
    measurements: list[Measurement] = []
    mine = Bench(MicrobenchRequest(TimeBudget("quick", 0.0, 2, 0.0)), torch.device("cpu"), measurements.append)
    mine.time_cold("draw", {"kept": 3}, lambda _: None)
    assert [measurement.params for measurement in measurements] == [
        {"kept": 3.0, "apart": float(apart)} for apart in (NEAR, FAR)
    ]


@pytest.mark.parametrize(
    ("nbytes", "distances"),
    [
        (1 << 14, [NEAR]),
        (1 << 18, [NEAR, APART]),
        (1 << 19, [NEAR, APART, FAR]),
        (NEAR, [NEAR, APART, FAR]),
        (NEAR + 1, [APART, FAR]),
        (FAR + 1, [FAR]),
    ],
)
def test_kernels_are_timed_at_the_distances_that_their_buffers_reach(nbytes: int, distances: list[int]) -> None:
    mine = Bench(MicrobenchRequest(), torch.device("cpu"), lambda _: None)
    assert mine.distances(nbytes) == distances
    assert bench([]).distances(nbytes) == [APART], "tests measure once"


def test_whole_buffers_of_the_least_distance_are_near() -> None:
    mine = Bench(MicrobenchRequest(), torch.device("cpu"), lambda _: None)
    for nbytes in (1 << 15, 4 * 8_000 * 256, NEAR - 1, NEAR):
        assert NEAR <= mine.sets(nbytes, NEAR) * nbytes <= NEAR_BY or mine.sets(nbytes, NEAR) == 512
    assert APART > NEAR_BY
    assert FAR > FAR_OFF


def test_what_is_touched_before_a_call_takes_the_budget_and_is_not_counted() -> None:
    order: list[str] = []

    def before() -> None:
        order.append("before")
        time.sleep(0.004)

    found = cold_samples(lambda _: order.append("call"), before, TimeBudget("tiny", 0.02, 1, 0.0))
    assert order == ["before", "call"] * (len(found) + 1)
    assert max(found) < 0.004
    assert len(found) <= 6, "0.02 s hold five pauses of 4 ms"


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
