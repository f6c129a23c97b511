from __future__ import annotations

import pytest

from gcnsim.workload.staleness import slot, source_iteration


def test_synchronous_reads_its_own_iteration() -> None:
    assert [source_iteration(t, 0) for t in range(3)] == [0, 1, 2]


@pytest.mark.parametrize("tau", [1, 2, 5])
def test_stale_values_are_exactly_tau_old_after_the_cold_start(tau: int) -> None:
    assert [source_iteration(t, tau) for t in range(tau)] == [None] * tau
    assert [source_iteration(t, tau) for t in range(tau, 4 * tau)] == list(range(3 * tau))


@pytest.mark.parametrize("tau", [1, 2, 3])
def test_a_ring_hands_every_reader_the_values_of_its_source(tau: int) -> None:
    ring: list[int | None] = [None] * tau
    for t in range(5 * tau):
        assert ring[slot(t, tau)] == source_iteration(t, tau)
        ring[slot(t, tau)] = t


def test_no_ring_without_staleness() -> None:
    with pytest.raises(ValueError, match="tau 0"):
        slot(3, 0)
