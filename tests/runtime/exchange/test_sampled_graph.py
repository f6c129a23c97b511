"""In which order rows are asked for, and what others ask for when all is needed."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from gcnsim.graph.parts import own_send_sets
from runtime.exchange import CachedRows, Requests, static_requests
from runtime.exchange.sampled_graph import order_of
from tests.runtime.conftest import Case
from tests.runtime.exchange.dense import builder


@settings(deadline=None, max_examples=100)
@given(
    nodes=st.lists(st.tuples(st.integers(0, 3), st.booleans(), st.booleans()), max_size=40),
    cached=st.booleans(),
)
def test_order_is_by_owner_then_misses_then_ascending(nodes: list[tuple[int, bool, bool]], cached: bool) -> None:
    """nodes: owner, needed, held of each boundary index."""
    nodes = sorted(nodes, key=lambda node: node[0])
    owner = np.array([node[0] for node in nodes], np.int64)
    needed = np.array([node[1] for node in nodes], np.bool_)
    hit = np.array([node[2] for node in nodes], np.bool_)
    slot = np.where(hit, np.cumsum(hit) - 1, -1)
    held = CachedRows(slot, torch.zeros(int(hit.sum()), 1)) if cached else None
    ptr = np.searchsorted(owner, np.arange(5))
    index, places, misses = order_of(needed, ptr, held)
    lacking = {k for k in range(len(nodes)) if not (cached and hit[k])}
    wanted = sorted(np.flatnonzero(needed).tolist(), key=lambda k: (owner[k], k not in lacking, k))
    assert index.tolist() == wanted
    for m in range(4):
        own = index[places[m] : places[m + 1]].tolist()
        assert all(owner[k] == m for k in own)
        assert misses[m] == sum(k in lacking for k in own)
        assert set(own[: misses[m]]) <= lacking
    assert places[0] == 0
    assert places[-1] == index.size


def test_static_requests_are_the_send_sets(case: Case) -> None:
    parts = case.parts(3)
    for n, part in enumerate(parts):
        requests = static_requests(own_send_sets(part), torch.device("cpu"))
        assert requests.index.dtype == torch.int64
        assert requests.rows == requests.ptr[-1] == requests.index.numel()
        assert requests.misses == tuple(np.diff(requests.ptr).tolist())
        for m, other in enumerate(parts):
            sent = part.inner[requests.index[requests.ptr[m] : requests.ptr[m + 1]].numpy()]
            first, last = other.boundary_ptr[n : n + 2]
            assert np.array_equal(sent, other.boundary[first:last]), f"{n} to {m}: the k-th sent is the k-th received"


def test_requests_must_have_been_exchanged(case: Case) -> None:
    sampled_graph = builder(case.parts(2)[0], "symmetric").whole()
    with pytest.raises(AssertionError, match="never exchanged"):
        sampled_graph.incoming_requests()
    requests = Requests(torch.zeros(0, dtype=torch.int64), (0, 0, 0), (0, 0))
    with_requests = sampled_graph.with_requests(requests)
    assert with_requests.incoming_requests() is requests
    assert with_requests.inner is sampled_graph.inner
    assert sampled_graph.requests is None
