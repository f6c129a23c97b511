"""One worker's share of the data: its part of the graph and the features, labels and masks of its inner nodes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from gcnsim.ids import AnyArray, BoolArray, Float32Array, IntArray, Rank, frozen
from gcnsim.partition import Part, Partitioning, own_send_sets, part_of
from runtime.data.dataset import Dataset


@dataclass(frozen=True, slots=True)
class Share:
    """What worker n = `part.rank` holds, in the order of `part.inner` (I nodes). Arrays are read-only.

    send_sets: [m] is S(n, m), int64 local ids, ascending, empty for m == n. features: float32[I, d_0].
    labels: int64[I] or float32[I, C]. train, val, test: bool[I]; the totals count over all workers.
    """

    part: Part
    send_sets: tuple[IntArray, ...]
    features: Float32Array
    labels: AnyArray
    train: BoolArray
    val: BoolArray
    test: BoolArray
    train_total: int
    val_total: int
    test_total: int


def share_of(dataset: Dataset, partitioning: Partitioning, rank: Rank) -> Share:
    """What worker `rank` holds, built without the other workers' parts.

    Raises GraphError when the partition is not this graph's or has no such rank.
    """
    part = part_of(dataset.graph, partitioning, rank)
    return Share(
        part=part,
        send_sets=own_send_sets(part),
        features=frozen(dataset.features.rows(part.inner)),
        labels=frozen(dataset.labels[part.inner]),
        train=frozen(dataset.train[part.inner]),
        val=frozen(dataset.val[part.inner]),
        test=frozen(dataset.test[part.inner]),
        train_total=int(np.count_nonzero(dataset.train)),
        val_total=int(np.count_nonzero(dataset.val)),
        test_total=int(np.count_nonzero(dataset.test)),
    )
