"""Drawing boundary nodes: the share kept, whatever the number of nodes."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.streams import stream
from gcnsim.workload.draws import checked_share, draw_nodes


@pytest.mark.parametrize(("nodes", "rate"), [(1, 0.1), (7, 0.1), (95, 0.31), (1000, 0.05), (40, 0.5)])
def test_each_node_is_in_with_the_rate_and_their_number_hardly_varies(nodes: int, rate: float) -> None:
    drawn = [draw_nodes(nodes, rate, stream(3, "test", t)) for t in range(4000)]
    counts = np.array([places.size for places in drawn])
    assert set(counts.tolist()) <= {int(rate * nodes), int(rate * nodes) + 1}
    often = np.bincount(np.concatenate(drawn), minlength=nodes) / 4000
    assert np.abs(often - rate).max() < 5 * np.sqrt(rate * (1 - rate) / 4000)


def test_places_are_ascending_and_distinct() -> None:
    places = draw_nodes(500, 0.4, stream(0, "test"))
    assert places.size == 200
    assert (np.diff(places) > 0).all()
    assert places.min() >= 0
    assert places.max() < 500


def test_the_ends() -> None:
    assert draw_nodes(0, 0.5, stream(0, "test")).tolist() == []
    assert draw_nodes(9, 0.0, stream(0, "test")).tolist() == []
    assert draw_nodes(9, 1.0, stream(0, "test")).tolist() == list(range(9))
    assert (checked_share(0.0), checked_share(1.0)) == (0.0, 1.0)
    for bad in (-0.01, 1.01, float("nan")):
        with pytest.raises(ScenarioError, match=r"is outside \[0, 1\]"):
            checked_share(bad)
