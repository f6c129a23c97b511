"""Stored profiles at other numbers of parts, and with other numbers of cross edges."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from gcnsim.ids import FloatArray, IntArray, frozen
from gcnsim.trace.cells import Cells
from gcnsim.trace.stored_profile import StoredProfile

MOST_CROSSING = 0.95
"""At most this share of a worker's entries crosses when their number is changed."""


@dataclass(frozen=True, slots=True)
class Means:
    """What is interpolated between profiles: boundary nodes over inner nodes, and the share of entries that cross."""

    boundary: float
    cross: float

    def misses(self, truth: Means) -> float:
        """The larger of both relative errors against `truth`."""
        return max(abs(self.boundary / truth.boundary - 1.0), abs(self.cross / truth.cross - 1.0))


def means_of(profile: StoredProfile) -> Means:
    """The means of a profile with a boundary."""
    return Means(
        float(profile.boundary_nodes.sum() / profile.inner_nodes.sum()),
        float(profile.boundary_entries.sum() / profile.entries.sum()),
    )


def between(low: tuple[int, Means], high: tuple[int, Means], parts: int) -> Means:
    """Means at `parts`: power laws of the number of parts through both ends."""
    weight = np.log(parts / low[0]) / np.log(high[0] / low[0])
    boundary, cross = (
        float(np.exp((1.0 - weight) * np.log(getattr(low[1], name)) + weight * np.log(getattr(high[1], name))))
        for name in ("boundary", "cross")
    )
    return Means(boundary, cross)


def resized(profile: StoredProfile, parts: int, means: Means) -> StoredProfile:
    """A profile of `parts` workers with these means, each worker shaped like the one at its place in `profile`.

    Sizes keep their unevenness, owners their neighbourhood; a pair that falls on one worker takes its mean pair. Cross
    edges per boundary node change by one factor.
    """
    own = means_of(profile)
    more, crossing = means.boundary / own.boundary, means.cross / own.cross
    place = ((np.arange(parts) + 0.5) * profile.parts / parts).astype(np.int64)
    inner = _to_sum(profile.inner_nodes[place], int(profile.inner_nodes.sum()))
    entries = _to_sum(profile.entries[place], int(profile.entries.sum()))
    share = (profile.boundary_entries / profile.entries)[place] * crossing
    boundary = np.rint(entries * np.minimum(share, MOST_CROSSING)).astype(np.int64)
    # Boundary nodes grow with the inner nodes they are counted against.
    grown = more * inner.mean() / float(profile.inner_nodes.mean()) * _balance(profile, place)
    return replace(
        profile,
        inner_nodes=frozen(inner),
        inner_entries=frozen(entries - boundary),
        boundary_entries=frozen(np.maximum(boundary, 0)),
        cells={name: _placed(cells, place, grown, crossing / more) for name, cells in profile.cells.items()},
    )


def with_cross_edges(profile: StoredProfile, factor: float) -> StoredProfile:
    """The profile with `factor` times the cross edges per boundary node, at least one each; entries stay as many."""
    if factor == 1.0:
        return profile
    cells = {name: _denser(each, factor) for name, each in profile.cells.items()}
    first = next(iter(cells))
    before = (profile.cells[first].nodes.sum(axis=1) * profile.cells[first].cross_edges).sum(axis=1)
    after = (cells[first].nodes.sum(axis=1) * cells[first].cross_edges).sum(axis=1)
    grown = profile.boundary_entries * after / np.maximum(before, 1.0)
    boundary = np.rint(np.minimum(grown, MOST_CROSSING * profile.entries)).astype(np.int64)
    boundary = np.maximum(boundary, profile.boundary_nodes)
    return replace(
        profile,
        inner_entries=frozen(np.maximum(profile.entries - boundary, 0)),
        boundary_entries=frozen(boundary),
        cells=cells,
    )


def _denser(cells: Cells, factor: float) -> Cells:
    effective = np.maximum(cells.effective * factor, np.minimum(cells.effective, 1.0))
    edges = np.maximum(cells.cross_edges * factor, np.minimum(cells.cross_edges, 1.0))
    return replace(cells, effective=frozen(effective), cross_edges=frozen(edges))


def _to_sum(values: IntArray, total: int) -> IntArray:
    """`values` scaled to `total`, rounded cumulatively."""
    ends = np.rint(np.cumsum(values) * (total / max(1, int(values.sum())))).astype(np.int64)
    sizes: IntArray = np.diff(ends, prepend=0)
    return sizes


def _balance(profile: StoredProfile, place: IntArray) -> float:
    """Mean boundary of all workers over that of those chosen."""
    return float(profile.boundary_nodes.mean() / profile.boundary_nodes[place].mean())


def _placed(cells: Cells, place: IntArray, grown: float, denser: float) -> Cells:
    parts = len(cells.nodes)
    pair = np.ix_(place, place)
    nodes = cells.nodes[pair].astype(np.float64)
    tilt = np.array(cells.tilt[pair])
    same = place[:, None] == place[None, :]
    mean = cells.nodes.sum(axis=1) / max(1, parts - 1)
    nodes[same] = mean[place[np.nonzero(same)[0]]]
    tilt[same] = 1.0
    nodes[np.arange(place.size), np.arange(place.size)] = 0.0
    before: FloatArray = cells.nodes.sum(axis=(1, 2))[place]
    nodes *= (grown * before / np.maximum(nodes.sum(axis=(1, 2)), 1.0))[:, None, None]
    whole = np.diff(np.rint(np.cumsum(nodes, axis=2)).astype(np.int64), axis=2, prepend=0)
    chosen = {
        name: frozen(getattr(cells, name)[place])
        for name in ("cross_edges", "degree", "degree_spread", "effective", "inner_kept", "boundary_kept")
    }
    return _denser(Cells(nodes=frozen(whole), tilt=frozen(tilt), **chosen), denser)
