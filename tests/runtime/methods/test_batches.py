"""Mini-batches equal a plain reference in one process: losses, gradients, weights and the rows read."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from gcnsim.core.ids import FloatArray, IntArray
from gcnsim.graph.assign import training_parts
from gcnsim.timeline import OpKind
from gcnsim.workload.knobs import PerLayer
from gcnsim.workload.mini_batches import (
    BatchDraws,
    ClusterDraws,
    NeighbourDraws,
    WalkDraws,
    own_pools,
    shuffled_pools,
    training_order,
)
from runtime.options import Options
from tests.runtime.batch_jobs import CASES, Batches, trained
from tests.runtime.conftest import Case, MakeOptions, model_of, mostly, params_of
from tests.runtime.crew import Crew
from tests.runtime.reference.batches import Rules, Trained, batched, drawn_factors, whole_degrees
from tests.runtime.reference.training import Training
from tests.runtime.train.test_equality import close

BOUND = 1e-9
"""Relative, float64."""

WORKERS = 3


def equal(batcheses: list[Batches], wanted: Trained, case: Case, *, summed: bool = False) -> None:
    """Losses, gradients, weights, and every row that a batch read, unless it was `summed` before."""
    close(np.array(batcheses[0].losses), np.array(wanted.losses), "losses", BOUND)
    assert batcheses[0].trained == wanted.counted
    for t, gradients in enumerate(batcheses[0].gradients):
        names = wanted.gradients[t]
        # Together: a gradient that is nothing but rounding has no scale of its own.
        theirs = np.concatenate([names[name].numpy().ravel() for name in names])
        close(np.concatenate([gradients[name].ravel() for name in names]), theirs, f"gradients at {t}", BOUND)
    for name, weight in wanted.weights[-1].items():
        close(batcheses[0].weights[-1][name], weight.numpy(), name, BOUND)
    for rank, one in enumerate(batcheses):
        for t, (nodes, rows) in enumerate(zip(one.nodes, one.rows, strict=True)):
            assert np.array_equal(np.sort(nodes), wanted.read[t][rank]), f"rows of rank {rank} at {t}"
            assert summed or np.array_equal(rows, case.problem.features.numpy()[nodes]), f"rows of rank {rank} at {t}"


def neighbours(case: Case, options: Options, amounts: PerLayer, batch: int) -> BatchDraws:
    pools = shuffled_pools(np.flatnonzero(case.problem.train.numpy()), options.workers, options.seed)
    return NeighbourDraws(case.graph, pools, batch, amounts, (), options.seed)


MODELS: list[dict[str, Any]] = [
    {"model": "gcn"},
    {"model": "graphsage"},
    {"model": "graphsage", "sage_mean": "with-self", "norm": "layer"},
    {"model": "gat", "heads": 2},
]
FANOUTS: list[PerLayer] = [(3, 2, 4), (0.4, 0.6, 3), (40, 1, 2)]


DRAWN = [(0, 0), (0, 1), (0, 2), (1, 0), (2, 1), (3, 0), (3, 1)]
"""Every model and every fanout: places in MODELS and FANOUTS."""


@pytest.mark.parametrize(("which", "place"), mostly(DRAWN, range(len(MODELS)), range(len(FANOUTS))))
def test_graphsage(crew: Crew, case: Case, options: MakeOptions, which: int, place: int) -> None:
    model, amounts = MODELS[which], FANOUTS[place]
    if model["model"] == "gat" and amounts != FANOUTS[0]:
        model = {"model": "gat"}
    knobs = {"batch": 9, "fanout": amounts}
    requested = options("graphsage", knobs, workers=WORKERS, seed=4, **model)
    content = crew.run(WORKERS, trained, requested)
    # 70 training nodes: after two batches of 9 a worker's third has 5 or 6.
    assert content[0].trained[:4] == [27, 27, 16, 27]
    rules = Rules(drawn_factors(case.graph, amounts), whole_degrees(case.graph))
    first = params_of(content[0].weights[0])
    draws = neighbours(case, requested, amounts, 9)
    wanted = batched(
        case.graph, case.problem, model_of(requested, case), first, Training(10, requested.lr), draws, WORKERS, rules
    )
    equal(content, wanted, case)


def test_batches_do_not_depend_on_who_owns_what(crew: Crew, options: MakeOptions) -> None:
    knobs = {"batch": 9, "fanout": (3, 2, 4)}
    one, other = (
        crew.run(WORKERS, trained, options("graphsage", knobs, workers=WORKERS, partition_method=way))
        for way in ("random", "block")
    )
    assert one[0].losses == other[0].losses
    assert one[1].sent != other[1].sent


def test_a_batch_of_everything_with_all_neighbours_is_full_graph_training(crew: Crew, options: MakeOptions) -> None:
    from tests.runtime.jobs import trained as whole

    full = crew.run(2, whole, options(workers=2))
    content = crew.run(2, trained, options("graphsage", {"batch": 70, "fanout": (500, 500, 500)}, workers=2))
    close(np.array(content[0].losses), np.array(full[0].losses), "losses", BOUND)


SHUFFLED_OR_NOT: dict[str, dict[str, Any]] = {
    "dgl": {"batch": 9, "fanout": (3, 2, 4)},
    "pagraph": {"batch": 9, "fanout": (3, 2, 4), "cache": "40%"},
    "distdgl": {"batch": 9, "fanout": (3, 2, 4)},
}


LOADERS = [("dgl", 0), ("pagraph", 1), ("distdgl", 3), ("distdgl", 0), ("pagraph", 0)]


@pytest.mark.parametrize(("method", "which"), mostly(LOADERS, SHUFFLED_OR_NOT, (0, 1, 3)))
def test_loaders(crew: Crew, case: Case, options: MakeOptions, method: str, which: int) -> None:
    model = MODELS[which]
    requested = options(method, SHUFFLED_OR_NOT[method], workers=WORKERS, seed=4, **model)
    content = crew.run(WORKERS, trained, requested)
    training = np.flatnonzero(case.problem.train.numpy())
    pools: Any = shuffled_pools(training, WORKERS, 4)
    if method == "distdgl":
        pools = own_pools(training, case.owners(WORKERS).owner, WORKERS, 4)
    if method == "pagraph":
        pools = training_parts(case.graph, training_order(training, 4), WORKERS, requested.layers).training
    draws = NeighbourDraws(case.graph, pools, 9, (3, 2, 4), (), 4)
    rules = Rules(drawn_factors(case.graph, (3, 2, 4)), whole_degrees(case.graph))
    descent, first = Training(10, requested.lr), params_of(content[0].weights[0])
    wanted = batched(case.graph, case.problem, model_of(requested, case), first, descent, draws, WORKERS, rules)
    equal(content, wanted, case)


@pytest.mark.parametrize("model", MODELS[:3], ids=lambda model: "-".join(model.values()))
def test_pagraph_with_its_input_summed_before(
    crew: Crew, case: Case, options: MakeOptions, model: dict[str, Any]
) -> None:
    knobs = {"batch": 9, "fanout": (3, 2, 4), "cache": "40%", "preprocess": "yes"}
    requested = options("pagraph", knobs, workers=WORKERS, seed=4, **model)
    content = crew.run(WORKERS, trained, requested)
    training = training_order(np.flatnonzero(case.problem.train.numpy()), 4)
    pools = training_parts(case.graph, training, WORKERS, requested.layers).training
    draws = NeighbourDraws(case.graph, pools, 9, (2, 4), (), 4, 1)
    rules = Rules(drawn_factors(case.graph, (3, 2, 4)), whole_degrees(case.graph), ready=1)
    descent, first = Training(10, requested.lr), params_of(content[0].weights[0])
    assert ("layers.0.linear_neigh.bias" in first) is False, "the first layer has one bias"
    wanted = batched(case.graph, case.problem, model_of(requested, case), first, descent, draws, WORKERS, rules)
    equal(content, wanted, case, summed=True)


@pytest.fixture(scope="module")
def plain(crew: Crew, options: MakeOptions) -> list[Batches]:
    """A run without a cache that loads a batch when it is needed."""
    knobs = {"batch": 9, "fanout": (3, 2, 4), "cache": "0%", "queue": 1}
    return crew.run(2, trained, options("pagraph", knobs, workers=2, iterations=6))


@pytest.mark.parametrize(
    ("cache", "queue"), mostly([("0%", 4), ("20%", 1), ("auto", 4), ("20%", 4)], ("0%", "20%", "auto"), (1, 4))
)
def test_neither_cache_nor_queue_changes_a_number(
    crew: Crew, options: MakeOptions, plain: list[Batches], cache: str, queue: int
) -> None:
    knobs = {"batch": 9, "fanout": (3, 2, 4), "cache": cache, "queue": queue}
    content = crew.run(2, trained, options("pagraph", knobs, workers=2, iterations=6, record=True))
    assert content[0].losses == plain[0].losses
    for one, other in zip(content, plain, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one.rows, other.rows, strict=True))
        shares = [hits / nodes.size for hits, nodes in zip(one.hits, one.nodes, strict=True)]
        if cache == "20%":
            assert all(0.2 < share < 1.0 for share in shares), "rows of high degree are wanted more often"
        else:
            assert set(shares) == {0.0 if cache == "0%" else 1.0}
        assert any(span.kind is OpKind.LOOKUP for span in one.spans) == (cache != "0%")
    assert content[0].sent == {}


def test_batches_are_loaded_while_one_is_trained(crew: Crew, options: MakeOptions) -> None:
    """The next batch's rows are there before the step of this one; in turn, not before it has begun."""
    fields: dict[str, Any] = {"workers": 1, "iterations": 6, "record": True}
    knobs = {"batch": 20, "fanout": (5, 5, 5)}
    for method, more, ahead in (("pagraph", {"queue": 2, "cache": "0%"}, 2), ("dgl", {}, 0)):
        (content,) = crew.run(1, trained, options(method, knobs | more, **fields))
        begun = {span.iteration: span.start_s for span in content.spans if span.kind is OpKind.GATHER}
        stepped = {span.iteration: span.end_s for span in content.spans if span.kind is OpKind.STEP}
        for t in range(1, 6):
            before = t - ahead - 1
            if ahead:
                assert before < 0 or begun[t] > stepped[before], "no more than the queue holds"
            else:
                assert begun[t] > stepped[t - 1]


SUBGRAPH_MODELS = [MODELS[0], *MODELS[2:]]


def within(case: Case) -> Rules:
    """Weights by the degrees within the sub-graph."""
    nodes = case.graph.nodes
    return Rules(
        lambda index, rows, columns: np.ones(rows.size),
        lambda rows: np.bincount(rows, minlength=nodes).astype(np.float64),
    )


def met(case: Case, draws: WalkDraws, coverage: int, workers: int) -> Rules:
    """Weights and shares by how often sub-graphs met nodes and pairs of them, counted one by one."""
    nodes: Counter[int] = Counter()
    pairs: Counter[tuple[int, int]] = Counter()
    number = 0
    for batch in draws.samples(coverage * case.graph.nodes):
        number += 1
        inside = set(batch.levels[0].tolist())
        nodes.update(inside)
        pairs.update((v, int(u)) for v in inside for u in neighbours_of(case, v) if int(u) in inside)
    training = int(case.problem.train.sum())
    shares = np.array([number / (max(1, nodes[v]) * training * workers) for v in range(case.graph.nodes)])

    def factors(index: int, rows: IntArray, columns: IntArray) -> FloatArray:
        ends = zip(rows.tolist(), columns.tolist(), strict=True)
        return np.array([max(1, nodes[v]) / max(1, pairs[v, u]) for v, u in ends])

    return Rules(factors, whole_degrees(case.graph), shares)


def neighbours_of(case: Case, node: int) -> IntArray:
    return case.graph.indices[case.graph.indptr[node] : case.graph.indptr[node + 1]].astype(np.int64)


SUBGRAPHS = [
    pytest.param(method, model, id="-".join([method, *map(str, model.values())]))
    for method in ("clustergcn", "graphsaint")
    for model in SUBGRAPH_MODELS
]


@pytest.mark.parametrize(("method", "model"), SUBGRAPHS)
def test_subgraphs(crew: Crew, case: Case, options: MakeOptions, method: str, model: dict[str, Any]) -> None:
    requested = options(method, CASES[method], workers=WORKERS, seed=4, **model)
    content = crew.run(WORKERS, trained, requested)
    layers, seed = requested.layers, requested.seed
    if method == "clustergcn":
        draws: BatchDraws = ClusterDraws(case.graph, 0.3, layers, WORKERS, seed, requested.partition_seed)
        rules = within(case)
    else:
        draws = walks = WalkDraws(case.graph, 0.3, layers, WORKERS, seed)
        rules = met(case, walks, 30, WORKERS)
    training, first = Training(10, requested.lr), params_of(content[0].weights[0])
    wanted = batched(case.graph, case.problem, model_of(requested, case), first, training, draws, WORKERS, rules)
    equal(content, wanted, case)
