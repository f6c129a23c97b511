"""Bundled boundary profiles, and interpolation between their numbers of parts.

A graph has an outline instead of a profile if it is too large to generate, or if only its sizes are known.
"""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.trace.bins import MANY_PARTS
from gcnsim.trace.rescale import (
    MOST_CROSSING,
    BoundaryMeans,
    between,
    coarser,
    means_of,
    rescaled_profile,
    with_cross_edges,
)
from gcnsim.trace.sample_counts import expected_access
from gcnsim.trace.sizes_only import size_only_profile
from gcnsim.trace.stored_profile import StoredProfile, read_profile
from gcnsim.workload import DatasetFacts, assumed_ratio, dataset, datasets
from gcnsim.workload.caching import CacheSize
from gcnsim.workload.cuts import ANCHOR, WEB, WORST, growth_of, left_open

if TYPE_CHECKING:
    from gcnsim.graph.generate import SizeOnlyDataset

MOST_PARTS: Final = 1024
"""The most parts that an outline by sizes, or the last profile of a dataset, supports."""

ASSUMED: Final = (
    "boundary nodes per inner node by the mean degree and the nodes, as in METIS parts of other graphs, as uneven as "
    "Reddit's ten training parts"
)


def outline_of(facts: DatasetFacts) -> SizeOnlyDataset | None:
    """The outline of a dataset: a bundled one, or one by its sizes; None for a surrogate or a published boundary."""
    # The generators are imported for these few datasets only, because most answers do not need them.
    from gcnsim.graph.generate import outline, outlines, surrogates

    if facts.name in outlines():
        return outline(facts.name)
    return None if facts.boundary or facts.name in surrogates() else by_sizes(facts)


def outline_named(name: str) -> SizeOnlyDataset | None:
    """`outline_of` the dataset `name`; None for an unknown dataset."""
    return outline_of(dataset(name)) if name in datasets() else None


def by_sizes(facts: DatasetFacts) -> SizeOnlyDataset:
    """The outline of a graph with only known sizes."""
    from gcnsim.graph.generate import Bordering, SizeOnlyDataset, outline, outlines

    low, likely, high = assumed_ratio(facts.nodes, facts.entries, ANCHOR, facts.kind)
    unevenness = outline(outlines()[0]).boundary.unevenness
    kind = "one graph of the web and others" if facts.kind == WEB else "eighteen other graphs"
    source = f"by mean degree and nodes, as in METIS parts of {kind} (studies/cuts.py)"
    return SizeOnlyDataset(
        name=facts.name,
        nodes=facts.nodes,
        entries=facts.entries,
        features=facts.features,
        classes=facts.classes,
        parts=(2, MOST_PARTS),
        boundary=Bordering(ANCHOR, low, likely, high, unevenness, source),
        cite=facts.citations,
        assumed=ASSUMED,
    )


FOLDER: Final = Path(__file__).resolve().parent.parent / "data" / "profiles"
"""The folder of profiles: DATASET-PARTS.profile."""


@dataclass(frozen=True, slots=True)
class InterpolationError:
    """Relative errors of a profile that replaces another, without sign.

    boundary: of the mean worker's boundary nodes. largest: of the largest worker's. cross_entries: of the crossing
    entries. rows: of the rows needed at rate 0.1 under `vr`.
    """

    boundary: float
    largest: float
    cross_entries: float
    rows: float


@dataclass(frozen=True, slots=True)
class Interpolation:
    """The bundled numbers of parts around a profile, and the larger of the errors when they are interpolated
    themselves.

    missed is None if both are the outermost bundled ones, which cannot be interpolated.
    """

    low: int
    high: int
    missed: InterpolationError | None


@cache
def bundled_parts(dataset: str) -> tuple[int, ...]:
    """The numbers of parts at which `dataset` has a bundled profile, ascending."""
    names = (path.stem.removeprefix(f"{dataset}-") for path in FOLDER.glob(f"{dataset}-*.profile"))
    return tuple(sorted(int(name) for name in names if name.isdecimal()))


@cache
def bundled_profile(dataset: str, parts: int) -> StoredProfile:
    """The bundled profile of `dataset` at `parts`. Raises ScenarioError if there is none, FileError for a bad one.

    A profile of another dataset or number of parts than its name is also bad.
    """
    known = bundled_parts(dataset)
    if parts not in known:
        there = f"there are {', '.join(map(str, known))}" if known else "it has none at any number of parts"
        raise ScenarioError(f"gpus: {dataset} has no profile at {parts} parts; {there}")
    path = FOLDER / f"{dataset}-{parts}.profile"
    profile = read_profile(path)
    if (profile.origin.name, profile.parts) != (dataset, parts):
        raise FileError(f"{path}: holds {profile.origin.name} at {profile.parts} parts; wanted {dataset} at {parts}")
    return profile


def profiled_parts(dataset: str) -> range:
    """The numbers of parts that `profile_at` supports: from the least bundled to `MOST_PARTS`, or those of an outline,
    or none.
    """
    known = bundled_parts(dataset)
    if known:
        return range(known[0], MOST_PARTS + 1)
    known = _outlined_parts(dataset)
    return range(known[0], known[-1] + 1) if known else range(0)


@cache
def profile_at(dataset: str, parts: int) -> tuple[StoredProfile, str]:
    """The profile of `dataset` at `parts`, and a note on its origin.

    Between bundled numbers of parts, the means and the largest workers follow a power law through the two neighbours;
    the shape is that of the nearer one, and the note states the error. Beyond the last, its shape is carried on
    (`_carried`). A dataset with an outline uses that. Raises ScenarioError outside `profiled_parts`.
    """
    known = bundled_parts(dataset)
    answered = profiled_parts(dataset)
    if parts in known:
        return bundled_profile(dataset, parts), f"profile at {parts} METIS partitions{_counted(dataset, parts)}"
    if parts not in answered:
        there = f"there are {answered[0]} to {answered[-1]}" if answered else "it has none at any number of parts"
        raise ScenarioError(f"gpus: {dataset} has no profile at {parts} parts; {there}")
    if not known:
        return _outlined(dataset, parts), "by assumption"
    if parts > known[-1]:
        return _carried(dataset, parts, 1), f"extrapolated from the profile at {known[-1]} partitions"
    found = interpolation(dataset, parts)
    assert found is not None
    note = f"interpolated between profiles at {found.low} and {found.high} partitions ({_stated(found.missed)})"
    return _interpolated(dataset, found.low, found.high, parts), note


@cache
def profile_end(dataset: str, parts: int, boundary: int, cross: int) -> StoredProfile:
    """The profile with the least, likely or most (0, 1, 2) boundary nodes and cross edges.

    Publications leave the cross edges per boundary node open; for an outline, and at numbers of parts that nobody
    counted, the boundary too (`left_open`). An interpolated profile adds the error of its neighbours when they are
    interpolated themselves. Raises as `profile_at`.
    """
    if bundled_parts(dataset) and bundled_parts(dataset)[-1] < parts <= MOST_PARTS:
        profile = _carried(dataset, parts, boundary)
    elif not bundled_parts(dataset) and parts in profiled_parts(dataset):
        profile = _outlined(dataset, parts, boundary)
    else:
        profile, _ = profile_at(dataset, parts)
    if interpolation(dataset, parts) is not None:
        profile = _missed(dataset, parts, profile, boundary, cross)
    elif parts in bundled_parts(dataset) and boundary != 1:
        by = uncounted(dataset, parts)[0 if boundary == 0 else 1]
        profile = profile if by == 1.0 else rescaled_profile(profile, parts, means_of(profile).changed(by, 1.0, by))
    low, high = profile.origin.cross_range
    return with_cross_edges(profile, (low, 1.0, high)[cross])


def uncounted(dataset_name: str, parts: int) -> tuple[float, float]:
    """Least and most boundary nodes over the likely ones of a profile whose mean follows published counts: (1, 1) at
    those counts, and for a dataset without any.
    """
    rows = dataset(dataset_name).boundary if dataset_name in datasets() else ()
    return left_open(rows, parts) if rows else (1.0, 1.0)


def _counted(dataset_name: str, parts: int) -> str:
    """How the mean boundary of a bundled profile follows published counts, in words; empty if it is one of them."""
    if uncounted(dataset_name, parts) == (1.0, 1.0):
        return ""
    counts = [row.partitions for row in dataset(dataset_name).boundary]
    below, above = (max((n for n in counts if n < parts), default=0), min((n for n in counts if n > parts), default=0))
    if below and above:
        return f", its mean between the counts at {below} and {above}"
    return f", its mean by the law from the count at {below or above}"


def profile_without(dataset: str, parts: int) -> StoredProfile | None:
    """The interpolated replacement of the bundled profile at `parts`; None for the first and the last."""
    known = bundled_parts(dataset)
    if parts in (known[0], known[-1]):
        return None
    return _interpolated(dataset, *_neighbours(known, parts), parts)


@cache
def left_out_error(dataset: str, parts: int) -> InterpolationError | None:
    """The error of interpolating the bundled profile at `parts`; None for the first and the last."""
    blind = profile_without(dataset, parts)
    if blind is None:
        return None
    pairs = zip(_counts(blind), _counts(bundled_profile(dataset, parts)), strict=True)
    return InterpolationError(*(abs(guess / true - 1.0) for guess, true in pairs))


@cache
def interpolation(dataset: str, parts: int) -> Interpolation | None:
    """The neighbours of the profile at `parts`; None if it is bundled or made from an outline."""
    known = bundled_parts(dataset)
    if not known or parts in known or not known[0] < parts < known[-1]:
        return None
    low, high = _neighbours(known, parts)
    made = [missed for count in (low, high) if (missed := left_out_error(dataset, count)) is not None]
    most = InterpolationError(*map(max, zip(*map(astuple, made), strict=True))) if made else None
    return Interpolation(low, high, most)


def _counts(profile: StoredProfile) -> tuple[float, float, float, float]:
    """The counts that `InterpolationError` compares."""
    access = expected_access(profile, sampler="vr", epsilon=0.1, cache=CacheSize(), policy="inclusion", feature_width=1)
    boundary = profile.boundary_nodes
    crossing = float(profile.boundary_entries.sum())
    return float(boundary.mean()), float(boundary.max()), crossing, float(access.rows.sum())


def _stated(missed: InterpolationError | None) -> str:
    if missed is None:
        return "unknown error"
    return (
        f"leave-one-out error: boundary nodes {100 * missed.boundary:.0f} %, of the largest worker "
        f"{100 * missed.largest:.0f} %, entries that cross {100 * missed.cross_entries:.0f} %, rows needed at rate 0.1 "
        f"{100 * missed.rows:.0f} %"
    )


def _neighbours(known: tuple[int, ...], parts: int) -> tuple[int, int]:
    """The bundled numbers next below and above `parts`."""
    return max(count for count in known if count < parts), min(count for count in known if count > parts)


def _means(dataset: str, low: int, high: int, parts: int) -> BoundaryMeans:
    ends = [(count, means_of(bundled_profile(dataset, count))) for count in (low, high)]
    return between(ends[0], ends[1], parts)


def _interpolated(dataset: str, low: int, high: int, parts: int) -> StoredProfile:
    ends = [bundled_profile(dataset, count) for count in (low, high)]
    nearer = ends[0] if parts * parts < low * high else ends[1]
    profile = rescaled_profile(nearer, parts, _means(dataset, low, high, parts))
    # The uncertainty of either neighbour applies between them.
    least = min(end.cross_edges_mean * end.origin.cross_range[0] for end in ends) / profile.cross_edges_mean
    most = max(end.cross_edges_mean * end.origin.cross_range[1] for end in ends) / profile.cross_edges_mean
    residuals = {**(ends[0].origin.residuals or {}), **(ends[1].origin.residuals or {})}
    for end in ends:
        own = (end.origin.residuals or {}).get(str(end.parts))
        residuals |= {} if own is None else {str(end.parts): own}
    origin = replace(
        nearer.origin,
        source="interpolated",
        graph_hash="",
        residuals=residuals,
        cross_range=(min(1.0, least), max(1.0, most)),
    )
    return replace(profile, origin=origin)


def _missed(dataset: str, parts: int, likely: StoredProfile, boundary: int, cross: int) -> StoredProfile:
    """The interpolated profile at either end of the error of its boundary nodes and cross entries."""
    found = interpolation(dataset, parts)
    if found is None or found.missed is None or (boundary, cross) == (1, 1):
        return likely
    open_ends = uncounted(dataset, parts)
    nodes, most, crossing = (
        (min(1.0 / (1.0 + error), low), 1.0, max(1.0 / (1.0 - min(error, WORST)), high))
        for error, (low, high) in (
            (found.missed.boundary, open_ends),
            (found.missed.largest, open_ends),
            (found.missed.cross_entries, (1.0, 1.0)),
        )
    )
    means = _means(dataset, found.low, found.high, parts)
    return rescaled_profile(likely, parts, means.changed(nodes[boundary], crossing[cross], most[boundary]))


@cache
def _carried(dataset_name: str, parts: int, boundary: int) -> StoredProfile:
    """The shape of the last bundled profile at more parts; boundary: least, likely or most (0, 1, 2).

    The mean boundary grows as published counts and the law of other graphs say (`growth_of`), and the crossing entries
    with it, as 1 - exp(-c * boundary over inner nodes). The largest worker stays as far above the mean, and owners keep
    their neighbourhood.
    """
    last = bundled_profile(dataset_name, bundled_parts(dataset_name)[-1])
    means = means_of(last)
    by = growth_of(dataset(dataset_name), last.parts, parts)[boundary]
    ratio = means.boundary * by
    cross = min(MOST_CROSSING, -math.expm1(math.log1p(-means.cross) * by))
    shape = coarser(last, FEWER_CELLS) if parts > MANY_PARTS else last
    profile = rescaled_profile(shape, parts, BoundaryMeans(ratio, cross, means.largest))
    return replace(profile, origin=replace(profile.origin, source="interpolated", graph_hash=""))


FEWER_CELLS: Final = 3
"""Cells of the last profile that are joined above `MANY_PARTS` parts: 1,024 parts have 17 million cells, not 50."""


def _outlined_parts(dataset: str) -> tuple[int, ...]:
    """The numbers of parts of the dataset's outline, empty without an outline."""
    outline = outline_named(dataset)
    return () if outline is None else outline.parts


@cache
def _outlined(dataset: str, parts: int, end: int = 1) -> StoredProfile:
    outline = outline_named(dataset)
    assert outline is not None
    return size_only_profile(outline, parts, end)
