"""Parts measured alone, in turns."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from gcnsim.timeline import KINDS, Direction, OpKind
from runtime.data import DatasetCache
from runtime.exchange import Mail
from runtime.measuring.part import GpuPeak, PartRecord, PartRun, covered, free_on_gpu
from runtime.measuring.rounds import Setting
from runtime.methods import METHODS, method_of
from runtime.options import Options
from runtime.record import Recorder
from tests.runtime.batch_jobs import CASES
from tests.runtime.conftest import MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.measuring_jobs import Key, Trained, trained

GPU = torch.device("cuda")


class Gpu:
    """Bytes of a GPU of 1000: allocated now, allocated at most, and the runs of parts that hold 100 each."""

    def __init__(self) -> None:
        self.allocated = self.most = 0
        self.made: list[int] = []
        self.held: set[int] = set()
        self.room = 10

    def hold(self, nbytes: int) -> None:
        self.allocated += nbytes
        self.most = max(self.most, self.allocated)

    def reset(self, _: Any) -> None:
        self.most = self.allocated


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Gpu:
    found = Gpu()
    replaced: dict[str, Any] = {
        "mem_get_info": lambda _: (900 - found.allocated, 1000),
        "memory_reserved": lambda _: found.allocated + 50,
        "memory_allocated": lambda _: found.allocated,
        "max_memory_allocated": lambda _: found.most,
        "reset_peak_memory_stats": found.reset,
        "empty_cache": lambda: None,
    }
    for name, value in replaced.items():
        monkeypatch.setattr(torch.cuda, name, value)

    class Run:
        """A part that trains for no time."""

        def __init__(self, record: PartRecord, *_: Any) -> None:
            if len(found.held) >= found.room:
                raise torch.cuda.OutOfMemoryError("CUDA out of memory. Tried to allocate 3.00 GiB.")
            self.record = record
            found.made.append(record.rank)
            found.held.add(record.rank)

        def train(self, iterations: int, *, measured: bool) -> list[float]:
            return [0.001] * iterations

        def turn(self, iterations: int) -> list[float]:
            self.record.rounds.append(0.001)
            self.record.seconds += [0.001] * iterations
            return [0.001] * iterations

        def close(self) -> None:
            found.held.remove(self.record.rank)

        abandon = close

    monkeypatch.setattr("runtime.measuring.rounds.PartRun", Run)
    return found


def setting(monkeypatch: pytest.MonkeyPatch, options: MakeOptions, needed: int) -> Setting:
    monkeypatch.setattr(Setting, "_needed", lambda self, rank: needed)
    return Setting(options(workers=3), GPU, DatasetCache(), lambda _: None)


@pytest.mark.parametrize(("needed", "stay"), [(150, True), (160, False)])
def test_parts_stay_on_a_gpu_that_has_twice_what_they_need(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions, needed: int, stay: bool
) -> None:
    assert free_on_gpu(GPU) == 950
    found = setting(monkeypatch, options, needed).measured(0.01)
    assert found.known
    assert (len(gpu.made) == 3) == stay
    assert not gpu.held


def test_host_memory_must_have_room_too(gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions) -> None:
    monkeypatch.setattr("runtime.measuring.rounds.free_bytes", lambda: 299)
    setting(monkeypatch, options, 100).measured(0.01)
    assert len(gpu.made) > 3


@pytest.mark.parametrize(("cache", "stay"), [("40%", True), ("auto", False)])
def test_parts_whose_caches_fill_the_memory_take_turns(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions, cache: str, stay: bool
) -> None:
    monkeypatch.setattr(Setting, "_needed", lambda self, rank: 10)
    Setting(options("pagraph", {"cache": cache}, workers=3), GPU, DatasetCache(), lambda _: None).measured(0.01)
    assert (len(gpu.made) == 3) == stay


@pytest.mark.parametrize("room", [1, 2])
def test_a_part_without_room_beside_others_is_measured_alone(
    gpu: Gpu, monkeypatch: pytest.MonkeyPatch, options: MakeOptions, room: int
) -> None:
    gpu.room = room
    found = setting(monkeypatch, options, 100).measured(0.01)
    assert [part.skipped for part in found.parts] == [None] * 3
    assert all(part.iterations for part in found.parts)
    assert not gpu.held


def test_the_peak_of_a_part_is_its_own(gpu: Gpu) -> None:
    gpu.hold(70)  # of others
    peak = GpuPeak(GPU)
    gpu.hold(30)  # what it keeps
    peak.begin()
    gpu.hold(25)
    gpu.hold(-25)
    peak.end()
    assert peak.nbytes == 55
    gpu.hold(400)  # another part comes,
    gpu.hold(-70)  # and the first ones go
    peak.begin()
    gpu.hold(35)
    gpu.hold(-35)
    peak.end()
    assert peak.nbytes == 65


WARMUP, ITERATIONS = 2, 6
RUNS: dict[str, tuple[str, dict[str, Any], dict[str, Any]]] = {
    "full": ("full-graph", {}, {}),
    "full-none": ("full-graph", {}, {"overlap": "none"}),
    "full-once": ("full-graph", {}, {"preaggregate": True, "dropout": 0.5}),
    "full-sage": ("full-graph", {}, {"model": "graphsage"}),
    "pipegcn": ("pipegcn", {"cold_start": "features"}, {}),
    "pipegcn-g": ("pipegcn-g", {}, {}),
    "pipegcn-f": ("pipegcn-f", {}, {}),
    "pipegcn-gf": ("pipegcn-gf", {}, {}),
    "psc-0": ("psc-gcn", {"tau": 0, "epsilon": 0.3, "refresh": 2}, {}),
    "psc-even": ("psc-gcn", {"tau": 2, "epsilon": 0.3, "sampler": "uniform"}, {}),
    "psc-gat": ("psc-gcn", {"tau": 2, "epsilon": 0.3, "refresh": 2}, {"model": "gat"}),
    "psc-cache": ("psc-gcn", {"tau": 1, "epsilon": 0.3, "refresh": 3, "cache": "30%"}, {}),
    "psc-whole": ("psc-gcn", {"tau": 1, "epsilon": 1.0, "cache": "30%"}, {}),
    "bns": ("bns-gcn", {"rate": 0.3}, {}),
    **{name: (name, dict(knobs), {}) for name, knobs in CASES.items()},
}
DRAWN_ALIKE = {"psc-even", *CASES} | {name for name in RUNS if name.startswith(("full", "pipegcn"))}
"""What a part draws depends on nothing that other workers compute."""

SENT = 2
"""The place among the counts of rows that others ask for."""


def part_options(options: MakeOptions, name: str) -> Options:
    method, knobs, fields = RUNS[name]
    iterations = WARMUP + ITERATIONS
    return options(method, knobs, **{"record": True, "iterations": iterations, "workers": 2, **fields})


def alone(given: Options) -> list[Trained]:
    """Two parts, one after the other, twice: the second time they know what the other one wants."""
    mail, shelf = Mail(), DatasetCache()
    for turn in range(2):
        records = [PartRecord(rank) for rank in range(2)]
        for record in records:
            run = PartRun(record, replace(given, iterations=10**9), torch.device("cpu"), shelf, mail)
            run.train(WARMUP, measured=False)
            run.train(ITERATIONS, measured=True)
            run.close()
        assert all(record.iterations == ITERATIONS and record.warmup == WARMUP for record in records), turn
    return [Trained(keys_of(record), tuple(record.counts)) for record in records]


def keys_of(record: PartRecord) -> frozenset[Key]:
    (ops,) = record.ops
    assert np.isfinite(ops.seconds).all()
    assert (ops.seconds >= 0).all()
    directions = list(Direction)
    columns = (ops.iteration.tolist(), ops.kind.tolist(), ops.layer.tolist(), ops.direction.tolist())
    found = [(WARMUP + t, KINDS[kind], layer, directions[way]) for t, kind, layer, way in zip(*columns, strict=True)]
    assert len(set(found)) == len(found)
    return frozenset(found)


def test_all_methods_that_can_be_measured_are_here() -> None:
    assert {RUNS[name][0] for name in RUNS} == {name for name, method in METHODS.items() if method.alone}


ALSO = ("full-none", "pipegcn-g", "pipegcn-f", "psc-whole", "clustergcn", "pagraph")
"""Of which others have the model, the smoothing, the cache and the way of drawing."""


@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.slow] * (name in ALSO)) for name in RUNS])
def test_a_part_alone_has_the_ops_of_a_worker_among_others(crew: Crew, options: MakeOptions, name: str) -> None:
    given = part_options(options, name)
    for one, other in zip(alone(given), crew.run(2, trained, given), strict=True):
        # What runs ahead of the last iteration of training is never drawn.
        last = WARMUP + ITERATIONS - 1 - (3 if name in CASES or name.startswith("psc") else 0)
        wanted = {key for key in other.keys if WARMUP <= key[0] <= last}
        assert {key for key in one.keys if key[0] <= last} == wanted
        if name in DRAWN_ALIKE:
            assert [row[:SENT] + row[SENT + 1 :] for row in one.counts] == [
                row[:SENT] + row[SENT + 1 :] for row in other.counts[WARMUP:]
            ]
        if method_of(given.method, given.knobs).asks_once or name.startswith("full"):
            assert one.counts == other.counts[WARMUP:]
        assert (np.mean(one.counts, axis=0)[SENT] > 0) == (np.mean(other.counts, axis=0)[SENT] > 0)


def test_as_many_rows_are_drawn_as_among_others_while_norms_grow(crew: Crew, options: MakeOptions) -> None:
    given = options("psc-gcn", {"tau": 1, "epsilon": 0.2, "refresh": 5}, workers=3, iterations=60, lr=0.05)
    mail, shelf, records = Mail(), DatasetCache(), [PartRecord(rank) for rank in range(3)]
    runs = [PartRun(record, replace(given, iterations=10**9), torch.device("cpu"), shelf, mail) for record in records]
    for _ in range(6):
        for run in runs:
            run.train(10, measured=True)
    for run, among in zip(runs, crew.run(3, trained, given), strict=True):
        run.close()
        alone, together = (np.array(counts)[20:].mean(axis=0) for counts in (run.record.counts, among.counts))
        # Weights differ: each part learns by itself. With norms of another age it was a third.
        assert alone == pytest.approx(together, rel=0.25)


def test_a_turn_ends_with_an_iteration_that_refreshes_the_probabilities(options: MakeOptions) -> None:
    given = replace(part_options(options, "psc-cache"), iterations=10**9)
    record = PartRecord(0, period=8)
    run = PartRun(record, given, torch.device("cpu"), DatasetCache(), Mail())
    run.train(3, measured=False)
    before = run.worker.method.norms()
    assert before is not None
    assert before[0] == 0  # the first one does, whatever is asked
    for turn in range(2):
        run.turn(3)
        norms = run.worker.method.norms()
        assert norms is not None
        assert norms[0] == 3 + 4 * turn + 3
    run.close()
    assert record.refreshing == [False, False, False, True] * 2
    a, b = np.array(record.seconds).reshape(2, 4), np.array([7 / 24, 7 / 24, 7 / 24, 1 / 8])
    assert record.rounds == pytest.approx((a @ b).tolist())
    assert record.mean_seconds == pytest.approx(np.mean(record.rounds))


def test_where_every_iteration_refreshes_only_those_that_do_count(options: MakeOptions) -> None:
    given = replace(part_options(options, "psc-cache"), iterations=10**9)
    given = replace(given, knobs={**given.knobs, "refresh": 1})
    period = method_of(given.method, given.knobs).period
    assert period == 1
    record = PartRecord(0, period=period)
    run = PartRun(record, given, torch.device("cpu"), DatasetCache(), Mail())
    run.train(3, measured=False)
    run.turn(2)
    run.close()
    assert record.refreshing == [False, False, True]
    assert record.mean_seconds == pytest.approx(record.seconds[2])
    sampled = sum(
        float(seconds)
        for ops in record.ops
        for iteration, kind, seconds in zip(ops.iteration, ops.kind, ops.seconds, strict=True)
        if iteration == 2 and KINDS[kind] is OpKind.SAMPLE
    )
    assert 0.0 < sampled < record.seconds[2]


def test_on_a_gpu_what_no_operation_and_no_wait_covers_is_outside() -> None:
    recorder, ms = Recorder(0), 1_000_000
    for t in range(4):
        start = 100 * ms * t
        recorder.add(OpKind.AGGREGATE, "compute", t, start, start + 3 * ms)
        recorder.add(OpKind.WAIT, "compute", t, start + 2 * ms, start + 5 * ms)
        recorder.add(OpKind.STEP, "compute", t, start + 6 * ms, start + (7 + t) * ms)
        recorder.add(OpKind.D2H, "f.tx", t, start, start + 50 * ms)
    found = covered(recorder.timeline(0), [1, 3])
    assert found == pytest.approx([0.007, 0.009])
    record = PartRecord(0, seconds=[0.012, 0.013], refreshing=[False, False], covered_s=found)
    assert record.outside_seconds == pytest.approx(0.0045)
    record.forget()
    assert not record.covered_s
