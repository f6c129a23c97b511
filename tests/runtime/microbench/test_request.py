"""What the micro-benchmarks may be asked for, and that what was asked reaches every matrix and every thread."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import pytest
import torch

from gcnsim.core.errors import ScenarioError
from runtime.aggregate import NumbaMatrix, PlainMatrix, compiled
from runtime.microbench import (
    KERNELS,
    TINY,
    Measurement,
    MicrobenchRequest,
    TimeBudget,
    program,
)
from runtime.microbench.bench import Bench
from runtime.microbench.inputs import Shape, matrix_of
from runtime.microbench.kernels import product
from runtime.microbench.measurements import CUDA_ONLY, NETWORK
from runtime.microbench.process_group import merged
from runtime.microbench.program import ALONE
from runtime.microbench.request import from_json

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
