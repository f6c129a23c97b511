"""Transfers by another library than gloo have names of their own, all of them in the table."""

from __future__ import annotations

from runtime.microbench import KERNELS
from tests.runtime.crew import Crew
from tests.runtime.microbench.network_jobs import transfers


def test_the_first_process_tells_of_all_transfers_by_their_names(crew: Crew) -> None:
    first, other = crew.run(2, transfers)
    assert other == []
    assert set(first) == {name for name in KERNELS if name.startswith("nccl_")}
    assert len(first) == 2 * 3 + 2, "pairs of two sizes, sums of one"
