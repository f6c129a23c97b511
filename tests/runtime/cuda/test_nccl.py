"""Rows and gradients by NCCL between two ranks that share a GPU, each of which takes the other for another host's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
import torch.distributed as dist

import tests.runtime.crew
from tests.runtime.conftest import MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.cuda.cuda_jobs import followed, same

pytestmark = [
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU"),
    pytest.mark.skipif(not dist.is_nccl_available(), reason="needs NCCL"),
]

PSC: dict[str, Any] = {"tau": 1, "epsilon": 0.3, "refresh": 2, "cache": "40%"}


@pytest.fixture(scope="module")
def pair() -> Iterator[Crew]:
    """Two ranks of their own: those of other tests must not end with an NCCL that aborts."""
    ranks = Crew(2)
    yield ranks
    ranks.close()


@pytest.mark.parametrize(
    ("method", "knobs", "bound"),
    [("full-graph", {}, 1e-9), ("pipegcn-gf", {}, 1e-9), ("psc-gcn", PSC, 1e-6), ("cagnet-1d", {}, 1e-9)],
    ids=str,
)
def test_two_ranks_train_what_gloo_trains(
    pair: Crew, options: MakeOptions, monkeypatch: pytest.MonkeyPatch, method: str, knobs: dict[str, Any], bound: float
) -> None:
    monkeypatch.setattr(tests.runtime.crew, "PATIENCE_S", 60.0)
    requested = options(method, knobs, workers=2, iterations=4, record=True, timeout=30.0, device="cuda")
    plain = pair.run(2, followed, requested)
    try:
        found = pair.run(2, followed, replace(requested, backend="nccl"), True)
    except AssertionError as error:
        if "Duplicate GPU" in str(error):
            pytest.skip("this NCCL lets no two ranks share a GPU")
        raise
    same(found, plain, bound)
