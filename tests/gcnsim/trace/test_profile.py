from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gcnsim.trace.counts import class_inclusion, expected_rows, profile_of
from gcnsim.workload.draws import inclusion
from tests.sampled import edge_probabilities


def test_profile_counts_every_boundary_node_and_cross_edge(small: Any) -> None:
    profile = profile_of(small.parts)
    owner = small.owners.owner
    for part in small.parts:
        row = np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr))
        assert profile.inner_nodes[part.rank] == part.inner_nodes
        for k, node in enumerate(part.boundary):
            m = np.unique(row[part.columns == part.inner_nodes + k]).size
            assert m in profile.cross_edges
            if k == 0:
                of_owner = part.boundary[owner[part.boundary] == owner[node]]
                assert profile.nodes[part.rank, owner[node]].sum() == of_owner.size
    assert np.array_equal(profile.boundary_nodes, [part.boundary_nodes for part in small.parts])
    assert np.array_equal(profile.entries, [part.entries for part in small.parts])
    assert np.array_equal((profile.nodes * profile.cross_edges).sum(axis=(1, 2)), profile.boundary_entries)
    crossing = owner[np.repeat(np.arange(300), small.graph.degrees)] != owner[small.graph.indices]
    assert profile.cross_fraction == pytest.approx(crossing.mean())


@pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0])
def test_expected_rows_equal_the_inclusion_of_uniform_sampling(small: Any, epsilon: float) -> None:
    rows = expected_rows(profile_of(small.parts), epsilon)
    for part in small.parts:
        chance = inclusion(part, edge_probabilities("uniform", part, epsilon))
        for m in range(part.parts):
            owned = chance[part.boundary_ptr[m] : part.boundary_ptr[m + 1]]
            assert rows[part.rank, m] == pytest.approx(owned.sum(), rel=1e-6)


def test_class_inclusion_is_the_closed_form(small: Any) -> None:
    profile = profile_of(small.parts)
    assert class_inclusion(profile, 0.1) == pytest.approx(1 - 0.9 ** profile.cross_edges.astype(float))
    assert (class_inclusion(profile, 1.0) == 1.0).all()
