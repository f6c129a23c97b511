"""`psc-gcn`: any staleness, sampled or not, with or without a cache."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gcnsim.timeline import OpKind
from tests.cases import Case, method


@pytest.mark.parametrize("tau", [0, 1, 2, 5])
def test_every_read_is_tau_iterations_behind_its_transfer(facts: Callable[..., Case], tau: int) -> None:
    schedule = method("psc-gcn")(facts(tau=tau, sampled=True))
    lags = {lag for op in schedule.ops if op.kind is OpKind.SCATTER for _, lag in op.after}
    assert lags == {tau}


def test_without_sampling_there_is_no_sampler_and_no_id(facts: Callable[..., Case]) -> None:
    schedule = method("psc-gcn")(facts(tau=2, sampled=False))
    assert not any(op.kind in (OpKind.SAMPLE, OpKind.INDEX) for op in schedule.ops)


def test_without_cached_rows_nothing_is_looked_up(facts: Callable[..., Case]) -> None:
    without, with_cache = (method("psc-gcn")(facts(tau=2, sampled=True, hits=hits)) for hits in (0.0, 0.5))
    assert not any(op.kind is OpKind.LOOKUP for op in without.ops)
    assert sum(op.kind is OpKind.LOOKUP for op in with_cache.ops) == 4
