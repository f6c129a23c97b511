"""Ids, features and norms that owners are asked for, against direct indexing."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.ids import AnyArray
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.exchange.channel_jobs import WIDTH, Asked, asking


@pytest.fixture(scope="module")
def told(crew: Crew, options: MakeOptions) -> list[Asked]:
    """What three ranks asked and heard."""
    found: list[Asked] = crew.run(3, asking, options(workers=3))
    return found


def test_every_owner_hears_what_is_wanted_of_it_in_order(told: list[Asked]) -> None:
    for asker in told:
        assert sum(nodes.size for nodes in asker.wanted) > 0 or asker.rank == 1
        for owner in told:
            assert np.array_equal(owner.requested[asker.rank], asker.wanted[owner.rank])
            assert owner.misses[asker.rank] == asker.lacking[owner.rank]
        assert asker.requested[asker.rank].size == 0
    assert told[0].misses == [0, 0, 0], "what is held is not missed"
    assert any(0 < told[2].misses[m] < told[2].requested[m].size for m in range(3))


def test_ids_on_the_wire_are_four_bytes_and_a_head_of_eight_per_peer(told: list[Asked]) -> None:
    for asker in told:
        assert asker.bytes_out == 2 * 8 + 4 * sum(nodes.size for nodes in asker.wanted)


def test_fetched_rows_are_their_owners(told: list[Asked]) -> None:
    for asker in told:
        assert asker.features.shape == (asker.fetched.size, WIDTH)
        assert np.array_equal(asker.features, asker.fetched[:, None] * 10.0 + np.arange(WIDTH))


def test_swapped_norms_cover_all_local_ids(told: list[Asked], case: Case) -> None:
    for rank in told:
        nodes: AnyArray = np.concatenate([rank.inner, rank.boundary])
        assert rank.norms.dtype == np.float32
        assert np.array_equal(rank.norms, (nodes * 0.5).astype(np.float32))
    assert sum(rank.inner.size for rank in told) == case.graph.nodes
