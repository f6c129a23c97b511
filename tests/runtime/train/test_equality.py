"""Full-graph training on any number of workers equals one process: outputs, every gradient, every loss."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

import numpy as np
import pytest

from gcnsim.core.ids import AnyArray
from tests.runtime.conftest import Case, MakeOptions, model_of, mostly, params_of
from tests.runtime.crew import Crew
from tests.runtime.jobs import RankRecord, trained
from tests.runtime.reference.training import Training, single

TIGHT = 1e-9
"""Relative, in float64: far inside the 1e-5 that is promised."""


Alone = Callable[[dict[str, object]], list[RankRecord]]


def close(found: AnyArray, wanted: AnyArray, what: str, bound: float = TIGHT) -> None:
    scale = max(float(np.abs(wanted).max(initial=0.0)), 1e-12)
    worst = float(np.abs(np.asarray(found) - np.asarray(wanted)).max(initial=0.0)) / scale
    assert worst <= bound, f"{what}: {worst:.3g} off"


def whole(rank_records: list[RankRecord], nodes: int) -> AnyArray:
    """Logits of all nodes from those of each rank."""
    result = np.full((nodes, rank_records[0].logits.shape[1]), np.nan)
    for rank in rank_records:
        result[rank.inner] = rank.logits
    return result


def same_run(rank_records: list[RankRecord], other: list[RankRecord], nodes: int, bound: float = TIGHT) -> None:
    """Losses, gradients, weights and outputs of two runs."""
    close(np.array(rank_records[0].losses), np.array(other[0].losses), "losses", bound)
    for t, (mine, theirs) in enumerate(zip(rank_records[0].gradients, other[0].gradients, strict=True)):
        for name in theirs:
            close(mine[name], theirs[name], f"gradient of {name} at {t}", bound)
    for name, weight in other[0].weights[-1].items():
        close(rank_records[0].weights[-1][name], weight, name, bound)
    close(whole(rank_records, nodes), whole(other, nodes), "outputs", bound)


MODELS: dict[str, dict[str, object]] = {
    "gcn": {"model": "gcn"},
    "gcn-norm": {"model": "gcn", "norm": "layer", "bias": False},
    "sage": {"model": "graphsage"},
    "sage-self": {"model": "graphsage", "sage_mean": "with-self", "norm": "layer"},
    "gat": {"model": "gat", "heads": 2},
}


@pytest.mark.parametrize("name", [name for name in MODELS if name != "gcn-norm"])
def test_one_worker_is_the_plain_reference(crew: Crew, case: Case, options: MakeOptions, name: str) -> None:
    requested = options(workers=1, **MODELS[name])
    content = crew.run(1, trained, requested)[0]
    wanted = single(
        case.graph,
        case.problem,
        model_of(requested, case),
        params_of(content.weights[0]),
        Training(10, requested.lr, "adam"),
    )
    close(np.array(content.losses), np.array(wanted.losses), "losses")
    for t in range(10):
        for name, gradient in wanted.gradients[t].items():
            close(content.gradients[t][name], gradient.numpy(), f"gradient of {name} at {t}")


@pytest.fixture(scope="module")
def alone(crew: Crew, options: MakeOptions) -> Alone:
    """The run on one worker, which has nothing to cut or to overlap: once for each model."""
    found: dict[str, list[RankRecord]] = {}

    def run(model: dict[str, object]) -> list[RankRecord]:
        key = repr(sorted(model.items()))
        if key not in found:
            found[key] = crew.run(1, trained, options(workers=1, **model))
        return found[key]

    return run


CUTS = [("random", "none", 2), ("random", "central", 3), ("metis", "none", 3), ("metis", "central", 4)]
"""Partition, overlap and number of workers."""

OFTEN = [("gcn", *cut) for cut in CUTS]
OFTEN += [
    (name, *cut)
    for index, name in enumerate(MODELS)
    if name != "gcn"
    for cut in (CUTS[::3] if index % 2 else CUTS[1:3])
]
"""With each model each partition, both overlaps and two numbers of workers."""


@pytest.mark.parametrize(
    ("name", "cut", "overlap", "workers"),
    mostly(OFTEN, MODELS, ("random", "metis"), ("none", "central"), (2, 3, 4)),
)
def test_full_graph_on_many_workers_equals_one(
    crew: Crew,
    case: Case,
    options: MakeOptions,
    alone: Alone,
    name: str,
    cut: str,
    overlap: str,
    workers: int,
) -> None:
    requested = options(workers=workers, partition_method=cut, overlap=overlap, **MODELS[name])
    same_run(crew.run(workers, trained, requested), alone(MODELS[name]), case.graph.nodes)


def test_a_gcn_whose_layer_0_is_summed_once_is_the_same(crew: Crew, case: Case, options: MakeOptions) -> None:
    plain = crew.run(3, trained, options(workers=3))
    once = crew.run(3, trained, options(workers=3, preaggregate=True))
    same_run(once, plain, case.graph.nodes)
    assert all(0 not in layers for layers in once[0].used)


def test_graphsage_summed_once_has_one_map_of_the_row_and_its_mean(
    crew: Crew, case: Case, options: MakeOptions
) -> None:
    requested = options(workers=3, model="graphsage", preaggregate=True)
    content = crew.run(3, trained, requested)
    wanted = single(
        case.graph,
        case.problem,
        model_of(requested, case),
        params_of(content[0].weights[0]),
        Training(10, requested.lr),
    )
    close(np.array(content[0].losses), np.array(wanted.losses), "losses")
    for t, gradients in enumerate(wanted.gradients):
        assert gradients.keys() == content[0].gradients[t].keys()
        for name, gradient in gradients.items():
            close(content[0].gradients[t][name], gradient.numpy(), f"gradient of {name} at {t}")
    assert "layers.0.linear_neigh.bias" not in content[0].weights[0]
    assert "layers.1.linear_neigh.bias" in content[0].weights[0]
    assert all(0 not in layers for layers in content[0].used)


def test_sgd_and_weight_decay(crew: Crew, case: Case, options: MakeOptions) -> None:
    requested = options(workers=2, optimizer="sgd", lr=0.3, weight_decay=0.01)
    content = crew.run(2, trained, requested)[0]
    training = Training(10, 0.3, "sgd", 0.01)
    wanted = single(case.graph, case.problem, model_of(requested, case), params_of(content.weights[0]), training)
    close(np.array(content.losses), np.array(wanted.losses), "losses")


SUMMED: list[tuple[str, dict[str, object], str, float]] = [
    *(("full-graph", {}, model, TIGHT) for model in ("gcn", "graphsage", "gat")),
    ("psc-gcn", {"tau": 1, "epsilon": 0.3, "refresh": 3}, "gcn", 1e-6),
    ("psc-gcn", {"tau": 1, "epsilon": 0.3, "estimator": "mean", "sampler": "uniform"}, "gcn", 1e-6),
    ("bns-gcn", {"rate": 0.4}, "gcn", 1e-6),
]


@pytest.mark.parametrize(("method", "knobs", "model", "bound"), SUMMED, ids=str)
def test_sums_by_other_kernels_equal_plain_ones(
    crew: Crew, case: Case, options: MakeOptions, method: str, knobs: dict[str, object], model: str, bound: float
) -> None:
    plain = crew.run(2, trained, options(method, knobs, workers=2, model=model))
    for name in ("numba", *(["dgl"] if find_spec("dgl") else [])):
        content = crew.run(2, trained, options(method, knobs, workers=2, model=model, aggregator=name))
        same_run(content, plain, case.graph.nodes, bound)
