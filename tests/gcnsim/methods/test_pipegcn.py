"""`pipegcn` fixes staleness and rate, whatever the facts say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from gcnsim.timeline import OpKind
from tests.cases import Case, method


def test_tau_is_(facts: Callable[..., Case]) -> None:
    one, other = (method("pipegcn")(facts(tau=tau, sampled=sampled)) for tau, sampled in ((5, True), (1, False)))
    assert one.ops == other.ops
    np.testing.assert_array_equal(one.demand, other.demand)
    reads = [op for op in one.ops if op.kind is OpKind.SCATTER]
    assert {lag for op in reads for _, lag in op.after} == {1}
    assert not any(op.kind in (OpKind.SAMPLE, OpKind.INDEX, OpKind.LOOKUP) for op in one.ops)
