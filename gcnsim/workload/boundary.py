"""How many boundary nodes a partition of a published dataset has, at any number of GPUs.

Published counts are used as printed. Between two of them the ratio boundary/inner follows a power law of the number of
partitions through both; beyond the first and the last it grows as that of other graphs does (`gcnsim.workload.cuts`).
What that misses when each published count is left out in turn is stated with the answer; what it leaves open beyond the
published numbers is a range.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from gcnsim.errors import ScenarioError
from gcnsim.workload.cuts import growth_between, open_growth
from gcnsim.workload.datasets import BoundaryRow, DatasetFacts

FAR: Final = 192
"""The most parts of any published run (BNS-GCN, ogbn-papers100M)."""


def boundary_at(facts: DatasetFacts, gpus: int) -> tuple[float, float, str]:
    """Mean inner nodes, mean boundary nodes per partition at `gpus` partitions, and a note on where they come from.

    One partition has no boundary. A partition's boundary never exceeds the nodes it does not own,
    nor its adjacency entries (one more boundary node needs one more cross edge).

    Raises ScenarioError when gpus is below 1 or above the number of nodes, or no count is published.
    """
    if not 1 <= gpus <= facts.nodes:
        raise ScenarioError(
            f"cluster.gpus: {gpus} is not allowed; {facts.name} has {facts.nodes} nodes, so 1 to {facts.nodes} GPUs"
        )
    if gpus == 1:
        return float(facts.nodes), 0.0, "one partition: no boundary"
    if not facts.boundary:
        raise ScenarioError(f"cluster.gpus: {gpus} is not allowed; no boundary of {facts.name} is published")
    for row in facts.boundary:
        if row.partitions == gpus:
            return row.inner, row.boundary, f"published for {gpus} METIS partitions"
    inner = facts.nodes / gpus
    ratio = _ratio(facts.boundary, gpus, facts.entries / facts.nodes)
    boundary = min(inner * ratio, facts.nodes - inner, facts.entries / gpus)
    counts = [row.partitions for row in facts.boundary]
    how = "interpolated between" if counts[0] < gpus < counts[-1] else "extrapolated from"
    error = leave_one_out(facts)
    listed = ", ".join(map(str, counts))
    return inner, boundary, f"{how} published counts at {listed} partitions (leave-one-out error {100 * error:.0f} %)"


def left_open(rows: Sequence[BoundaryRow], parts: int) -> tuple[float, float]:
    """Least and most boundary nodes at `parts` over the likely ones: (1, 1) among the numbers of parts of `rows`."""
    nearest = min(max(parts, rows[0].partitions), rows[-1].partitions)
    least, _, most = open_growth(nearest, parts)
    return least, most


def leave_one_out(facts: DatasetFacts) -> float:
    """The largest relative error at a published count, of two or more, by the others."""
    errors = []
    for left in facts.boundary:
        rest = [row for row in facts.boundary if row is not left]
        ratio = _ratio(rest, left.partitions, facts.entries / facts.nodes)
        errors.append(abs(ratio * left.inner / left.boundary - 1.0))
    return max(errors)


def _ratio(rows: Sequence[BoundaryRow], gpus: int, degree: float) -> float:
    """boundary/inner at `gpus`: between two rows the line through their logarithms, else grown from the nearest."""
    below = [row for row in rows if row.partitions < gpus]
    above = [row for row in rows if row.partitions > gpus]
    if not (below and above):
        nearest = above[0] if above else below[-1]
        return nearest.boundary / nearest.inner * growth_between(nearest.partitions, gpus, degree)
    low, high = below[-1], above[0]
    weight = math.log(gpus / low.partitions) / math.log(high.partitions / low.partitions)
    logs = [math.log(row.boundary / row.inner) for row in (low, high)]
    return math.exp((1.0 - weight) * logs[0] + weight * logs[1])
