"""Laws of the boundary of METIS parts from a graph's sizes alone, fitted to counted partitions.

gcnsim/data/cuts.yaml has the laws. `python -m studies.cuts` fits them to counts of real graphs, and tests each law on
the graphs that it was not fitted to (docs/surrogates.md). With d the mean degree and N the nodes of a graph:

- boundary over inner nodes at 4 parts: scale * (max(d, 15) / 50)^degree * (N / 100,000)^nodes, of graphs with d < 15
times (d / 15)^sparse, in a range of factors;

- at other numbers of parts: times a factor from a table, interpolated in logarithms, and times (d / 50)^(tilt ln(parts
/ 4)) above 4: the boundary of dense graphs keeps growing, that of sparse ones less, because a node borders on no more
parts than it has neighbours;

- share of the crossing entries: 1 - exp(-per_ratio * boundary over inner nodes), per_ratio times (15 / d)^sparse where
d < 15;

- the largest part over the mean one: a power of the number of parts;

- standard deviation of the log of degrees: likely + degree * ln(d / 50), in a range of `open` either way.

Published counts of boundary nodes are used as printed, of one source per dataset. Between two of them the ratio
boundary/inner follows a power law of the number of partitions through both. Beyond the first and the last it grows like
other graphs' ratios. The answer states the error of this rule when each published count is left out in turn. Other than
published numbers have a range.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from gcnsim.core.errors import ScenarioError
from gcnsim.core.yaml_files import read_yaml
from gcnsim.workload.datasets import BoundaryRow, DatasetFacts

FILE: Final = Path(__file__).resolve().parents[1] / "data" / "cuts.yaml"
"""The file of the fitted laws."""

ANCHOR: Final = 4
"""The number of parts to which the law of sizes applies."""

DEGREE: Final = 50.0
NODES: Final = 1e5
"""The reference sizes of the laws."""

SPARSE: Final = 15.0
"""The mean degree below which a boundary falls faster."""

WEB: Final = "web"
"""The kind of a graph of web pages: pages link within their site, so parts have small boundaries."""

MOST_COUNTED: Final = 64
"""The most parts into which a graph was partitioned for the laws."""

LEAST_SPREAD: Final = 0.3
"""Standard deviations of the log of degrees are assumed to be at least this."""

MOST_CROSSING: Final = 0.95
"""The largest share of crossing entries."""


class AssumedRange(NamedTuple):
    """Least, likely and largest assumed value."""

    low: float
    likely: float
    high: float


def growth_between(since: float, parts: float, degree: float) -> float:
    """Boundary over inner nodes at `parts` parts over that at `since`, both at least 2; degree: of the mean node."""
    return math.exp(_log_growth(parts, degree) - _log_growth(since, degree))


def open_growth(since: float, parts: float) -> AssumedRange:
    """The uncertainty of `growth_between` over the counted graphs: factors on it, 1 in the middle.

    Numbers of parts that differ by less than a factor of two count as that far apart, because of METIS' variation.
    """
    wide = max(math.log(2.0), abs(math.log(parts / since))) * _law()["growth"]["open"] if parts != since else 0.0
    return AssumedRange(math.exp(-wide), 1.0, math.exp(wide))


def growth_of(facts: DatasetFacts, since: int, parts: int) -> AssumedRange:
    """Boundary over inner nodes of the dataset at `parts` parts over that at `since`, at least 2: by its published
    counts as far as they reach, then by the law, in a range of factors.
    """
    counted = max(since, min(parts, facts.boundary[-1].partitions)) if facts.boundary else since
    by = growth_between(counted, parts, facts.entries / facts.nodes)
    if counted > since:
        (inner, boundary, _), (later_inner, later_boundary, _) = (boundary_at(facts, at) for at in (since, counted))
        by *= later_boundary / later_inner / (boundary / inner)
    low, _, high = open_growth(since, parts)
    low, high = left_open(facts.boundary, parts) if facts.boundary else (low, high)
    return AssumedRange(by * low, by, by * high)


def assumed_ratio(nodes: int, entries: int, parts: int, kind: str = "") -> AssumedRange:
    """Boundary over inner nodes of the mean of `parts` parts, at least 2, of a graph without a partition.

    entries: stored entries, both directions of every edge. kind: `WEB`, or any other kind.
    """
    law, degree = _law()["ratio"], max(1.0, entries / nodes)
    found = float(law["scale"] * (max(degree, SPARSE) / DEGREE) ** law["degree"] * (nodes / NODES) ** law["nodes"])
    found *= (min(degree, SPARSE) / SPARSE) ** law["sparse"] * growth_between(ANCHOR, parts, degree)
    # Every part that a node borders on has a neighbour of it, and there are no more boundary nodes than nodes
    # elsewhere.
    most = min(degree, parts - 1.0)
    factors = law[WEB] if kind == WEB else law["range"]
    return AssumedRange(*(min(most, factor * found) for factor in factors))


def crossing_fraction(ratio: float, degree: float) -> AssumedRange:
    """Share of the entries that cross partitions, by boundary over inner nodes and the mean degree."""
    law = _law()["crossing"]
    ratio *= max(1.0, SPARSE / max(1.0, degree)) ** law["sparse"]
    return AssumedRange(*(min(MOST_CROSSING, -math.expm1(-per * ratio)) for per in law["per_ratio"]))


def assumed_spread(degree: float) -> AssumedRange:
    """Standard deviation of the log of degrees by their mean: least, likely, most."""
    law = _law()["degree_spread"]
    likely = law["likely"] + law["degree"] * math.log(max(1.0, degree) / DEGREE)
    return AssumedRange(max(LEAST_SPREAD, likely - law["open"]), likely, likely + law["open"])


def largest_of(figure: str, parts: int) -> AssumedRange:
    """The largest of `parts` parts over the mean one; figure: `boundary` nodes or `entries`.

    Beyond the most counted parts it stays constant: extrapolated to a thousand parts, the power would leave most of
    them nothing.
    """
    return AssumedRange(*(min(parts, MOST_COUNTED) ** power for power in _law()["largest"][figure]))


def _log_growth(parts: float, degree: float) -> float:
    """Logarithm of boundary over inner nodes at `parts` over that at `ANCHOR`."""
    places, values = _growth()
    x = math.log(parts)
    k = min(max(1, sum(place <= x for place in places)), len(places) - 1)
    slope = (values[k] - values[k - 1]) / (places[k] - places[k - 1])
    tilt = float(_law()["growth"]["tilt"]) * math.log(degree / DEGREE) * max(0.0, x - math.log(ANCHOR))
    # However sparse a graph is, more parts never have a smaller total boundary.
    return max(values[k - 1] + slope * (x - places[k - 1]) + tilt, 0.0 if parts > ANCHOR else -math.inf)


@cache
def _growth() -> tuple[Sequence[float], Sequence[float]]:
    """Logarithms of the numbers of parts of the table, and of its factors."""
    table = _law()["growth"]["factors"]
    return [math.log(parts) for parts, _ in table], [math.log(factor) for _, factor in table]


@cache
def _law() -> Mapping[str, Any]:
    found: dict[str, Any] = read_yaml(FILE)
    return found


FAR: Final = 192
"""The most parts of any published run (BNS-GCN, ogbn-papers100M)."""


def boundary_at(facts: DatasetFacts, gpus: int) -> tuple[float, float, str]:
    """Mean inner nodes, mean boundary nodes per partition at `gpus` partitions, and a note on their source.

    One partition has no boundary. A partition's boundary never exceeds the nodes it does not own, nor its adjacency
    entries (one more boundary node needs one more cross edge). Raises ScenarioError if gpus is below 1 or above the
    number of nodes, or no count is published.
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
    """Least and most boundary nodes at `parts` over the likely ones: (1, 1) at the numbers of parts of `rows`.

    Between two of them it is the larger error when either is interpolated itself, or the law's range if neither can be.
    """
    counts = [row.partitions for row in rows]
    if parts in counts:
        return 1.0, 1.0
    after = sum(count < parts for count in counts)
    if 0 < after < len(rows):
        inside = [k for k in (after - 1, after) if 0 < k < len(rows) - 1]
        # Both neighbours are there, so no law of growth is needed.
        blind = [_ratio([rows[k - 1], rows[k + 1]], rows[k].partitions, 1.0) for k in inside]
        errors = [abs(ratio * rows[k].inner / rows[k].boundary - 1.0) for k, ratio in zip(inside, blind, strict=True)]
        if errors:
            error = min(max(errors), WORST)
            return 1.0 / (1.0 + error), 1.0 / (1.0 - error)
    nearest = min(counts, key=lambda count: abs(math.log(count / parts)))
    least, _, most = open_growth(nearest, parts)
    return least, most


WORST: Final = 0.9
"""An error is applied up to this size; a larger one would leave nothing at the low end."""


def leave_one_out(facts: DatasetFacts) -> float:
    """The largest relative error when one of several published counts is predicted by the others."""
    errors = []
    for left in facts.boundary:
        rest = [row for row in facts.boundary if row is not left]
        ratio = _ratio(rest, left.partitions, facts.entries / facts.nodes)
        errors.append(abs(ratio * left.inner / left.boundary - 1.0))
    return max(errors)


def _ratio(rows: Sequence[BoundaryRow], gpus: int, degree: float) -> float:
    """boundary/inner at `gpus`: interpolated in logarithms between two rows, else extrapolated from the nearest."""
    below = [row for row in rows if row.partitions < gpus]
    above = [row for row in rows if row.partitions > gpus]
    if not (below and above):
        nearest = above[0] if above else below[-1]
        return nearest.boundary / nearest.inner * growth_between(nearest.partitions, gpus, degree)
    low, high = below[-1], above[0]
    weight = math.log(gpus / low.partitions) / math.log(high.partitions / low.partitions)
    logs = [math.log(row.boundary / row.inner) for row in (low, high)]
    return math.exp((1.0 - weight) * logs[0] + weight * logs[1])
