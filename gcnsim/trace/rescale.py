"""Stored profiles at other numbers of parts, and with other numbers of cross edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from gcnsim.core.ids import FloatArray, IntArray, frozen
from gcnsim.trace.bins import Bins, node_type
from gcnsim.trace.stored_profile import StoredProfile

MOST_CROSSING = 0.95
"""The largest share of a worker's entries that may cross after a change."""

_STEEPEST = 20.0
"""The highest power that makes workers more uneven."""

_FITTINGS = 100
"""Turns of fitting pairs of workers to both their sums."""

_ROUNDS = 30
"""Steps towards the cross edges asked for: more than one only where nodes are held at one each."""


COUNTS = ("inner_nodes", "entries", "boundary_nodes", "boundary_entries")
"""What is counted of every worker."""


@dataclass(frozen=True, slots=True)
class BoundaryMeans:
    """What is interpolated between profiles.

    boundary: boundary nodes over inner nodes. cross: share of the entries that cross. largest: of each of `COUNTS` the
    largest worker's over the mean.
    """

    boundary: float
    cross: float
    largest: tuple[float, ...]

    def changed(self, boundary: float, cross: float, largest: float) -> BoundaryMeans:
        """These means with factors on the boundary nodes, the entries that cross, and the most boundary nodes."""
        inner, entries, most, crossing = self.largest
        most = max(1.0, most * largest / boundary)
        return BoundaryMeans(self.boundary * boundary, self.cross * cross, (inner, entries, most, crossing))


def means_of(profile: StoredProfile) -> BoundaryMeans:
    """The means of a profile with a boundary."""
    counts = [getattr(profile, name) for name in COUNTS]
    return BoundaryMeans(
        float(profile.boundary_nodes.sum() / profile.inner_nodes.sum()),
        float(profile.boundary_entries.sum() / profile.entries.sum()),
        tuple(float(count.max() / count.mean()) for count in counts),
    )


def between(low: tuple[int, BoundaryMeans], high: tuple[int, BoundaryMeans], parts: int) -> BoundaryMeans:
    """Means at `parts`: power laws of the number of parts through both ends."""
    weight = float(np.log(parts / low[0]) / np.log(high[0] / low[0]))
    boundary, cross, *largest = (
        float(np.exp((1.0 - weight) * np.log(below) + weight * np.log(above)))
        for below, above in zip(_figures(low[1]), _figures(high[1]), strict=True)
    )
    return BoundaryMeans(boundary, cross, tuple(largest))


def rescaled_profile(profile: StoredProfile, parts: int, means: BoundaryMeans) -> StoredProfile:
    """A profile of `parts` workers with these means, each worker shaped like one of `profile`.

    Workers are taken evenly by rank of boundary nodes, the largest and the least always, and stand in the order of
    `profile`, so that owners keep their neighbourhood; a pair that falls on one worker takes its mean pair. Counts are
    raised to the power that makes their largest what `means` says. Cross edges per boundary node change by one factor
    per worker, which makes its cells and its entries agree; no worker asks for more nodes than their owner has.
    """
    source_cells = _places(profile, parts)
    shares = (
        _uneven(getattr(profile, name)[source_cells], largest)
        for name, largest in zip(COUNTS, means.largest, strict=True)
    )
    inner_share, entry_share, nodes, crossing = shares
    inner = _to_sum(inner_share, int(profile.inner_nodes.sum()))
    entries = _to_sum(entry_share, int(profile.entries.sum()))
    most = MOST_CROSSING * entries.astype(np.float64)
    crossing = _within(crossing * (means.cross * entries.sum() / crossing.sum()), most)
    # Every boundary node has a cross edge.
    boundary = _within(nodes * (means.boundary * inner.sum() / nodes.sum()), crossing)
    pairs = _pairs(profile.pairs, source_cells, boundary, inner)
    return _with_cells(profile, source_cells, pairs, crossing, inner, entries)


def with_counts(profile: StoredProfile, counts: Mapping[str, IntArray]) -> StoredProfile:
    """The profile with these counts per worker, by `COUNTS`, int64[P] each; workers and shape stay the same."""
    whole = np.arange(profile.parts)
    inner, entries = counts["inner_nodes"], counts["entries"]
    pairs = _pairs(profile.pairs, whole, counts["boundary_nodes"].astype(np.float64), inner)
    return _with_cells(profile, whole, pairs, counts["boundary_entries"].astype(np.float64), inner, entries)


def with_senders(profile: StoredProfile, largest: float) -> StoredProfile:
    """The profile of at least 4 workers, changed so that the largest sender sends `largest` times the mean.

    Every worker keeps its boundary, and owners their order; pairs are fitted to both sums in turn.
    """
    pairs, whole = profile.pairs.astype(np.float64), np.arange(profile.parts)
    requested = _uneven(profile.pairs.sum(axis=0), largest)
    requested *= pairs.sum() / requested.sum()
    for _ in range(_FITTINGS):
        pairs *= requested / np.maximum(pairs.sum(axis=0), 1e-9)
        pairs *= (profile.boundary_nodes / np.maximum(pairs.sum(axis=1), 1e-9))[:, None]
    fitted = _pairs(
        np.rint(pairs).astype(np.int64), whole, profile.boundary_nodes.astype(np.float64), profile.inner_nodes
    )
    crossing = profile.boundary_entries.astype(np.float64)
    return _with_cells(profile, whole, fitted, crossing, profile.inner_nodes, profile.entries)


def with_cross_edges(profile: StoredProfile, factor: float) -> StoredProfile:
    """The profile with `factor` times the cross edges per boundary node, at least one each; the number of entries
    stays.
    """
    if factor == 1.0:
        return profile
    factors = np.full(profile.parts, factor)
    cells = {name: _add_cross_edges(cell, factors) for name, cell in profile.cells.items()}
    first = next(iter(cells))
    held = profile.cells[first].nodes.sum(axis=1)
    before = _crossing(held, profile.cells[first].cross_edges)
    after = _crossing(held, cells[first].cross_edges)
    grown = profile.boundary_entries * after / np.maximum(before, 1.0)
    boundary = np.rint(np.minimum(grown, MOST_CROSSING * profile.entries)).astype(np.int64)
    boundary = np.maximum(boundary, profile.boundary_nodes)
    return replace(
        profile,
        inner_entries=frozen(np.maximum(profile.entries - boundary, 0)),
        boundary_entries=frozen(boundary),
        cells=cells,
    )


def _with_cells(
    profile: StoredProfile,
    source_cells: IntArray,
    pairs: IntArray,
    crossing: FloatArray,
    inner: IntArray,
    entries: IntArray,
) -> StoredProfile:
    """The workers at `source_cells` with these pairs, inner nodes and entries, and cross entries as close as cells
    allow.
    """
    cells = {name: _assign_owners(cell, source_cells, pairs, crossing) for name, cell in profile.cells.items()}
    first = next(iter(cells.values()))
    boundary = np.minimum(np.rint(_crossing(first.nodes.sum(axis=1), first.cross_edges)).astype(np.int64), entries)
    kept_shares = {
        name: replace(
            cell, inner_kept=frozen(_inner_kept(profile, profile.cells[name], source_cells, boundary / entries))
        )
        for name, cell in cells.items()
    }
    return replace(
        profile,
        inner_nodes=frozen(inner),
        inner_entries=frozen(entries - boundary),
        boundary_entries=frozen(boundary),
        cells=kept_shares,
    )


def _inner_kept(profile: StoredProfile, cells: Bins, source_cells: IntArray, crossing: FloatArray) -> FloatArray:
    """Shares of inner entries that a graph keeps, float64[P, R], such that the total of kept entries stays the same.

    crossing: the new share of crossing entries of each worker, float64[P]; the kept share of these stays the same.
    """
    before = (profile.boundary_entries / np.maximum(profile.entries, 1))[source_cells, None]
    inner, boundary = cells.inner_kept[source_cells], cells.boundary_kept[source_cells]
    whole = (1.0 - before) * inner + before * boundary
    now = crossing[:, None]
    return np.asarray(np.clip((whole - now * boundary) / np.maximum(1.0 - now, 1e-9), 0.0, 1.0))


def _figures(means: BoundaryMeans) -> tuple[float, ...]:
    return means.boundary, means.cross, *means.largest


def _places(profile: StoredProfile, parts: int) -> IntArray:
    """The worker of `profile` that represents each of `parts`, int64[P]: evenly spaced by rank of boundary nodes."""
    falling = np.argsort(-profile.boundary_nodes, kind="stable")
    rank = np.rint(np.linspace(0.0, profile.parts - 1.0, parts)).astype(np.int64)
    return np.sort(falling[rank])


def _uneven(values: IntArray, largest: float) -> FloatArray:
    """`values` to the power, found by bisection, at which the largest is `largest` times the mean; equal ones stay."""
    share = np.asarray(values / max(1, int(values.max())), np.float64)
    low, high = 0.0, _STEEPEST
    for _ in range(50):
        middle = (low + high) / 2.0
        low, high = (middle, high) if 1.0 / float((share**middle).mean()) < largest else (low, middle)
    powered: FloatArray = share ** ((low + high) / 2.0)
    return powered


def _within(values: FloatArray, most: FloatArray) -> FloatArray:
    """`values` limited to `most`; the excess goes to the others along the last axis, as far as they have capacity."""
    capped = np.minimum(values, most)
    room = most - capped
    over = (values - capped).sum(axis=-1, keepdims=True)
    return np.asarray(capped + room * np.minimum(1.0, over / np.maximum(room.sum(axis=-1, keepdims=True), 1e-9)))


def _pairs(pairs: IntArray, source_cells: IntArray, boundary: FloatArray, inner: IntArray) -> IntArray:
    """Boundary nodes of n owned by m, int64[P, P]: `boundary` of n, distributed in the ratios of `pairs`."""
    dealt = pairs[np.ix_(source_cells, source_cells)].astype(np.float64)
    same = source_cells[:, None] == source_cells[None, :]
    mean = pairs.sum(axis=1) / max(1, len(pairs) - 1)
    dealt[same] = mean[source_cells[np.nonzero(same)[0]]]
    np.fill_diagonal(dealt, 0.0)
    most = np.tile(inner.astype(np.float64), (source_cells.size, 1))
    np.fill_diagonal(most, 0.0)
    dealt = _within(dealt * (boundary / np.maximum(dealt.sum(axis=1), 1e-9))[:, None], most)
    whole = np.diff(np.rint(np.cumsum(dealt, axis=1)).astype(np.int64), axis=1, prepend=0)
    return np.minimum(whole, most.astype(np.int64))


def _crossing(held: IntArray, cross_edges: FloatArray) -> FloatArray:
    """Cross entries of every worker's cells, float64[P]; held: its nodes by cell, int64[P, K]."""
    return np.asarray((held * cross_edges).sum(axis=1))


def _add_cross_edges(cells: Bins, factors: FloatArray) -> Bins:
    """The cells with a factor per worker, float64[P], on cross edges, which stay at least one each."""
    factor = factors[:, None]
    effective = np.maximum(cells.effective * factor[:, :, None], np.minimum(cells.effective, 1.0))
    edges = np.maximum(cells.cross_edges * factor, np.minimum(cells.cross_edges, 1.0))
    return replace(cells, effective=frozen(effective), cross_edges=frozen(edges))


def _to_sum(values: FloatArray, total: int) -> IntArray:
    """`values` scaled to `total`, rounded cumulatively."""
    ends = np.rint(np.cumsum(values) * (total / max(float(values.sum()), 1e-9))).astype(np.int64)
    sizes: IntArray = np.diff(ends, prepend=0)
    return sizes


def _assign_owners(cells: Bins, source_cells: IntArray, pairs: IntArray, crossing: FloatArray) -> Bins:
    """The cells of the workers at `source_cells`, with `pairs` boundary nodes and `crossing` cross edges."""
    chosen = {
        name: frozen(getattr(cells, name)[source_cells])
        for name in ("cross_edges", "degree", "degree_spread", "effective", "inner_kept", "boundary_kept")
    }
    tilt = np.array(cells.tilt[np.ix_(source_cells, source_cells)])
    tilt[source_cells[:, None] == source_cells[None, :]] = 1.0
    placed = Bins(nodes=frozen(_whole_cells(cells.nodes, source_cells, pairs)), tilt=frozen(tilt), **chosen)
    factors, held = np.ones(source_cells.size), placed.nodes.sum(axis=1)
    for _ in range(_ROUNDS):
        now = _crossing(held, _add_cross_edges(placed, factors).cross_edges)
        factors *= crossing / np.maximum(now, 1.0)
    return _add_cross_edges(placed, factors)


def _whole_cells(nodes: IntArray, source_cells: IntArray, pairs: IntArray) -> IntArray:
    """`pairs` in the cells of the workers at `source_cells`, int64[P, P, K], int32 above `MANY_PARTS`."""
    whole: IntArray = np.empty((*pairs.shape, nodes.shape[2]), node_type(len(pairs)))
    together = nodes.sum(axis=1)
    # Worker by worker: 1,024 parts have 17 million cells.
    for rank, source in enumerate(source_cells):
        dealt = nodes[source, source_cells].astype(np.float64)
        dealt[dealt.sum(axis=1) == 0.0] = together[source]
        dealt *= (pairs[rank] / np.maximum(dealt.sum(axis=1), 1.0))[:, None]
        whole[rank] = np.diff(np.rint(np.cumsum(dealt, axis=1)).astype(np.int64), axis=1, prepend=0)
    return whole


def coarser(profile: StoredProfile, groups: int) -> StoredProfile:
    """The profile with every `groups` neighbouring cells of a worker joined; the counts of nodes stay."""
    return replace(profile, cells={name: _joined(cell, groups) for name, cell in profile.cells.items()})


def _joined(cells: Bins, groups: int) -> Bins:
    first = np.arange(0, cells.nodes.shape[2], groups)
    weight = np.maximum(cells.nodes.sum(axis=1), 1e-9)
    total = np.add.reduceat(weight, first, axis=1)

    def mean(values: FloatArray) -> FloatArray:
        wide = weight.reshape(*weight.shape, *([1] * (values.ndim - 2)))
        over = total.reshape(*total.shape, *([1] * (values.ndim - 2)))
        return frozen(np.add.reduceat(values * wide, first, axis=1) / over)

    degree = mean(cells.degree)
    spread = mean(cells.degree_spread**2 + cells.degree**2) - degree**2
    return replace(
        cells,
        nodes=frozen(np.add.reduceat(cells.nodes, first, axis=2)),
        cross_edges=mean(cells.cross_edges),
        degree=degree,
        degree_spread=frozen(np.sqrt(np.maximum(spread, 0.0))),
        effective=frozen(np.exp(mean(np.log(np.maximum(cells.effective, 1e-9))))),
    )
