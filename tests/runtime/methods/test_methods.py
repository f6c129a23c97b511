"""Every asynchronous or sampled method equals its slow, plain reference; and the identities between methods."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import AnyArray
from gcnsim.graph.parts import Part
from tests.runtime.conftest import Case, MakeOptions, model_of, mostly, params_of
from tests.runtime.crew import Crew
from tests.runtime.jobs import RankRecord, final_weights, trained
from tests.runtime.reference.bns import bns
from tests.runtime.reference.drawn import Rule
from tests.runtime.reference.stale import Lag, stale
from tests.runtime.reference.training import History, Training
from tests.runtime.session_jobs import graphs_held, ran
from tests.runtime.train.test_equality import close, same_run

BOUND = 1e-6
"""Relative, float64: probabilities are float32 in both, sums run in another order."""


def equals_reference(
    rank_records: list[RankRecord], wanted: History, parts: tuple[Part, ...], bound: float = BOUND
) -> None:
    close(np.array(rank_records[0].losses), np.array(wanted.losses), "losses", bound)
    for t, weights in enumerate(rank_records[0].weights):
        for name, weight in wanted.weights[t].items():
            close(weights[name], weight.numpy(), f"{name} before step {t}", bound)
    for rank, part in enumerate(parts):
        for t, layers in enumerate(rank_records[rank].used):
            for layer, (index, rows) in layers.items():
                used = wanted.used[t][rank][layer]
                order = np.argsort(index)
                assert np.array_equal(index[order], np.asarray(used.index)), f"rows of rank {rank}, {t}, {layer}"
                close(rows[order], used.rows.numpy(), f"rows of rank {rank}, iteration {t}, layer {layer}", bound)
        assert part.rank == rank


ALL_MODELS = ("gcn", "graphsage", "gat")
VARIANTS = [("gcn", ""), ("gcn", "-g"), ("gcn", "-f"), ("gcn", "-gf")]
VARIANTS += [("graphsage", "-gf"), ("gat", "-gf")]
"""Every variant and every model."""


@pytest.mark.parametrize(("model", "variant"), mostly(VARIANTS, ALL_MODELS, ("", "-g", "-f", "-gf")))
def test_pipegcn(crew: Crew, case: Case, options: MakeOptions, variant: str, model: str) -> None:
    knobs = {"gamma": 0.7} if variant else {}
    requested = options(f"pipegcn{variant}", knobs, workers=3, model=model)
    content = crew.run(3, trained, requested)
    lag = Lag(1, variant.removeprefix("-"), 0.7)
    parts = case.parts(3)
    params = params_of(content[0].weights[0])
    wanted = stale(parts, case.problem, model_of(requested, case), params, Training(10, requested.lr), lag)
    equals_reference(content, wanted, parts)


PSC: list[dict[str, Any]] = [
    {"tau": 0, "epsilon": 0.4},
    {"tau": 1, "epsilon": 0.4},
    {"tau": 2, "epsilon": 0.4},
    {"tau": 3, "epsilon": 0.4},
    {"tau": 2, "epsilon": 0.4, "sampler": "uniform"},
    {"tau": 1, "epsilon": 0.1, "estimator": "self-normalised"},
    {"tau": 1, "epsilon": 0.1, "estimator": "mean"},
    {"tau": 2, "epsilon": 0.4, "estimator": "mean", "sampler": "uniform"},
    {"tau": 2, "epsilon": 1.0, "estimator": "mean"},
    {"tau": 2, "epsilon": 1.0},
    {"tau": 3, "epsilon": 1.0, "cold_start": "features"},
    {"tau": 2, "epsilon": 0.3, "cold_start": "features", "refresh": 1},
]


# What a model reads of a drawn graph does not depend on how its rows age: most combinations are left to the slow run.
OFTEN = {
    "gcn": PSC,
    "graphsage": [PSC[2], PSC[4], PSC[5], PSC[6], PSC[8], PSC[11]],
    "gat": [PSC[2], PSC[11]],
}
DRAWN_MODELS = [
    pytest.param(
        knobs,
        model,
        id=f"{model} {knobs}",
        marks=[] if knobs in OFTEN[model] else [pytest.mark.slow],
    )
    for model in ALL_MODELS
    for knobs in PSC
    if model in ("gcn", "graphsage") or "estimator" not in knobs
]


@pytest.mark.parametrize(("knobs", "model"), DRAWN_MODELS)
def test_psc_gcn(crew: Crew, case: Case, options: MakeOptions, knobs: dict[str, Any], model: str) -> None:
    knobs = {"refresh": 3} | knobs
    requested = options("psc-gcn", knobs, workers=3, heads=2 if model == "gat" else 1, seed=4, model=model)
    content = crew.run(3, trained, requested)
    parts = case.parts(3)
    lag = Lag(knobs["tau"], features_first=knobs.get("cold_start") == "features")
    rule = Rule(knobs["epsilon"], knobs.get("sampler", "vr"), knobs["refresh"], str(knobs.get("estimator", "inverse")))
    params = params_of(content[0].weights[0])
    wanted = stale(
        parts, case.problem, model_of(requested, case), params, Training(10, requested.lr), lag, rule, seed=4
    )
    equals_reference(content, wanted, parts)
    assert len(content[0].norms) == len(wanted.norms)
    for t, norms in zip(wanted.norms, zip(*(rank.norms for rank in content), strict=True), strict=True):
        for rank, part in enumerate(parts):
            close(norms[rank], wanted.norms[t][part.inner], f"norms of rank {rank} at {t}", BOUND)


def test_the_mean_with_self_of_drawn_graphs(crew: Crew, case: Case, options: MakeOptions) -> None:
    """As released code has it: 1/(k + 1) for the node and each of its k drawn neighbours, in every gradient too."""
    knobs = {"tau": 1, "epsilon": 0.3, "estimator": "mean", "refresh": 3}
    requested = options("psc-gcn", knobs, workers=3, model="graphsage", sage_mean="with-self", seed=4)
    content = crew.run(3, trained, requested)
    parts, params = case.parts(3), params_of(content[0].weights[0])
    rule, training = Rule(0.3, "vr", 3, "mean"), Training(10, requested.lr)
    wanted = stale(parts, case.problem, model_of(requested, case), params, training, Lag(1), rule, seed=4)
    equals_reference(content, wanted, parts)


BNS = [(0.0, "rate", "gcn"), (0.35, "rate", "gcn"), (0.35, "ratio", "gcn"), (1.0, "ratio", "gcn")]
BNS += [(0.35, "ratio", "graphsage"), (0.0, "ratio", "graphsage"), (1.0, "rate", "graphsage")]
BNS += [(0.35, "ratio", "gat"), (0.0, "rate", "gat")]
"""Every rate with every scale, and every model."""


@pytest.mark.parametrize(("rate", "scale", "model"), mostly(BNS, (0.0, 0.35, 1.0), ("rate", "ratio"), ALL_MODELS))
def test_bns_gcn(crew: Crew, case: Case, options: MakeOptions, rate: float, scale: str, model: str) -> None:
    knobs = {"rate": rate, "boundary_scale": scale}
    requested = options("bns-gcn", knobs, workers=3, seed=9, model=model)
    content = crew.run(3, trained, requested)
    parts = case.parts(3)
    kind = "rate" if scale == "rate" else "ratio"
    params = params_of(content[0].weights[0])
    training = Training(10, requested.lr)
    wanted = bns(parts, case.problem, model_of(requested, case), params, training, p=rate, scale=kind, seed=9)
    equals_reference(content, wanted, parts)
    if not rate:
        assert content[0].sent == {}


def test_psc_gcn_at_tau_1_and_epsilon_1_is_pipegcn(crew: Crew, options: MakeOptions) -> None:
    pipe = crew.run(3, trained, options("pipegcn", workers=3))
    psc = crew.run(3, trained, options("psc-gcn", {"tau": 1, "epsilon": 1.0}, workers=3))
    assert pipe[0].losses == psc[0].losses
    assert all(np.array_equal(pipe[0].weights[-1][name], weight) for name, weight in psc[0].weights[-1].items())


@pytest.mark.parametrize(
    ("method", "knobs"), [("psc-gcn", {"tau": 0, "epsilon": 1.0}), ("bns-gcn", {"rate": 1.0})], ids=["psc", "bns"]
)
def test_the_limits_are_full_graph_training(
    crew: Crew, case: Case, options: MakeOptions, method: str, knobs: dict[str, Any]
) -> None:
    full = crew.run(3, trained, options(workers=3))
    same_run(crew.run(3, trained, options(method, knobs, workers=3)), full, case.graph.nodes)


@pytest.mark.parametrize("tau", [2, 3])
def test_rows_are_exactly_tau_iterations_old(crew: Crew, options: MakeOptions, tau: int) -> None:
    content = crew.run(3, trained, options("psc-gcn", {"tau": tau, "epsilon": 1.0}, workers=3))
    once = crew.run(3, trained, options("psc-gcn", {"tau": 1, "epsilon": 1.0}, workers=3))
    nodes = sum(rank.inner.size for rank in content)
    for rank in content:
        for t, layers in enumerate(rank.used):
            for layer, (index, rows) in layers.items():
                if t < tau:
                    assert not rows.any()
                    continue
                owners = np.empty((nodes, rows.shape[1]))
                for other in content:
                    owners[other.inner] = other.inputs[t - tau][layer]
                assert np.array_equal(rows, owners[rank.boundary[index]]), f"iteration {t}, layer {layer}"
    # The loss of iteration tau is the first that can differ: until then all rows were zeros, then tau 1 saw some.
    assert content[0].losses[0] == once[0].losses[0]
    assert abs(content[0].losses[-1] - once[0].losses[-1]) > 1e-6


@pytest.fixture(scope="module")
def uncached(crew: Crew, options: MakeOptions) -> Callable[[str, float], list[RankRecord]]:
    """Runs without a cache, by sampler and epsilon; each is trained once, whatever policy it is compared with."""

    @cache
    def run(sampler: str, epsilon: float) -> list[RankRecord]:
        return crew.run(3, trained, options("psc-gcn", DRAWN | {"sampler": sampler, "epsilon": epsilon}, workers=3))

    return run


DRAWN: dict[str, Any] = {"tau": 2, "refresh": 2}


CACHES = [(0.3, "vr", "inclusion"), (0.3, "uniform", "degree"), (1.0, "uniform", "random"), (1.0, "vr", "degree")]
CACHES += [(0.3, "vr", "random"), (1.0, "uniform", "inclusion")]
"""Every pair of values."""


@pytest.mark.parametrize(
    ("epsilon", "sampler", "policy"), mostly(CACHES, (0.3, 1.0), ("vr", "uniform"), ("inclusion", "degree", "random"))
)
def test_a_cache_changes_no_number_and_every_row_is_its_owners(
    crew: Crew,
    options: MakeOptions,
    uncached: Callable[[str, float], list[RankRecord]],
    policy: str,
    sampler: str,
    epsilon: float,
) -> None:
    knobs = DRAWN | {"epsilon": epsilon, "sampler": sampler, "cache_policy": policy}
    plain = uncached(sampler, epsilon)
    held = crew.run(3, trained, options("psc-gcn", knobs | {"cache": "40%"}, workers=3))
    assert held[0].losses == plain[0].losses
    assert all(np.array_equal(held[0].weights[-1][name], weight) for name, weight in plain[0].weights[-1].items())
    rows_come_from_owners_and_caches(held, plain)


@pytest.mark.parametrize("epsilon", [0.3, 1.0])
def test_a_cache_changes_nothing_of_attention_but_the_order_of_its_rows(
    crew: Crew, options: MakeOptions, epsilon: float
) -> None:
    """The gradient of its map is a sum over the rows as they lie: those that the cache lacks come first."""
    knobs = DRAWN | {"epsilon": epsilon}
    plain, held = (
        crew.run(3, trained, options("psc-gcn", knobs | more, workers=3, model="gat", heads=2))
        for more in ({}, {"cache": "40%"})
    )
    close(np.array(held[0].losses), np.array(plain[0].losses), "losses")
    for name, weight in plain[0].weights[-1].items():
        close(held[0].weights[-1][name], weight, name)
    rows_come_from_owners_and_caches(held, plain)


def rows_come_from_owners_and_caches(held: list[RankRecord], plain: list[RankRecord]) -> None:
    """Rows of layer 0 are the owners'; a part of them is held, so fewer travel than in `plain`."""
    features: dict[int, AnyArray] = {}
    for rank in held:
        features |= dict(zip(rank.inner.tolist(), rank.inputs[0][0], strict=True))
        assert 0 < rank.asked[0] < rank.asked[1]
    for rank in held:
        for layers in rank.used[2:]:
            index, rows = layers[0]
            assert all(
                np.array_equal(features[int(node)], row) for node, row in zip(rank.boundary[index], rows, strict=True)
            )
    assert sum(sum(n for (_, kind), n in rank.sent.items() if kind == "rows") for rank in held) < sum(
        sum(n for (_, kind), n in rank.sent.items() if kind == "rows") for rank in plain
    )


REPLICAS = [("full-graph", {}), ("pipegcn-gf", {}), ("psc-gcn", {"tau": 2, "epsilon": 0.3}), ("bns-gcn", {})]


@pytest.mark.slow
@pytest.mark.parametrize(("method", "knobs"), REPLICAS, ids=[name for name, _ in REPLICAS])
def test_replicas_are_bitwise_equal_20_times(
    crew: Crew, options: MakeOptions, method: str, knobs: dict[str, Any]
) -> None:
    requested = options(method, knobs, workers=4, iterations=50, dtype="float32")
    for _ in range(20):
        assert len(set(crew.run(4, final_weights, requested))) == 1


def test_sampled_attention_at_epsilon_1_is_that_of_all_entries(crew: Crew, case: Case, options: MakeOptions) -> None:
    fields = {"workers": 3, "model": "gat", "heads": 2, "overlap": "none"}
    full = crew.run(3, trained, options(**fields))
    same_run(crew.run(3, trained, options("psc-gcn", {"tau": 0, "epsilon": 1.0}, **fields)), full, case.graph.nodes)


@pytest.mark.parametrize("estimator", ["self-normalised", "mean"])
def test_estimators_of_sums_are_refused_without_sums(options: MakeOptions, estimator: str) -> None:
    text = f"^--estimator: {estimator} with gat, which reads no weight of a drawn edge; allowed: unbiased$"
    with pytest.raises(ScenarioError, match=text):
        options("psc-gcn", {"estimator": estimator}, model="gat")


def test_graphs_drawn_ahead_are_drawn_again_from_a_checkpoint(crew: Crew, options: MakeOptions, tmp_path: Path) -> None:
    """Of tau iterations on either side of it, by the norms that were known when each was first drawn."""
    knobs = {"tau": 2, "epsilon": 0.3, "refresh": 3}
    requested = options("psc-gcn", knobs, iterations=8, record=True, checkpoint_every=4, out=str(tmp_path / "run"))
    whole = crew.run(2, ran, requested)
    saved = str(tmp_path / "run" / "checkpoints" / "000004")
    again = crew.run(2, ran, replace(requested, out=str(tmp_path / "again"), resume=saved))
    assert again[0].begun == 4
    held = crew.run(2, graphs_held, replace(requested, out=str(tmp_path / "held"), resume=saved))
    assert held == [[2, 3, 4, 5]] * 2, "none of those that a run draws at its beginning"
    assert [run.drawn for run in again] == [run.drawn for run in whole]
    assert {run.weights for run in again} == {run.weights for run in whole}
