"""Ids, features and norms that owners are asked for, against direct indexing."""

from __future__ import annotations

import numpy as np
import pytest

from gcnsim.core.ids import AnyArray
from tests.runtime.conftest import Case, MakeOptions
from tests.runtime.crew import Crew
from tests.runtime.exchange.channel_jobs import WIDTH, RankRequests, asking


@pytest.fixture(scope="module")
def crew_requests(crew: Crew, options: MakeOptions) -> list[RankRequests]:
    """What three ranks asked and heard."""
    askeds: list[RankRequests] = crew.run(3, asking, options(workers=3))
    return askeds


def test_every_owner_hears_what_is_wanted_of_it_in_order(crew_requests: list[RankRequests]) -> None:
    for asker in crew_requests:
        assert sum(nodes.size for nodes in asker.wanted) > 0 or asker.rank == 1
        for owner in crew_requests:
            assert np.array_equal(owner.requested[asker.rank], asker.wanted[owner.rank])
            assert owner.misses[asker.rank] == asker.lacking[owner.rank]
        assert asker.requested[asker.rank].size == 0
    assert crew_requests[0].misses == [0, 0, 0], "what is held is not missed"
    assert any(0 < crew_requests[2].misses[m] < crew_requests[2].requested[m].size for m in range(3))


def test_ids_on_the_wire_are_four_bytes_and_a_head_of_eight_per_peer(crew_requests: list[RankRequests]) -> None:
    for asker in crew_requests:
        assert asker.bytes_out == 2 * 8 + 4 * sum(nodes.size for nodes in asker.wanted)


def test_fetched_rows_are_their_owners(crew_requests: list[RankRequests]) -> None:
    for asker in crew_requests:
        assert asker.features.shape == (asker.fetched.size, WIDTH)
        assert np.array_equal(asker.features, asker.fetched[:, None] * 10.0 + np.arange(WIDTH))


def test_swapped_norms_cover_all_local_ids(crew_requests: list[RankRequests], case: Case) -> None:
    for rank in crew_requests:
        nodes: AnyArray = np.concatenate([rank.inner, rank.boundary])
        assert rank.norms.dtype == np.float32
        assert np.array_equal(rank.norms, (nodes * 0.5).astype(np.float32))
    assert sum(rank.inner.size for rank in crew_requests) == case.graph.nodes
