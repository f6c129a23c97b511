"""The stored boundary profile: a partition's boundary nodes by owner, inclusion, cross edges and degree, in cells.

It is enough to sample access counts of the samplers `uniform` and `vr` without the graph, at any rate and for any
static cache. Its file is version 1 of kind `profile`, with a checksum per section (see `gcnsim.core.container`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Final

import numpy as np

from gcnsim.core.container import Sections, kind_of, read_sections, section_of, write_sections
from gcnsim.core.errors import FileError
from gcnsim.core.fields import AMOUNT, COUNT, POSITIVE, SHARE, Number, check_values
from gcnsim.core.ids import AnyArray, FloatArray, IntArray, frozen
from gcnsim.core.processes import parallel_map
from gcnsim.graph.parts import Part, Partitioning
from gcnsim.trace.bins import (
    RATES,
    Bins,
    cell_means,
    cell_of_nodes,
    cells_per_worker,
    node_type,
    reweight_factor,
    typical_edges,
)
from gcnsim.trace.counts import cross_edges
from gcnsim.workload.draws import inclusion
from gcnsim.workload.samplers import sampler as sampling_rule

SAMPLERS: Final = ("uniform", "vr")
"""The samplers whose inclusion a stored profile has; with all norms 1."""

SIZES: Final = ("inner_nodes", "inner_entries", "boundary_entries")
"""The counts of every worker in a stored profile, in addition to its cells."""


@dataclass(frozen=True, slots=True)
class ProfileOrigin:
    """The origin of a profile.

    source: `graph`, or `surrogate` for a random graph that replaces the dataset `name`. surrogate_seed, model: how it
    was generated, None for a graph. scale: share of the dataset's nodes in the partitioned graph; counts are scaled
    back. residuals: surrogate over published mean boundary nodes, minus 1, by published number of parts. cross_range:
    factors (low, high) on the cross edges per boundary node, for the range that publications allow.
    """

    source: str
    name: str
    graph_hash: str
    partition_method: str
    partition_seed: int
    surrogate_seed: int | None = None
    model: Mapping[str, Any] | None = None
    scale: float = 1.0
    residuals: Mapping[str, float] | None = None
    cross_range: tuple[float, float] = (1.0, 1.0)


@dataclass(frozen=True, slots=True)
class StoredProfile:
    """Workers' sizes, int64[P] each: inner nodes, stored entries to nodes of the same and of other parts; cells by
    sampler.
    """

    origin: ProfileOrigin
    inner_nodes: IntArray
    inner_entries: IntArray
    boundary_entries: IntArray
    cells: Mapping[str, Bins]

    @property
    def parts(self) -> int:
        """P, the number of workers."""
        return int(self.inner_nodes.size)

    @property
    def pairs(self) -> IntArray:
        """Boundary nodes of n owned by m, int64[P, P]."""
        pairs: IntArray = self.cells[SAMPLERS[0]].nodes.sum(axis=2)
        return pairs

    @property
    def boundary_nodes(self) -> IntArray:
        """B of every worker, int64[P]."""
        boundary: IntArray = self.pairs.sum(axis=1)
        return boundary

    @property
    def entries(self) -> IntArray:
        """Stored entries of every worker's rows, int64[P]."""
        return self.inner_entries + self.boundary_entries

    @property
    def cross_edges_mean(self) -> float:
        """The mean cross edges of a boundary node over all workers; 0 without a boundary."""
        return float(self.boundary_entries.sum() / max(1, int(self.boundary_nodes.sum())))


def stored_profile(parts: Sequence[Part], owners: Partitioning, *, processes: int = 1) -> StoredProfile:
    """The profile of real parts. Prepares one part's samplers at a time."""

    def described(part: Part) -> tuple[list[Bins], int]:
        cross = cross_edges(part)
        return [_cells(part, cross, name) for name in SAMPLERS], int(cross.sum())

    every = parallel_map(described, parts, processes)
    boundary = np.array([crossing for _, crossing in every], np.int64)
    return StoredProfile(
        origin=ProfileOrigin(
            source="graph",
            name=owners.graph_name,
            graph_hash=owners.graph_hash,
            partition_method=owners.method,
            partition_seed=owners.seed,
        ),
        inner_nodes=frozen(np.array([part.inner_nodes for part in parts], np.int64)),
        inner_entries=frozen(np.array([part.entries for part in parts], np.int64) - boundary),
        boundary_entries=frozen(boundary),
        cells={name: _joined([binses[k] for binses, _ in every]) for k, name in enumerate(SAMPLERS)},
    )


def enlarged(profile: StoredProfile, scale: float) -> StoredProfile:
    """The profile of a graph from one with a share `scale` of its nodes: counts over `scale`, degrees unchanged."""
    if scale == 1.0:
        return profile
    cells = {
        name: replace(cell, nodes=frozen(_scaled_cells(cell.nodes, scale).astype(cell.nodes.dtype)))
        for name, cell in profile.cells.items()
    }
    sizes = {name: np.rint(getattr(profile, name) / scale).astype(np.int64) for name in SIZES}
    # Pairs are rounded one by one; if nodes have one cross edge each, there may be fewer cross edges than nodes.
    boundary = next(iter(cells.values())).nodes.sum(axis=(1, 2), dtype=np.int64)
    sizes["boundary_entries"] = np.maximum(sizes["boundary_entries"], boundary)
    return replace(
        profile,
        cells=cells,
        origin=replace(profile.origin, scale=scale),
        **{name: frozen(size) for name, size in sizes.items()},
    )


def _scaled_cells(nodes: IntArray, scale: float) -> IntArray:
    """`nodes` int64[P, P, K] over `scale`, rounded cumulatively; a pair has the same number under every sampler."""
    ends = np.rint(np.cumsum(nodes, axis=2, dtype=np.int64) / scale).astype(np.int64)
    return np.diff(ends, axis=2, prepend=0)


def _cells(part: Part, cross: IntArray, name: str) -> Bins:
    """The cells of one worker, without the axis of workers."""
    rule = sampling_rule(name)(part, None)
    chance, kept_shares = [], []
    crossing = part.columns >= part.inner_nodes
    outside = int(np.count_nonzero(crossing))
    for rate in RATES:
        p = rule.probabilities(rate).p
        chance.append(inclusion(part, p))
        beyond = float(p[crossing].sum(dtype=np.float64))
        within = float(p.sum(dtype=np.float64)) - beyond
        kept_shares.append((within / max(1, part.entries - outside), beyond / max(1, outside)))
    return _gathered(part, cross, np.stack(chance), np.array(kept_shares))


def _gathered(part: Part, cross: IntArray, chance: FloatArray, kept_shares: FloatArray) -> Bins:
    count = cells_per_worker(part.parts)
    cell = cell_of_nodes(chance, part.boundary_degree, count)
    owner = np.repeat(np.arange(part.parts), np.diff(part.boundary_ptr))
    nodes = np.bincount(owner * count + cell, minlength=part.parts * count).reshape(part.parts, count)
    edges = typical_edges(chance, cell, count)
    middle = -np.expm1(edges * np.log1p(-np.array(RATES))[:, None])
    degree = np.log1p(part.boundary_degree)
    centre = cell_means(degree, cell, count)
    rows = [np.bincount(owner, weights=row, minlength=part.parts).astype(np.float64) for row in chance]
    return Bins(
        nodes=nodes.astype(node_type(part.parts)),
        cross_edges=cell_means(cross, cell, count),
        degree=centre,
        degree_spread=np.sqrt(cell_means((degree - centre[cell]) ** 2, cell, count)),
        effective=edges.T,
        tilt=np.stack(
            [reweight_factor(nodes, mean, needed) for mean, needed in zip(middle, rows, strict=True)], axis=1
        ),
        inner_kept=kept_shares[:, 0],
        boundary_kept=kept_shares[:, 1],
    )


def _joined(workers: Sequence[Bins]) -> Bins:
    """One set of cells with the axis of workers in front."""
    return Bins(*(frozen(np.stack([getattr(one, field.name) for one in workers])) for field in fields(Bins)))


KIND: Final = "profile"
VERSION: Final = 1
SOURCES: Final = ("graph", "surrogate", "interpolated", "outline")
"""The possible origins of a profile."""

_ORIGIN_TYPES: dict[str, tuple[type, ...]] = {
    "source": (str,),
    "name": (str,),
    "graph_hash": (str,),
    "partition_method": (str,),
    "partition_seed": (int,),
    "surrogate_seed": (int, type(None)),
    "model": (dict, type(None)),
    "scale": (float, int),
    "residuals": (dict, type(None)),
    "cross_range": (list,),
}


def write_profile(path: str | Path, profile: StoredProfile) -> str:
    """Write `profile` to `path` atomically; return its content hash. Raises FileError if it cannot be written."""
    arrays: dict[str, AnyArray] = {name: getattr(profile, name) for name in SIZES}
    for sampler, cells in profile.cells.items():
        for field in fields(Bins):
            array = getattr(cells, field.name)
            arrays[f"{sampler}.{field.name}"] = array.astype(_stored(field.name))
    meta = {"origin": asdict(profile.origin), "parts": profile.parts, "rates": list(RATES)}
    return write_sections(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


def read_profile(path: str | Path) -> StoredProfile:
    """Read the profile at `path` and check that its sections are consistent.

    Raises FileError if the file is missing, truncated, altered, of another kind, or inconsistent.
    """
    stored = read_sections(path, kind=KIND, version=VERSION)
    parts = stored.meta.get("parts")
    if type(parts) is not int or parts < 1:
        raise FileError(f"{path}: parts is {parts!r}; allowed: 1 or more")
    if stored.meta.get("rates") != list(RATES):
        raise FileError(f"{path}: rates are {stored.meta.get('rates')!r}, this gcnsim reads {list(RATES)}")
    sizes = {name: _section(path, stored, name, "<i8", (parts,), COUNT) for name in SIZES}
    check_values(sizes["inner_nodes"], POSITIVE, f"{path}: section 'inner_nodes'")
    profile = StoredProfile(
        origin=_origin(path, stored.meta.get("origin")),
        cells={sampler: _read_cells(path, stored, sampler, parts) for sampler in SAMPLERS},
        **sizes,
    )
    _check(path, profile)
    return profile


def is_profile(path: str | Path) -> bool:
    """Whether the file at `path` exists and is a profile."""
    try:
        return kind_of(path) == KIND
    except FileError:
        return False


def _stored(name: str) -> str:
    return "<u4" if name == "nodes" else "<f4"


def _read_cells(path: str | Path, stored: Sections, sampler: str, parts: int) -> Bins:
    nodes = stored.arrays.get(f"{sampler}.nodes")
    cells = nodes.shape[2] if nodes is not None and nodes.ndim == 3 else 0
    rates = len(RATES)
    shapes = {
        "nodes": (parts, parts, cells),
        "effective": (parts, cells, rates),
        "tilt": (parts, parts, rates),
        "inner_kept": (parts, rates),
        "boundary_kept": (parts, rates),
    }
    found = {}
    for field in fields(Bins):
        shape = shapes.get(field.name, (parts, cells))
        rule = SHARE if field.name.endswith("_kept") else AMOUNT
        array = _section(path, stored, f"{sampler}.{field.name}", _stored(field.name), shape, rule)
        found[field.name] = frozen(array.astype(node_type(parts) if field.name == "nodes" else np.float64))
    return Bins(**found)


def _section(
    path: str | Path, stored: Sections, name: str, dtype: str, shape: tuple[int, ...], rule: Number = AMOUNT
) -> AnyArray:
    array = section_of(path, stored, name, dtype, len(shape), shape)
    check_values(array, rule, f"{path}: section {name!r}")
    return array


def _check(path: str | Path, profile: StoredProfile) -> None:
    """Raise FileError if the sections contradict one another."""
    for sampler, cells in profile.cells.items():
        pairs = cells.nodes.sum(axis=2)
        if not np.array_equal(pairs, profile.pairs):
            raise FileError(f"{path}: section '{sampler}.nodes' has other boundary nodes than '{SAMPLERS[0]}.nodes'")
        if pairs.diagonal().any():
            raise FileError(f"{path}: section '{sampler}.nodes' has boundary nodes that a worker itself owns")
    if (profile.boundary_nodes > profile.boundary_entries).any():
        raise FileError(f"{path}: section 'boundary_entries' has fewer cross edges than there are boundary nodes")


def _origin(path: str | Path, stored: Any) -> ProfileOrigin:
    if not isinstance(stored, Mapping) or stored.keys() != _ORIGIN_TYPES.keys():
        raise FileError(f"{path}: origin is incomplete; wanted {', '.join(_ORIGIN_TYPES)}")
    for name, types in _ORIGIN_TYPES.items():
        if type(stored[name]) not in types:
            raise FileError(f"{path}: origin.{name} is {stored[name]!r}, wanted {types[0].__name__}")
    if stored["source"] not in SOURCES:
        raise FileError(f"{path}: origin.source is {stored['source']!r}; allowed: {', '.join(SOURCES)}")
    if not 0.0 < stored["scale"] <= 1.0:
        raise FileError(f"{path}: origin.scale is {stored['scale']!r}; allowed: above 0, at most 1")
    for count, missed in (stored["residuals"] or {}).items():
        if not count.isdecimal() or type(missed) not in (float, int):
            raise FileError(f"{path}: origin.residuals has {missed!r} at {count!r}; wanted numbers by number of parts")
    ends = stored["cross_range"]
    low, high = ends if len(ends) == 2 and {type(end) for end in ends} <= {float, int} else (0.0, 0.0)
    if not 0.0 < low <= 1.0 <= high:
        raise FileError(f"{path}: origin.cross_range is {stored['cross_range']!r}, wanted a factor to 1, one from 1")
    return ProfileOrigin(**{**stored, "cross_range": (low, high)})
