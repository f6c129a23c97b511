"""`--aggregator auto` measures once, says what it chose, and a checkpoint keeps to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from gcnsim.core.errors import ScenarioError
from runtime.aggregate import Matrix, PlainMatrix
from runtime.options import Options
from runtime.record import read_run
from runtime.train import setup as quickest_module
from runtime.train.checkpoint.files import with_saved_kernels
from runtime.train.setup import KERNELS, quickest, with_kernels
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran


class Clock:
    """Shows what it is told, so that no other work on this machine decides."""

    def __init__(self) -> None:
        self.now = 0.0

    def perf_counter(self) -> float:
        return self.now


def slow(seconds: float, seen: list[bool], clock: Clock) -> type[Matrix]:
    """Sums that take `seconds`, and note whether they were given a weight per entry."""

    class Slow(PlainMatrix):
        def multiply(self, x: Tensor, out: Tensor, *, add: bool = False, values: Tensor | None = None) -> None:
            clock.now += seconds
            seen.append(values is not None)
            super().multiply(x, out, add=add, values=values)

    return Slow


Kinds = Callable[[dict[str, float]], list[bool]]


@pytest.fixture
def kinds(monkeypatch: pytest.MonkeyPatch) -> Kinds:
    """Sums that take so many seconds, in place of those of these names; the others cannot be imported."""

    def put(seconds: dict[str, float]) -> list[bool]:
        seen: list[bool] = []
        clock = Clock()

        def kind(name: str) -> type[Matrix]:
            if name not in seconds:
                raise ScenarioError("not installed")
            return slow(seconds[name], seen, clock)

        monkeypatch.setattr(quickest_module, "matrix_kind", kind)
        monkeypatch.setattr(quickest_module, "time", clock)
        return seen

    return put


@pytest.mark.parametrize("quick", ["plain", "numba", "dgl"])
def test_the_quickest_is_taken(case: Case, options: MakeOptions, kinds: Kinds, quick: str) -> None:
    seen = kinds({name: 1.0 if name == quick else 2.0 for name in KERNELS})
    (part,) = case.parts(1)
    found = with_kernels(options(workers=1, aggregator="auto"), part, "symmetric", torch.float64, None)
    assert found.aggregator == quick
    assert not any(seen), "a sum over all neighbours needs no weight per entry"


def test_what_is_not_installed_is_no_candidate(case: Case, options: MakeOptions, kinds: Kinds) -> None:
    kinds({"plain": 0.01})
    assert quickest(options(workers=1), case.parts(1)[0], "symmetric", torch.float64) == "plain"


@pytest.mark.parametrize(
    ("method", "knobs", "fields", "weighed"),
    [
        ("psc-gcn", {"epsilon": 0.3}, {}, True),
        ("psc-gcn", {"epsilon": 1.0}, {}, False),
        ("psc-gcn", {"epsilon": 0.3, "estimator": "mean"}, {}, False),
        ("full-graph", {}, {"model": "gat"}, True),
    ],
    ids=["drawn", "whole", "mean", "gat"],
)
def test_sums_are_timed_as_the_run_takes_them(
    case: Case,
    options: MakeOptions,
    kinds: Kinds,
    method: str,
    knobs: dict[str, Any],
    fields: dict[str, Any],
    weighed: bool,
) -> None:
    seen = kinds({"plain": 0.0})
    quickest(options(method, knobs, workers=1, **fields), case.parts(1)[0], "symmetric", torch.float64)
    assert seen == [weighed] * len(seen)
    assert seen


def test_kernels_that_are_named_are_not_measured(case: Case, kinds: Kinds) -> None:
    seen = kinds({"plain": 0.0})
    for name in KERNELS:
        options = Options(aggregator=name)
        assert with_kernels(options, case.parts(1)[0], "symmetric", torch.float32, None) is options
    on_gpus = Options(aggregator="auto", device="cuda")
    assert with_kernels(on_gpus, case.parts(1)[0], "symmetric", torch.float32, None).aggregator == "plain"
    pools = Options(aggregator="auto", model="graphsage", sage_aggregator="pool")
    assert with_kernels(pools, case.parts(1)[0], "mean", torch.float32, None).aggregator == "numba"
    assert not seen


def test_a_run_says_what_was_chosen_and_goes_on_with_it(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    fields: dict[str, Any] = {"workers": 2, "record": True, "checkpoint_every": 2}
    crew.run(2, ran, options(iterations=2, aggregator="auto", out=str(tmp_path / "auto"), **fields))
    assert read_run(tmp_path / "auto").record.options["aggregator"] in KERNELS
    for name in ("plain", "numba"):
        begun = tmp_path / name
        crew.run(2, ran, options(iterations=2, aggregator=name, out=str(begun), **fields))
        more = options(iterations=4, aggregator="auto", resume=str(begun), out=str(begun), **fields)
        crew.run(2, ran, with_saved_kernels(more))
        record = read_run(begun).record
        assert (record.options["aggregator"], record.iterations) == (name, 4)
