"""The profile of a graph that nobody cut: its sizes as known, the boundary of its parts by assumption.

What an `Outline` says is all that is known: the ratio of boundary to inner nodes at one number of parts, as uneven as
in the parts of another graph; how it grows, and how many entries cross, by the laws of `gcnsim.workload.cuts`.
Everything else is as even as can be: equal parts, boundary nodes owned alike by all others, cross edges lognormal,
every edge kept at the rate itself under `vr` too (`gcnsim.boundary.published` says how far rows are from the rule's),
degrees that rank as cross edges do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from gcnsim.boundary.bins import RATES, Bins, node_type
from gcnsim.boundary.published import CLASSES, classes_of, dealt, lognormal_shares
from gcnsim.boundary.rescale import MOST_CROSSING
from gcnsim.boundary.stored import SAMPLERS, ProfileOrigin, StoredProfile
from gcnsim.ids import AnyArray, FloatArray, IntArray, frozen
from gcnsim.workload import FAR, crossing_fraction, growth_between, open_growth

if TYPE_CHECKING:
    from gcnsim.graph.generate import Outline

DISPERSION: Final = 1.3
"""Standard deviation of the log of the cross edges per boundary node: the middle of four real graphs' METIS parts."""

FEWER_CLASSES: Final = 17
"""Classes of cross edges beyond `FAR` parts: with them rows needed at rates of 0.01 to 0.3 are off by 0.5 %, hits by
0.9 %, and those of 1,024 parts are 67 MB instead of half a gigabyte."""


def mean_ratio(facts: Outline, parts: int, end: int = 1) -> float:
    """Boundary over inner nodes of the mean of `parts` parts, low, likely or high (0, 1, 2).

    A growth that publications tell holds up to `FAR` parts, the most of any published run; beyond, it is open too.
    """
    known, degree = facts.boundary, facts.entries / facts.nodes
    if known.growth is None:
        by, since = growth_between(known.parts, parts, degree), known.parts
    else:
        by, since = (parts / known.parts) ** known.growth, max(known.parts, min(parts, FAR))
    found = (known.low, known.likely, known.high)[end] * by * open_growth(since, parts)[end]
    # Every part that a node borders on takes a neighbour of its own, and there are no more nodes than all others.
    return float(min(found, degree, parts - 1.0))


def outlined(facts: Outline, parts: int, end: int = 1) -> StoredProfile:
    """The profile of `facts` at `parts` equal parts, 2 or more; end: of its boundary, low, likely or high (0, 1, 2)."""
    inner, entries = _equal(facts.nodes, parts), _equal(facts.entries, parts)
    ratio = mean_ratio(facts, parts, end)
    ratios = ratio * np.array(facts.boundary.uneven(parts))
    most = np.minimum(facts.nodes - inner, (MOST_CROSSING * entries).astype(np.int64))
    boundary = np.rint(np.minimum(ratios * inner, most)).astype(np.int64)
    shares = crossing_fraction(ratio)
    mean = max(1.0, shares.likely * facts.entries / max(1, int(boundary.sum())))
    means = np.maximum(1.0, np.minimum(mean, MOST_CROSSING * entries / np.maximum(boundary, 1)))
    classes = classes_of(mean, float(inner.min()), CLASSES if parts <= FAR else FEWER_CLASSES)
    cells = _cells(classes, _pairs(classes, means, boundary))
    crossing = np.minimum(
        (cells.nodes.sum(axis=1) @ classes).astype(np.int64), (MOST_CROSSING * entries).astype(np.int64)
    )
    # No more than all entries cross at the high end either.
    most_by = max(1.0, min(shares.high / shares.likely, MOST_CROSSING * facts.entries / max(1, int(crossing.sum()))))
    return StoredProfile(
        origin=ProfileOrigin(
            source="outline",
            name=facts.name,
            graph_hash="",
            partition_method="assumed",
            partition_seed=0,
            cross_range=(min(1.0, shares.low / shares.likely), most_by),
        ),
        inner_nodes=frozen(inner),
        inner_entries=frozen(entries - crossing),
        boundary_entries=frozen(crossing),
        cells=dict.fromkeys(SAMPLERS, cells),
    )


def _equal(total: int, parts: int) -> IntArray:
    """`total` in whole numbers that differ by at most 1, int64[P]."""
    return np.diff(np.arange(parts + 1) * total // parts)


def _pairs(classes: IntArray, means: FloatArray, boundary: IntArray) -> AnyArray:
    """Boundary nodes of n owned by m, by class, int64[P, P, K]: every other part owns as many of each.

    means: of cross edges, by part.
    """
    shares = {mean: np.cumsum(lognormal_shares(classes, mean, DISPERSION)) for mean in dict.fromkeys(means.tolist())}
    parts = boundary.size
    nodes = np.zeros((parts, parts, classes.size), node_type(parts))
    for rank, (count, mean) in enumerate(zip(boundary.tolist(), means.tolist(), strict=True)):
        nodes[rank, np.arange(parts) != rank] = dealt(shares[mean], count, np.ones(parts - 1))
    return nodes


def _cells(classes: IntArray, nodes: AnyArray) -> Bins:
    """A cell per class; a node of m cross edges is needed with the chance 1 - (1 - rate)^m."""
    parts, count = len(nodes), classes.size

    def of_all(values: FloatArray) -> FloatArray:
        return frozen(np.broadcast_to(values, (parts, *values.shape)).copy())

    edges, rates = classes.astype(np.float64), np.array(RATES)
    return Bins(
        nodes=frozen(nodes),
        cross_edges=of_all(edges),
        degree=of_all(np.log1p(edges)),
        degree_spread=of_all(np.zeros(count)),
        effective=of_all(np.repeat(edges[:, None], rates.size, axis=1)),
        tilt=frozen(np.broadcast_to(1.0, (parts, parts, rates.size))),
        inner_kept=of_all(rates),
        boundary_kept=of_all(rates),
    )
