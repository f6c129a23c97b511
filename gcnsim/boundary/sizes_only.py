"""The profile of a graph too large to draw: its sizes as published, the boundary of its parts by assumption.

What an `Outline` says is all that is known: the ratio of boundary to inner nodes, as uneven as in the parts of another
graph, and the mean cross edges of a boundary node as a share of the mean degree. Everything else is as even as can be:
equal parts, boundary nodes owned alike by all others, cross edges lognormal, every edge kept at the rate itself under
`vr` too (`gcnsim.boundary.published` says how far rows are from the rule's), degrees that rank as cross edges do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from gcnsim.boundary.bins import RATES, Bins
from gcnsim.boundary.published import classes_of, dealt, lognormal_shares
from gcnsim.boundary.rescale import MOST_CROSSING
from gcnsim.boundary.stored import SAMPLERS, ProfileOrigin, StoredProfile
from gcnsim.ids import FloatArray, IntArray, frozen

if TYPE_CHECKING:
    from gcnsim.graph.generate import Outline

DISPERSION: Final = 1.3
"""Standard deviation of the log of the cross edges per boundary node: the middle of four real graphs' METIS parts."""


def outlined(facts: Outline, parts: int, end: int = 1) -> StoredProfile:
    """The profile of `facts` at `parts` equal parts, 2 or more; end: of its boundary, low, likely or high (0, 1, 2)."""
    inner, entries = _equal(facts.nodes, parts), _equal(facts.entries, parts)
    ratios = np.array(facts.boundary.ratios(parts, end))
    boundary = np.rint(np.minimum(ratios * inner, facts.nodes - inner)).astype(np.int64)
    share = facts.cross_edges
    mean = share.likely * facts.entries / facts.nodes
    classes = classes_of(mean, float(inner.min()))
    cells = _cells(classes, _pairs(classes, mean, boundary))
    crossing = np.minimum(
        (cells.nodes.sum(axis=1) @ classes).astype(np.int64), (MOST_CROSSING * entries).astype(np.int64)
    )
    return StoredProfile(
        origin=ProfileOrigin(
            source="outline",
            name=facts.name,
            graph_hash="",
            partition_method="assumed",
            partition_seed=0,
            cross_range=(share.low / share.likely, share.high / share.likely),
        ),
        inner_nodes=frozen(inner),
        inner_entries=frozen(entries - crossing),
        boundary_entries=frozen(crossing),
        cells=dict.fromkeys(SAMPLERS, cells),
    )


def _equal(total: int, parts: int) -> IntArray:
    """`total` in whole numbers that differ by at most 1, int64[P]."""
    return np.diff(np.arange(parts + 1) * total // parts)


def _pairs(classes: IntArray, mean: float, boundary: IntArray) -> IntArray:
    """Boundary nodes of n owned by m, by class, int64[P, P, K]: every other part owns as many of each."""
    cumulative = np.cumsum(lognormal_shares(classes, mean, DISPERSION))
    parts = boundary.size
    nodes = np.zeros((parts, parts, classes.size), np.int64)
    for rank, count in enumerate(boundary.tolist()):
        nodes[rank, np.arange(parts) != rank] = dealt(cumulative, count, np.ones(parts - 1))
    return nodes


def _cells(classes: IntArray, nodes: IntArray) -> Bins:
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
        tilt=frozen(np.ones((parts, parts, rates.size))),
        inner_kept=of_all(rates),
        boundary_kept=of_all(rates),
    )
