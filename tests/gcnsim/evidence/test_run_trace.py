"""A trace that is not of the run beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.evidence.recorded_run import refuse_other_trace, scenario_of
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.trace import AccessTrace, read_trace, write_trace
from tests.gcnsim.evidence.conftest import WriteRun, save_trace

DRAWN = {"method": "psc-gcn", "knobs": {"tau": 1, "epsilon": 0.3, "sampler": "vr"}}


def check(folder: Path) -> None:
    run = read_recorded_run(folder)
    refuse_other_trace(run, scenario_of(run))


def refusal(folder: Path) -> str:
    with pytest.raises(ScenarioError) as caught:
        check(folder)
    path, end = folder / "access.trace", f"; allowed: the trace of {folder}"
    text = str(caught.value)
    assert text.startswith(f"{path}: ")
    assert text.endswith(end)
    return text.removeprefix(f"{path}: ").removesuffix(end)


@pytest.mark.parametrize("options", [{}, DRAWN, {"method": "pipegcn"}, {"method": "bns-gcn", "knobs": {"rate": 0.2}}])
def test_a_run_has_its_own(write_run: WriteRun, options: dict[str, Any]) -> None:
    check(write_run("a", **options))


def _of(**changes: Any) -> Callable[[AccessTrace], AccessTrace]:
    return lambda trace: replace(trace, origin=replace(trace.origin, **changes))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_of(graph_hash="ab" * 32), "is of the graph abababababab, the run of "),
        (_of(partition_method="metis"), "is of a partition by metis, the run of one by block"),
        (lambda trace: replace(trace, inner_nodes=trace.inner_nodes + 1), "has 1501 inner nodes of worker 0, the run "),
        (_of(sampler="uniform"), "was drawn with uniform at epsilon 0.3, the run with vr at 0.3"),
        (_of(epsilon=0.25), "was drawn with vr at epsilon 0.25, the run with vr at 0.3"),
        (_of(seed=7), "was drawn with seed 7, the run with 0"),
    ],
)
def test_another_is_refused(write_run: WriteRun, change: Callable[[AccessTrace], AccessTrace], words: str) -> None:
    folder = write_run("a", **DRAWN)
    changed = change(read_trace(folder / "access.trace"))
    write_trace(folder / "access.trace", changed)
    assert refusal(folder).startswith(words)


def test_one_of_other_workers_and_one_of_drawn_graphs_beside_a_run_of_whole_ones(write_run: WriteRun) -> None:
    folder = write_run("a")
    save_trace(folder / "access.trace", workers=3)
    assert refusal(folder) == "has 3 workers, the run 2"
    save_trace(folder / "access.trace", sampler="vr", epsilon=0.3)
    assert refusal(folder) == "was drawn with vr at epsilon 0.3, the run with full at 1"
