"""Dropout in both orders, with every method and model: the same bits again, and gradients of the masks used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gcnsim.timeline import OpKind
from runtime.exchange import DropoutConfig, IterationContext, StepBoundaries, Stopwatch
from runtime.model import Network, initialise
from runtime.record import Recorder
from tests.runtime.conftest import Case, MakeOptions, model_fields, mostly
from tests.runtime.crew import Crew
from tests.runtime.exchange.dense import builder
from tests.runtime.jobs import RankRecord, trained
from tests.runtime.reduce_jobs import probed
from tests.runtime.train.test_equality import same_run

RATE = 0.4
ORDERS = ["exchange-first", "dropout-first"]
MODELS = ["gcn", "graphsage", "pool", "gat"]
METHODS: list[tuple[str, dict[str, Any]]] = [
    ("full-graph", {}),
    ("pipegcn", {}),
    ("pipegcn-gf", {}),
    ("psc-gcn", {"tau": 2, "epsilon": 0.5, "refresh": 2}),
    ("psc-gcn", {"tau": 0, "epsilon": 0.5, "cache": "30%"}),
    ("bns-gcn", {"rate": 0.4}),
]
FIRST, SECOND = ORDERS
REPEATED = [(index, "gcn", ORDERS[index % 2]) for index in range(len(METHODS))]
REPEATED += [(0, "graphsage", SECOND), (2, "gat", SECOND), (3, "pool", FIRST), (4, "gat", FIRST), (5, "pool", SECOND)]
"""Every method, every model in both orders: a place in METHODS, a model and an order."""


@pytest.mark.parametrize(("place", "model", "order"), mostly(REPEATED, range(len(METHODS)), MODELS, ORDERS))
def test_a_repeated_run_gives_the_same_bits(
    crew: Crew, options: MakeOptions, place: int, model: str, order: str
) -> None:
    method, knobs = METHODS[place]
    fields = {"workers": 2, "dropout": RATE, "dropout_order": order, "iterations": 3, **model_fields(model)}
    requested = options(method, knobs, dtype="float32", norm="layer", **fields)
    first, again = (crew.run(2, trained, requested) for _ in range(2))
    assert first[0].losses == again[0].losses == first[1].losses
    for name, weight in first[0].weights[-1].items():
        assert np.array_equal(weight, again[0].weights[-1][name])
        assert np.array_equal(weight, first[1].weights[-1][name])
    assert all(np.isfinite(loss) for loss in first[0].losses)
    assert len(set(first[0].losses)) == 3


def sent_by_owners(rank_records: list[RankRecord], seed: int, t: int, layer: int, *, masked: bool) -> Tensor:
    """Rows H^(t,layer) of all nodes; masked: as their owners drop them."""
    width = rank_records[0].inputs[t][layer].shape[1]
    found = torch.full((sum(rank.inner.size for rank in rank_records), width), torch.nan, dtype=torch.float64)
    for n, rank in enumerate(rank_records):
        rows = torch.from_numpy(rank.inputs[t][layer])
        mask = DropoutConfig(RATE, True, seed, n).mask(rows, t, layer, "inner")
        found[torch.from_numpy(rank.inner)] = rows * mask if masked else rows
    return found


RECEIVED = [("full-graph", 0), ("pipegcn", 1), ("bns-gcn", 0)]
OWNERS = [(which, "gcn", order) for which in RECEIVED for order in ORDERS]
OWNERS += [(RECEIVED[0], "graphsage", SECOND), (RECEIVED[1], "pool", SECOND), (RECEIVED[2], "gat", SECOND)]
OWNERS += [(RECEIVED[0], "gat", FIRST)]


@pytest.mark.parametrize(("which", "model", "order"), mostly(OWNERS, RECEIVED, MODELS, ORDERS))
def test_rows_received_have_the_owner_s_zeros_only_when_dropout_comes_first(
    crew: Crew, options: MakeOptions, which: tuple[str, int], model: str, order: str
) -> None:
    method, tau = which
    requested = options(
        method, workers=3, **model_fields(model), dropout=RATE, dropout_order=order, iterations=3, seed=11
    )
    content = crew.run(3, trained, requested)
    for t in range(tau, 3):
        for layer in range(3):
            owners = sent_by_owners(content, 11, t - tau, layer, masked=order == "dropout-first")
            for rank in content:
                index, rows = rank.used[t][layer]
                assert np.array_equal(rows, owners[rank.boundary[index]].numpy()), f"iteration {t}, layer {layer}"
            if order == "dropout-first":
                assert float((owners == 0).double().mean()) > 0.5 * RATE


MASKED = [("gcn", "central"), ("gcn", "none"), ("graphsage", "central"), ("gat", "central")]
PROBED = [(MASKED[0], FIRST), (MASKED[1], SECOND), (MASKED[2], SECOND), (MASKED[3], FIRST)]


@pytest.mark.parametrize(("masked", "order"), mostly(PROBED, MASKED, ORDERS))
def test_gradients_across_workers_are_those_of_the_masks_used(
    crew: Crew, options: MakeOptions, masked: tuple[str, str], order: str
) -> None:
    """Central differences of the global loss, masks held fixed."""
    model, overlap = masked
    fields = {"model": model, "dropout": RATE, "dropout_order": order, "overlap": overlap, "optimizer": "sgd"}
    heads = 2 if model == "gat" else 1
    content = crew.run(3, probed, options(workers=3, lr=0.0, seed=2, heads=heads, **fields), 2)
    for rank in content:
        assert np.array_equal(rank.found, content[0].found)
    scale = np.abs(content[0].found).max()
    assert np.abs(content[0].found - content[0].numerical).max() < 1e-6 * scale
    assert np.count_nonzero(np.abs(content[0].found) > 1e-3 * scale) > 6


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("model", MODELS)
def test_numerical_gradients_of_one_worker(case: Case, options: MakeOptions, model: str, order: str) -> None:
    requested = options(workers=1, **model_fields(model), layers=2)
    part = case.parts(1)[0]
    network = Network(requested, 7, 4).double()
    initialise(network, 0)
    drawn = builder(part, "mean" if model in ("graphsage", "pool") else "symmetric").whole()
    recorder = Recorder(0, enabled=False)
    dropping = DropoutConfig(RATE, order == "dropout-first", 5, 0)
    chosen = torch.arange(0, 120, 40)

    def logits(rows: Tensor) -> Tensor:
        watch = Stopwatch(recorder, 3, OpKind.UPDATE)
        x = case.problem.features.index_copy(0, chosen, rows)
        tensor: Tensor = network(x, StepBoundaries(IterationContext(3, drawn, None, recorder, watch, dropping)))
        return tensor[:60].sum(0)

    rows = case.problem.features[chosen].clone().requires_grad_()
    assert torch.equal(logits(rows), logits(rows)), "masks are fixed"
    assert torch.autograd.gradcheck(logits, (rows,))


HARDLY = [("gcn", FIRST), ("gcn", SECOND), ("graphsage", FIRST), ("pool", SECOND), ("gat", FIRST)]


@pytest.mark.parametrize(("model", "order"), mostly(HARDLY, MODELS, ORDERS))
def test_hardly_any_dropout_is_none(crew: Crew, case: Case, options: MakeOptions, model: str, order: str) -> None:
    """A rate of 10^-13 drops nothing in so few draws, yet goes every way that dropout goes."""
    none = crew.run(3, trained, options(workers=3, dropout_order=order, **model_fields(model)))
    hardly = crew.run(3, trained, options(workers=3, **model_fields(model), dropout_order=order, dropout=1e-13))
    same_run(hardly, none, case.graph.nodes)


@pytest.mark.parametrize("model", ["gcn", "graphsage"])
def test_a_layer_0_summed_once_is_dropped_too(crew: Crew, options: MakeOptions, model: str) -> None:
    fields = {"model": model, "preaggregate": True, "iterations": 3}
    plain = crew.run(2, trained, options(workers=2, **fields))
    content = crew.run(2, trained, options(workers=2, dropout=RATE, **fields))
    assert content[0].losses[0] != plain[0].losses[0]
    assert content[0].losses == crew.run(2, trained, options(workers=2, dropout=RATE, **fields))[0].losses
