"""Runs on mini-batches: their traces are the simulator's counts, they go on bit for bit, and they learn."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import GcnsimError
from gcnsim.methods import create_method
from gcnsim.scenario import from_mapping
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.timeline import OpKind
from gcnsim.trace import read_batch_trace
from gcnsim.trace.counts import BatchCounts
from runtime.methods import METHODS, method_of, method_type
from runtime.options import Options
from tests.runtime.batch_jobs import CASES, scored, trained
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.session_jobs import ran

WORKERS = 3


def counted_by_the_simulator(case: Case, options: Options) -> BatchCounts:
    """The counts that a question of the same method, graph, parts and seed is answered with."""
    known = {knob.name: knob.rule for knob in create_method(options.method).knobs()}
    held = {name: value for name, value in options.knobs.items() if value is not None and name in known}
    knobs = {name: known[name].write(value) for name, value in held.items()}
    scenario = from_mapping(
        {
            "schema": "gcnsim.scenario/1",
            "cluster": {"gpus": options.workers, "gpus_per_server": options.workers},
            "workload": {"graph": str(case.path), "layers": options.layers, "hidden": options.hidden},
            "method": {"name": options.method, **knobs},
            "partition": {"method": "random", "seed": options.partition_seed},
            "run": {"iterations": options.iterations, "seed": options.seed},
        },
        "test",
    )
    batch_counts = open_source(scenario).counts(scenario, 7, RangeEnd.LIKELY).batches
    assert batch_counts is not None
    return batch_counts


@pytest.mark.parametrize(
    ("method", "more"), [*((name, {}) for name in CASES), ("pagraph", {"preprocess": "yes"})], ids=str
)
def test_the_saved_trace_has_the_counts_of_the_simulator(
    crew: Crew, case: Case, options: MakeOptions, tmp_path: Path, method: str, more: dict[str, Any]
) -> None:
    requested = options(
        method, CASES[method], workers=WORKERS, iterations=6, seed=3, record=True, out=str(tmp_path / "run")
    )
    crew.run(WORKERS, ran, requested)
    trace = read_batch_trace(tmp_path / "run" / "access.trace")
    found, wanted = trace.counts(), counted_by_the_simulator(case, requested)
    for name in ("levels", "entries", "looked", "wanted", "hits", "cached", "stored", "per_epoch"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name)), name


@pytest.mark.parametrize("method", CASES)
def test_going_on_is_the_same_to_the_bit(crew: Crew, options: MakeOptions, tmp_path: Path, method: str) -> None:
    fields: dict[str, Any] = {"workers": WORKERS, "iterations": 8, "dropout": 0.3, "dtype": "float32", "record": True}
    requested = options(method, CASES[method], checkpoint_every=3, out=str(tmp_path / "run"), **fields)
    whole = crew.run(WORKERS, ran, requested)
    assert len({run.weights for run in whole}) == 1
    saved = str(tmp_path / "run" / "checkpoints" / "000003")
    again = crew.run(WORKERS, ran, replace(requested, out=str(tmp_path / "again"), resume=saved))
    assert again[0].begun == 3
    assert again[0].losses == {t: loss for t, loss in whole[0].losses.items() if t >= 3}
    assert {run.weights for run in again} == {whole[0].weights}
    assert [run.drawn for run in again] == [run.drawn for run in whole]
    first, second = (tmp_path / name / "access.trace" for name in ("run", "again"))
    assert first.read_bytes() == second.read_bytes()


@pytest.mark.parametrize("method", CASES)
def test_a_worker_whose_batches_are_empty_still_takes_part(crew: Crew, options: MakeOptions, method: str) -> None:
    """In the last iteration of an epoch a worker may have no training node left."""
    knobs = CASES[method] | ({"batch": 8} if "batch" in CASES[method] else {})
    content = crew.run(WORKERS, trained, options(method, knobs, workers=WORKERS, iterations=4))
    assert all(np.isfinite(content[0].losses))
    if "batch" in knobs:
        assert content[0].trained[2] == 70 - 2 * 24


@pytest.mark.parametrize("method", CASES)
def test_spans_are_of_the_simulators_kinds(crew: Crew, options: MakeOptions, method: str) -> None:
    content = crew.run(WORKERS, trained, options(method, CASES[method], workers=WORKERS, iterations=4, record=True))
    for one in content:
        compute = [span for span in one.spans if span.stream == "compute"]
        assert all(a.end_s <= b.start_s for a, b in pairwise(compute)), "the main stream does one thing at a time"
        for t in range(4):
            kinds = {span.kind for span in one.spans if span.iteration == t}
            wanted = {OpKind.SAMPLE, OpKind.INDEX, OpKind.GATHER, OpKind.AGGREGATE, OpKind.UPDATE, OpKind.LOSS}
            assert wanted | {OpKind.ALLREDUCE, OpKind.STEP} <= kinds
        layers = {(span.layer, span.direction.name) for span in one.spans if span.kind is OpKind.AGGREGATE}
        assert layers == {(0, "FORWARD"), (1, "FORWARD"), (2, "FORWARD"), (1, "BACKWARD"), (2, "BACKWARD")}
        assert {span.stream for span in one.spans if span.kind is OpKind.SAMPLE} == {"sampler"}


PULLING = [name for name in CASES if not METHODS[name].everywhere]  # type: ignore[attr-defined]


@pytest.mark.parametrize("method", PULLING)
def test_what_is_pulled_is_what_the_batches_lack(crew: Crew, case: Case, options: MakeOptions, method: str) -> None:
    requested = options(method, CASES[method], workers=WORKERS, dtype="float32", record=True, iterations=5)
    content = crew.run(WORKERS, trained, requested)
    owner = case.owners(WORKERS).owner
    for rank, one in enumerate(content):
        for peer in set(range(WORKERS)) - {rank}:
            wanted = sum(int((owner[nodes] == peer).sum()) for nodes in one.nodes)
            assert content[peer].sent[rank, "rows"] == 4 * 7 * wanted
            assert one.sent[peer, "ids"] == 4 * (wanted + 5), "their number goes first"
            came = [span for span in one.spans if span.stream == f"load.rx{peer}"]
            assert sum(span.nbytes for span in came) == 4 * 7 * wanted


@pytest.mark.parametrize("method", CASES)
def test_the_runtimes_method_is_the_simulators(method: str) -> None:
    mine: Any = method_of(method, method_type(method).settled({}))
    theirs: Any = create_method(method)
    known = {knob.name: knob for knob in theirs.knobs()}
    both = [knob for knob in mine.knobs() if knob.name in known]
    assert both == [known[knob.name] for knob in both]
    assert len(both) == len(known)
    loading = theirs.loading
    assert (mine.ahead, mine.draws_ahead or mine.ahead > 0) == (loading.ahead, loading.draws_ahead)
    assert mine.everywhere is not loading.asks
    assert mine.one_server is theirs.one_server
    if "fanout" in known:
        assert mine.trains == theirs.trains


DIGITS: dict[str, dict[str, Any]] = {
    "graphsage": {"batch": 128, "fanout": (10, 10)},
    "clustergcn": {"subgraph": 0.1},
    "graphsaint": {"subgraph": 0.1, "coverage": 20},
}
"""Batches of the others are drawn as those of graphsage."""


@pytest.mark.parametrize("method", DIGITS)
def test_digits_are_learnt(crew: Crew, options: MakeOptions, method: str) -> None:
    fields: dict[str, Any] = {"graph": None, "dtype": "float32", "layers": 2, "hidden": 64, "lr": 0.01}
    requested = options(method, DIGITS[method], workers=2, iterations=60, model="graphsage", **fields)
    found = crew.run(2, scored, requested)
    assert found[0] == found[1]
    assert found[0].test is not None
    assert found[0].test >= 0.95


REFUSED: list[tuple[str, dict[str, Any], dict[str, Any], str]] = [
    ("graphsage", {}, {"preaggregate": True}, "--preaggregate: graphsage draws new neighbours for every batch"),
    ("graphsage", {"fanout": "2,2"}, {}, "--fanout: 2 numbers, but the model has 3 layers; allowed: 3 numbers"),
    ("graphsage", {"layer_sizes": "20"}, {}, "--layer-sizes: 1 numbers, but the model has 3 layers"),
    ("graphsage", {"fanout": "2,2,2", "layer_sizes": "2,2,2"}, {}, "--layer-sizes: given beside --fanout; give one"),
    ("graphsage", {"fanout": "0,2,2"}, {}, "--fanout: 0,2,2 is not allowed; whole numbers of at least 1"),
    ("graphsage", {"batch": 0}, {}, "--batch: 0 is not allowed"),
    ("clustergcn", {"subgraph": "0%"}, {}, "--subgraph: 0% is not allowed; a percentage above 0%"),
    ("graphsaint", {"subgraph": "a lot"}, {}, "--subgraph: 'a lot': not a percentage"),
    ("graphsaint", {"coverage": 0}, {}, "--coverage: 0 is not allowed"),
    ("dgl", {"cache": "20%"}, {}, "--cache: dgl has no cache; its knobs: --batch, --fanout, --layer-sizes"),
    (
        "pagraph",
        {"cache": "120%"},
        {},
        "--cache: '120%' is not allowed; auto, 0% to 100% of the rows of the worker's part",
    ),
    (
        "pagraph",
        {"preprocess": "yes"},
        {"model": "gat"},
        "--preprocess: gat has no fixed first aggregation",
    ),
    ("pagraph", {"queue": 0}, {}, "--queue: 0 is not allowed"),
    ("psc-gcn", {"cache": "auto"}, {}, "--cache: auto is not allowed"),
    ("distdgl", {"fanout": "3"}, {}, "--fanout: 1 numbers, but the model has 3 layers"),
    ("graphsaint", {}, {"preaggregate": True}, "--preaggregate: graphsaint draws new neighbours for every batch"),
    ("graphsage", {"queue": 2}, {}, "--queue: graphsage has no queue; its knobs: --batch, --fanout, --layer-sizes"),
]


@pytest.mark.parametrize(("method", "knobs", "fields", "message"), REFUSED, ids=str)
def test_what_does_not_combine_is_refused_in_one_line(
    options: MakeOptions, method: str, knobs: dict[str, Any], fields: dict[str, Any], message: str
) -> None:
    with pytest.raises(GcnsimError) as caught:
        options(method, knobs, **fields)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
