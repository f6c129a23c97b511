"""The same equalities on amazon_cs (13,752 nodes, 245,861 edges), where the folder of real graphs is at hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gcnsim.graph import load_graph
from runtime.data import load_dataset
from runtime.options import Options
from tests.runtime.conftest import Case, MakeOptions, params_of
from tests.runtime.crew import Crew
from tests.runtime.jobs import trained
from tests.runtime.methods.test_methods import equals_reference
from tests.runtime.reference.blocks import Stale, blocks
from tests.runtime.reference.bns import bns
from tests.runtime.reference.drawn import Rule
from tests.runtime.reference.model import Model
from tests.runtime.reference.stale import Lag, stale
from tests.runtime.reference.training import Problem, Training
from tests.runtime.train.test_equality import same_run

WIDTH, HIDDEN = 16, 8


@pytest.fixture(scope="module")
def amazon(data_dir: Path) -> Case:
    path = data_dir / "amazon_cs.npz"
    if not path.is_file():
        pytest.skip("GCNSIM_DATA holds no amazon_cs.npz")
    dataset = load_dataset(Options(graph=str(path), feature_dim=WIDTH))
    x = torch.from_numpy(dataset.features.rows(np.arange(dataset.graph.nodes)).astype(np.float64))
    problem = Problem(x, torch.from_numpy(dataset.labels.astype(np.int64)), torch.from_numpy(dataset.train.copy()))
    return Case(path, load_graph(path), problem)


def options_for(options: MakeOptions, amazon: Case, method: str, knobs: dict[str, Any], **fields: Any) -> Options:
    shape = {"graph": str(amazon.path), "feature_dim": WIDTH, "hidden": HIDDEN, "layers": 2, "iterations": 4}
    return options(method, knobs, workers=3, partition_method="metis", **(shape | fields))


@pytest.mark.parametrize("model", ["gcn", "graphsage", "gat"])
def test_full_graph_on_three_workers_equals_one(crew: Crew, amazon: Case, options: MakeOptions, model: str) -> None:
    many = crew.run(3, trained, options_for(options, amazon, "full-graph", {}, model=model))
    fields = {"graph": str(amazon.path), "feature_dim": WIDTH, "hidden": HIDDEN, "layers": 2, "iterations": 4}
    alone = crew.run(1, trained, options(workers=1, model=model, **fields))
    same_run(many, alone, amazon.graph.nodes)


METHODS: list[tuple[str, dict[str, Any]]] = [
    ("pipegcn", {}),
    ("psc-gcn", {"tau": 1, "epsilon": 0.1, "refresh": 2}),
    ("psc-gcn", {"tau": 2, "epsilon": 0.3, "refresh": 2, "cache": "30%"}),
    ("bns-gcn", {"rate": 0.1}),
    ("cagnet-1d", {}),
    ("sancus", {"threshold": 1, "warm_iterations": 1}),
]


SEEN_ON_SMALL_ONES = METHODS[0], METHODS[1], METHODS[4]
"""The others differ more from full-graph training."""


@pytest.mark.parametrize(
    ("method", "knobs"),
    [pytest.param(*method, marks=[pytest.mark.slow] * (method in SEEN_ON_SMALL_ONES)) for method in METHODS],
    ids=str,
)
def test_methods_equal_their_references(
    crew: Crew, amazon: Case, options: MakeOptions, method: str, knobs: dict[str, Any]
) -> None:
    run = options_for(options, amazon, method, knobs)
    content = crew.run(3, trained, run)
    parts = amazon.parts(3, "metis")
    model, params = Model("gcn", (WIDTH, HIDDEN, 10)), params_of(content[0].weights[0])
    training = Training(run.iterations, run.lr)
    if method == "bns-gcn":
        wanted = bns(parts, amazon.problem, model, params, training, p=0.1, scale="rate", seed=run.seed)
    elif method in ("cagnet-1d", "sancus"):
        stale_test = Stale("adaptive", knobs["threshold"], knobs["warm_iterations"]) if knobs else Stale()
        wanted = blocks(amazon.graph, parts, amazon.problem, model, params, training, stale_test)
    else:
        rule = Rule(knobs["epsilon"], "vr", knobs["refresh"]) if method == "psc-gcn" else None
        lag = Lag(int(knobs.get("tau", 1)))
        wanted = stale(parts, amazon.problem, model, params, training, lag, rule, seed=run.seed)
    equals_reference(content, wanted, parts)


def test_psc_gcn_sends_the_bytes_that_the_inclusion_probabilities_predict(
    crew: Crew, amazon: Case, options: MakeOptions
) -> None:
    knobs = {"tau": 2, "epsilon": 0.1}
    run = options_for(options, amazon, "psc-gcn", knobs, iterations=30, dtype="float32")
    content = crew.run(3, trained, run)
    sent = sum(n for rank in content for (_, kind), n in rank.sent.items() if kind in ("rows", "gradients"))
    widths = WIDTH + HIDDEN + HIDDEN  # rows of both layers, gradients of the second
    wanted = sum(rank.expected_rows for rank in content) * widths * 4 * run.iterations
    assert abs(sent / wanted - 1.0) < 0.02
