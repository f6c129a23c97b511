"""How many boundary nodes a partition of a published dataset has, at any number of GPUs.

Published counts are used as printed. Between and beyond them the ratio boundary/inner follows a power law of the number
of partitions, fitted by least squares to the logarithms of the published ratios; what it misses when each published
count is left out in turn is stated with the answer. Far beyond all that was ever published, the power itself is open.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from gcnsim.errors import ScenarioError
from gcnsim.workload.datasets import BoundaryRow, DatasetFacts

FAR: Final = 192
"""The most parts of any published run (BNS-GCN, ogbn-papers100M); beyond, how boundaries grow is anybody's guess."""

GROWTH: Final = (0.39, 1.0)
"""Least and most power of the number of parts with which boundary/inner grows beyond `FAR`. Least: from 16 to 32 METIS
parts of the surrogates it grew with the powers 0.39 (ogbn-products), 0.52 (yelp) and 0.75 (reddit). Most: with power 1
a part keeps as many boundary nodes however small it gets."""


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
    boundary = min(inner * _ratio(facts.boundary, gpus), facts.nodes - inner, facts.entries / gpus)
    counts = [row.partitions for row in facts.boundary]
    how = "interpolated between" if counts[0] < gpus < counts[-1] else "extrapolated from"
    error = leave_one_out(facts.boundary)
    listed = ", ".join(map(str, counts))
    return inner, boundary, f"{how} published counts at {listed} partitions (leave-one-out error {100 * error:.0f} %)"


def left_open(parts: int, growth: float) -> tuple[float, float]:
    """Least and most boundary nodes at `parts` over those that grow on with the power `growth`: (1, 1) up to `FAR`."""
    beyond = max(1.0, parts / FAR)
    least, most = GROWTH
    return beyond ** min(0.0, least - growth), beyond ** max(0.0, most - growth)


def growth_of(rows: Sequence[BoundaryRow]) -> float:
    """The power of the number of partitions with which boundary/inner grows by the law through two `rows` or more."""
    return _line(rows)[1]


def leave_one_out(rows: Sequence[BoundaryRow]) -> float:
    """The largest relative error of the power law at a published count that it was not fitted to."""
    errors = []
    for left in rows:
        rest = [row for row in rows if row is not left]
        errors.append(abs(_ratio(rest, left.partitions) * left.inner / left.boundary - 1.0))
    return max(errors)


def _ratio(rows: Sequence[BoundaryRow], gpus: int) -> float:
    """boundary/inner at `gpus` by the line through (log partitions, log ratio)."""
    x_mean, slope, y_mean = _line(rows)
    return math.exp(y_mean + slope * (math.log(gpus) - x_mean))


def _line(rows: Sequence[BoundaryRow]) -> tuple[float, float, float]:
    """That line: mean logarithm of the partitions, slope, mean logarithm of the ratios."""
    x = [math.log(row.partitions) for row in rows]
    y = [math.log(row.boundary / row.inner) for row in rows]
    x_mean, y_mean = sum(x) / len(x), sum(y) / len(y)
    slope = sum((a - x_mean) * (b - y_mean) for a, b in zip(x, y, strict=True)) / sum((a - x_mean) ** 2 for a in x)
    return x_mean, slope, y_mean
