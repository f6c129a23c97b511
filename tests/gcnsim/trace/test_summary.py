from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcnsim.trace import record_trace, summarise


def test_summary_of_every_worker(small: Any) -> None:
    trace = record_trace(small.parts, small.owners, sampler="uniform", epsilon=0.3, iterations=50, seed=0)
    found = summarise(trace)
    assert [worker.rank for worker in found] == [0, 1, 2, 3]
    for worker, access in zip(found, trace.workers, strict=True):
        assert worker.boundary_nodes == access.boundary_nodes
        assert worker.rows == pytest.approx(access.needed().sum(axis=1).mean())
        assert worker.rows == pytest.approx(sum(worker.rows_by_owner))
        assert worker.rows == pytest.approx(worker.expected_rows, rel=0.1)
        assert worker.inclusion_low <= worker.inclusion_median <= worker.inclusion_high
        assert worker.inclusion_median == pytest.approx(float(np.median(access.inclusion)))
        assert worker.inner_edges + worker.boundary_edges == pytest.approx(0.3 * worker.entries, rel=0.1)
    assert trace.expected_rows == pytest.approx(sum(worker.expected_rows for worker in found))
