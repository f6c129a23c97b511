"""On a GPU one worker trains the same numbers as on a CPU, with every method and every kind of layer."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from runtime.methods import METHODS
from runtime.methods.batches.stores import CachedStore
from runtime.methods.batches.worker import BatchWorker
from runtime.train.reduce import LocalSums
from tests.runtime.batch_jobs import CASES as BATCHES
from tests.runtime.conftest import MakeOptions
from tests.runtime.cuda.cuda_jobs import ALONE, followed, same
from tests.runtime.jobs import ready_at

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

TIGHT, DRAWN = 1e-9, 1e-6
"""Relative, in float64. Probabilities of drawn edges are float32."""

KNOBS: dict[str, dict[str, Any]] = {
    **{name: {} for name in METHODS},
    **BATCHES,
    "psc-gcn": {"tau": 2, "epsilon": 0.4, "refresh": 3},
}
del KNOBS["cagnet-1.5d"]  # stores each block twice

MODELS: dict[str, dict[str, Any]] = {
    "gcn-norm": {"norm": "layer", "bias": False},
    "gcn-once": {"preaggregate": True},
    "gcn-sgd": {"optimizer": "sgd", "lr": 0.3, "weight_decay": 0.01},
    "sage": {"model": "graphsage"},
    "sage-self": {"model": "graphsage", "sage_mean": "with-self"},
    "sage-once": {"model": "graphsage", "preaggregate": True},
    "gat": {"model": "gat", "heads": 2},
    "nccl": {"backend": "nccl"},
}
ONE_LAYER: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("psc-gcn", {"tau": 1, "epsilon": 0.3, "refresh": 3}, {"model": "gat", "heads": 2}),
    ("psc-gcn", {"tau": 1, "epsilon": 0.3, "estimator": "mean"}, {"model": "graphsage"}),
    ("dgl", BATCHES["dgl"], {"model": "gat", "heads": 2}),
    ("graphsage", BATCHES["graphsage"], {"model": "graphsage"}),
    ("pagraph", BATCHES["pagraph"] | {"preprocess": "yes"}, {"model": "graphsage"}),
    ("pagraph", BATCHES["pagraph"] | {"cache": "auto"}, {}),
]
RUNS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [(name, knobs, {}) for name, knobs in KNOBS.items()]
RUNS += [("full-graph", {}, fields) for fields in MODELS.values()]
RUNS += ONE_LAYER


def on_gpu(fields: dict[str, Any]) -> dict[str, Any]:
    return {"workers": 1, "record": True, **fields, "device": "cuda"}


@pytest.mark.parametrize(("method", "knobs", "fields"), RUNS, ids=str)
def test_losses_and_weights_are_those_of_a_cpu(
    options: MakeOptions, method: str, knobs: dict[str, Any], fields: dict[str, Any]
) -> None:
    if method == "clustergcn" and find_spec("pymetis") is None:
        pytest.skip("needs pymetis")
    plain = on_gpu(fields) | {"device": "cpu", "backend": "auto"}
    found = followed(ALONE, options(method, knobs, **on_gpu(fields)))
    same([found], [followed(ALONE, options(method, knobs, **plain))], DRAWN if method == "psc-gcn" else TIGHT)


def test_float32_is_close(options: MakeOptions) -> None:
    plain = followed(ALONE, options(workers=1, dtype="float32", hidden=64))
    found = followed(ALONE, options(workers=1, dtype="float32", hidden=64, device="cuda"))
    assert found.losses[0] == pytest.approx(plain.losses[0], rel=2e-6), "products are rounded to tensor floats"
    assert np.allclose(found.losses, plain.losses, rtol=1e-2)


@pytest.mark.parametrize("order", ["exchange-first", "dropout-first"])
def test_a_seed_gives_the_same_dropout(options: MakeOptions, order: str) -> None:
    fields = on_gpu({"dropout": 0.4, "dropout_order": order})
    first, second = (followed(ALONE, options(**fields)) for _ in range(2))
    same([first], [second], TIGHT)
    assert first.losses != followed(ALONE, options(**(fields | {"dropout": 0.0}))).losses


def test_a_cache_of_all_that_fits_is_filled_after_the_first_batch(options: MakeOptions) -> None:
    knobs = BATCHES["pagraph"] | {"cache": "auto"}
    ready = ready_at(ALONE, options("pagraph", knobs, **on_gpu({})))
    assert isinstance(ready.method, BatchWorker)
    store = ready.method.source.store
    assert isinstance(store, CachedStore)
    held = []
    for t in range(3):
        ready.trainer.iteration(t, LocalSums())
        held.append(int(store.held().sum()))
    ready.method.drain()
    ready.method.close()
    assert held[0] == 0
    assert held[1] == held[2] == store._rows.shape[0]
