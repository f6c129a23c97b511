"""Timing, inputs, kernels at once, transfers.

What the micro-benchmarks may be asked for, and that what was asked reaches every matrix and every thread.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import device, devices
from runtime.aggregate import NumbaMatrix, PlainMatrix, Rows, compiled
from runtime.microbench import (
    FULL,
    KERNELS,
    QUICK,
    TINY,
    Measurement,
    MicrobenchRequest,
    TimeBudget,
    kernels,
    program,
)
from runtime.microbench.bench import (
    APART,
    APART_ON_GPU,
    Bench,
    Shape,
    facts_of,
    made_part,
    made_rows,
    matrix_of,
    no_collector,
    samples,
)
from runtime.microbench.kernels import MOST_WORK_ON_GPU, learnt_map, product
from runtime.microbench.measurements import CUDA_ONLY, NETWORK, from_json
from runtime.microbench.process_group import merged
from runtime.microbench.program import ALONE, measure_sharing
from tests.runtime.crew import Crew
from tests.runtime.microbench.network_jobs import transfers

REFUSED = {
    "auto": ("cpu", "--aggregator: unknown 'auto'; known: dgl, numba, plain"),
    "nunba": ("cpu", "--aggregator: unknown 'nunba'; did you mean 'numba'? known: dgl, numba, plain"),
    "numba": ("cuda", "--aggregator: numba sums on CPUs, --device is cuda; allowed: plain, dgl"),
}


@pytest.fixture
def threads() -> Iterator[None]:
    """Whatever a run of this process sets."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def request_for(threads: int = 1, aggregator: str = "numba") -> MicrobenchRequest:
    return MicrobenchRequest(TINY, "cpu", threads, (1,), False, aggregator)


@pytest.mark.parametrize("name", REFUSED)
def test_kernels_that_cannot_sum_here_are_refused(name: str) -> None:
    device, words = REFUSED[name]
    with pytest.raises(ScenarioError) as caught:
        MicrobenchRequest(TINY, device, aggregator=name)
    assert str(caught.value) == words


def test_the_kernels_are_plain_unless_asked_and_told_with_the_rest() -> None:
    assert MicrobenchRequest().options()["aggregator"] == "plain"
    assert request_for().options()["aggregator"] == "numba"
    assert from_json(request_for().to_json()) == request_for()
    assert MicrobenchRequest(TINY, "cuda", aggregator="dgl").aggregator == "dgl"


def test_every_matrix_is_of_the_kernels_that_are_asked_for(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    """A whole profile of one process, and what only several processes or a GPU measure."""
    made: list[NumbaMatrix] = []
    measurements: list[Measurement] = []
    begin = NumbaMatrix.__init__

    def noted(self: NumbaMatrix, *given: object, **named: object) -> None:
        made.append(self)
        begin(self, *given, **named)  # type: ignore[arg-type]

    def refused(self: PlainMatrix, *given: object, **named: object) -> NoReturn:
        raise AssertionError("a matrix of other kernels")

    monkeypatch.setattr(NumbaMatrix, "__init__", noted)
    monkeypatch.setattr(PlainMatrix, "__init__", refused)
    program.run(request_for(), ALONE, measurements.append)
    assert {measurement.kernel for measurement in measurements} == set(KERNELS) - CUDA_ONLY - NETWORK
    bench, before = Bench(request_for(), torch.device("cpu"), measurements.append), len(made)
    monkeypatch.setattr(program, "_beside", lambda bench, call: call)
    program._kernels(bench)
    assert len(made) == before + 1


def test_sums_use_as_many_threads_as_asked(threads: None, monkeypatch: pytest.MonkeyPatch) -> None:
    used: set[int] = set()

    def alone(bench: Bench) -> None:
        rows = Shape(10_000, 1_000, 1_000).made()
        product(bench, matrix_of(rows, bench.device, bench.request.aggregator), 64)[0](0)

    monkeypatch.setattr(compiled, "sum_rows", lambda *given: used.add(threading.get_ident()))
    monkeypatch.setattr(program, "_alone", lambda bench, rounds: alone(bench) if rounds else None)
    monkeypatch.setattr(program, "_shared", lambda *given: None)
    for count in (1, 2):
        used.clear()
        program.run(request_for(count), ALONE, lambda _: None)
        assert len(used) == count


def test_kernels_are_measured_in_rounds(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    """Rounds share the time of one; what they say of a kernel and size becomes one measurement."""
    measurements: list[Measurement] = []
    budgets: list[TimeBudget] = []
    monkeypatch.setattr(program, "_shared", lambda *given: budgets.append(given[0].request.budget))
    begin = Bench.found

    def noted(self: Bench, *given: object, **named: object) -> None:
        budgets.append(self.budget)
        begin(self, *given, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Bench, "found", noted)
    program.run(replace(request_for(), budget=replace(TINY, rounds=3)), ALONE, measurements.append)
    times = Counter(
        measurement.kernel for measurement in measurements if measurement.kernel in ("gemm", "spmm", "thin")
    )
    once = Counter(item.kernel for item in merged(measurements) if item.kernel in times)
    assert {name: times[name] / once[name] for name in times} == dict.fromkeys(times, 3)
    # What processes cost one another is measured afterwards, once.
    assert budgets.pop() == replace(TINY, rounds=3)
    assert {budget.sample_s for budget in budgets} == {TINY.sample_s / 3}


def test_rounds_are_one_measurement_by_their_means() -> None:
    rounds = [
        Measurement("relu", {"rows": 2.0}, 1, 1, seconds, seconds / 2, 2 * seconds, 5) for seconds in (4.0, 10.0, 1.0)
    ]
    other = Measurement("relu", {"rows": 3.0}, 1, 1, 1.0, 1.0, 1.0, 2)
    assert merged([rounds[0], other, *rounds[1:]]) == [
        Measurement("relu", {"rows": 2.0}, 1, 1, 5.0, 2.5, 10.0, 15),
        other,
    ]


def test_nothing_is_made_for_others_while_one_process_measures(monkeypatch: pytest.MonkeyPatch, threads: None) -> None:
    order: list[str] = []

    def made(bench: Bench) -> list[program.Kernel]:
        order.append("made")
        return []

    monkeypatch.setattr(program, "kernels_at_once", made)
    monkeypatch.setattr(program, "_together", lambda *given: order.append("together"))
    monkeypatch.setattr(program, "_alone", lambda bench, rounds: order.append(f"{rounds} alone"))
    monkeypatch.setattr(program, "_shared", lambda *given: order.append("at once"))
    program.run(replace(request_for(), budget=replace(TINY, rounds=3)), ALONE, lambda _: None)
    assert order == ["made", "together", "3 alone", "at once", "together"]


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
    gathered = [4.0 * 128 * shape.columns for shape in kernels._on_gpu(mine) if shape.entries * 128 <= MOST_WORK_ON_GPU]
    assert min(gathered) < caches["t4"] * 1.5, "held by the cache of any GPU"
    assert max(gathered) > 3 * caches["h200"]


def test_a_matrix_is_the_same_every_time() -> None:
    one, other = Shape(2_000, 200, 150, skewed=True).made(), Shape(2_000, 200, 150, skewed=True).made()
    assert np.array_equal(one.columns, other.columns)
    assert np.array_equal(one.values, other.values)


def test_rows_are_sorted_and_within_the_columns() -> None:
    for skewed in (False, True):
        for local in (False, True):
            rows = Shape(3_000, 300, 1_200, skewed=skewed, local=local).made()
            row, column = rows.places
            assert np.all(np.diff(row * rows.width + column) > 0)
            assert column.min() >= 0
            assert column.max() < 1_200
            assert 800 < column.size <= 3_300


def test_facts_tell_skewed_from_even_and_local_from_far() -> None:
    even = facts_of(Shape(20_000, 2_000, 2_000).made())
    skewed = facts_of(Shape(20_000, 2_000, 2_000, skewed=True).made())
    local = facts_of(Shape(20_000, 2_000, 2_000, local=True).made())
    assert even["skew"] < 0.1 < 0.8 < skewed["skew"]
    assert even["column_skew"] < 0.5 < 0.8 < skewed["column_skew"]
    assert abs(even["locality"]) < 0.05 < 0.9 < local["locality"]


def test_facts_count_entries_rows_and_columns() -> None:
    facts = facts_of(Rows(np.array([0, 2, 4, 5]), np.array([0, 1, 0, 2, 1], np.int32), np.ones(5), 3))
    assert (facts["entries"], facts["rows"], facts["columns"]) == (5, 3, 3)


def test_a_matrix_multiplies_as_training_does() -> None:
    rows = Shape(500, 50, 40).made()
    x, out = made_rows(40, 8, torch.device("cpu"), "test"), torch.zeros(50, 8)
    matrix_of(rows, torch.device("cpu")).multiply(x, out)
    dense = np.zeros((50, 40))
    dense[rows.places] = rows.values
    assert np.allclose(out.numpy(), dense @ x.numpy(), atol=1e-4)


def test_a_part_has_inner_and_boundary_nodes() -> None:
    part = made_part(400, 4_000)
    assert part.inner_nodes == 100
    assert part.boundary_nodes > 0
    assert np.any(part.columns < 100)


class Channel:
    """Of two processes: the other one takes three times as long."""

    def __init__(self, rank: int) -> None:
        self.rank, self.barriers = rank, 0

    def barrier(self) -> None:
        self.barriers += 1

    def gather(self, own: Tensor) -> list[Tensor]:
        return [own, 3 * own]


def measured(channel: Channel | None) -> list[Measurement]:
    measurements: list[Measurement] = []
    bench = Bench(MicrobenchRequest(TINY), torch.device("cpu"), measurements.append)
    calls: list[int] = []
    measure_sharing(bench, [("gemm", {"rows": 3.0}, calls.append)], channel, 1 if channel is None else 2)  # type: ignore[arg-type]
    assert calls[0] == 0
    assert calls[1:] == list(range(len(calls) - 1)), "one call before all begin"
    return measurements


def test_processes_begin_together_and_the_first_tells_the_mean() -> None:
    first, other = Channel(0), Channel(1)
    (measurement,) = measured(first)
    assert measured(other) == []
    assert first.barriers == other.barriers == 1
    assert (measurement.kernel, measurement.params, measurement.processes, measurement.repeats) == (
        "shared_gemm",
        {"rows": 3.0},
        2,
        2,
    )
    assert measurement.low < measurement.seconds < measurement.high
    assert measurement.low + measurement.high == pytest.approx(2 * measurement.seconds)


def test_a_process_alone_asks_nobody() -> None:
    (measurement,) = measured(None)
    assert (measurement.processes, measurement.repeats) == (1, 1)
    assert measurement.low == measurement.seconds == measurement.high


def test_a_map_goes_through_what_it_reads_and_what_it_writes() -> None:
    requested: list[float] = []

    class Asked(Bench):
        def sets(self, nbytes: float, apart: int | None = None) -> int:
            requested.append(nbytes)
            return 2

    learnt_map(Asked(MicrobenchRequest(TINY), torch.device("cpu"), lambda _: None), 100, 8, 24)
    assert requested == [4 * 100 * (8 + 24)]


def test_the_first_process_tells_of_all_transfers_by_their_names(crew: Crew) -> None:
    first, other = crew.run(2, transfers)
    assert other == []
    assert set(first) == {name for name in KERNELS if name.startswith("nccl_")}
    assert len(first) == 2 * 3 + 2, "pairs of two sizes, sums of one"
