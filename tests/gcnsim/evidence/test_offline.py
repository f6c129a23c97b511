"""PaGraph's tables: rows loaded in an epoch, and what partitioning takes."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.evidence.published_answers import loaded_bytes, partition_seconds
from gcnsim.evidence.published_facts import SHIPPED, read_published
from gcnsim.evidence.table_cells import Cell, reproduce
from gcnsim.simulation.source import RangeEnd
from gcnsim.trace.counts import BatchCounts
from gcnsim.workload import dataset


@pytest.fixture(scope="module")
def cells() -> list[Cell]:
    return reproduce([row for row in read_published(SHIPPED) if row.paper == "pagraph"])


def test_every_row_has_a_prediction_and_an_interval(cells: list[Cell]) -> None:
    assert {cell.metric for cell in cells} == {"pagraph_gb", "reduction_pct", "partition_minutes"}
    for cell in cells:
        assert cell.predicted is not None, cell.reason
        assert cell.low is not None
        assert cell.high is not None
        assert 0.0 < cell.low < cell.predicted < cell.high


def test_the_row_that_may_be_fitted_is_met(cells: list[Cell]) -> None:
    (judged,) = [cell for cell in cells if cell.judged]
    assert (judged.metric, judged.use) == ("partition_minutes", "calibrate")
    assert judged.error == pytest.approx(0.0, abs=0.01)


def test_larger_features_leave_more_to_load(cells: list[Cell]) -> None:
    """The share of rows that the GPU holds falls from dataset to dataset, so does what the cache saves."""
    saved = [cell.predicted for cell in cells if cell.metric == "reduction_pct"]
    assert None not in saved
    assert saved == sorted(saved, key=lambda value: -(value or 0.0))


def test_loaded_bytes_are_misses_of_an_epoch() -> None:
    batches = BatchCounts(
        levels=np.array([[[50, 10], [70, 10]]]),
        entries=np.array([[[20], [20]]]),
        looked=np.array([[20, 20]]),
        wanted=np.array([[[50, 0], [0, 70]]]),
        hits=np.array([[[30, 0], [0, 30]]]),
        cached=np.array([40, 40]),
        stored=np.array([100, 100]),
        per_epoch=5,
    )
    assert loaded_bytes(batches, 16) == 30 * 5 * 4 * 16


def test_partitioning_takes_longer_the_more_hops_and_the_wider_the_degrees() -> None:
    facts = dataset("livejournal")
    one, two = (partition_seconds(facts, hops, RangeEnd.LIKELY) for hops in (1, 2))
    assert one < two / 10
    wide, _, narrow = (partition_seconds(facts, 2, bound) for bound in RangeEnd)
    assert narrow < two < wide
