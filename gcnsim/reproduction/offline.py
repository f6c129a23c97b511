"""What tables of mini-batch systems print besides times: rows loaded in an epoch, and partitioning before training."""

from __future__ import annotations

from typing import Final

import numpy as np

from gcnsim.boundary import BatchCounts
from gcnsim.cost import VALUE
from gcnsim.ids import Bytes, Seconds
from gcnsim.sampling import Groups, counted, expected_neighbours
from gcnsim.sources import RangeEnd, degree_law
from gcnsim.workload import DatasetFacts

SEEN_PER_S: Final = 1.459e7
"""Nodes of neighbourhoods that PaGraph's partitioner handles in a second: fitted to the one row of its Table 5 that may
be (livejournal, 6 minutes), with the likely law of degrees. A pass over memory would do a hundred times as many."""


def loaded_bytes(batches: BatchCounts, width: int) -> Bytes:
    """Bytes of input rows that a worker loads in an epoch, in the mean of all: wanted, and not in its cache."""
    missed = (batches.wanted - batches.hits).sum(axis=2)
    return float(missed.mean()) * batches.per_epoch * VALUE * width


def partition_seconds(facts: DatasetFacts, hops: int, corner: RangeEnd) -> Seconds:
    """Seconds to deal out the training nodes: every one's neighbourhood of `hops` hops is looked at once."""
    law = degree_law(facts, corner)
    alone = expected_neighbours(law, np.array([1.0 / law.nodes]), (1.0,) * hops)
    return facts.train * facts.nodes * float(counted(law, Groups.one(), alone.chance[0]).sum()) / SEEN_PER_S
