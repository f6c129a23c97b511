"""Facts of a graph and of a partition: degrees, components, homophily; even parts, and what crosses between them.

Some properties of a graph may make an answer misleading: `graph_notes` and `graph_warnings` report them. Some
partitions make an answer that rests on them worthless; `partition_warnings` says so.

Scatter over METIS' seeds: a shipped profile is of one partition. Whoever partitions the graph anew gets another, as did
the authors of published tables. How much a partition of a dataset depends on the seed was measured on its surrogate
(docs/surrogates.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from math import exp, log, sqrt
from pathlib import Path
from statistics import NormalDist
from typing import Any, Final

import numpy as np

from gcnsim.core.errors import plural
from gcnsim.core.ids import AnyArray, BoolArray, Int32Array, IntArray
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph.csr import Cleaning, Graph
from gcnsim.graph.formats.columns import whole_number
from gcnsim.graph.parts import Part, Partitioning


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, least and most over the parts."""

    mean: float
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class PartitionFacts:
    """The summary of a split graph."""

    parts: int
    nodes: int
    inner: Spread
    boundary: Spread
    balance: float
    """Inner nodes of the largest part over the mean: 1 when all are equal."""
    entry_balance: float
    """The same for the stored entries of the parts' rows, which determine a worker's aggregation."""
    boundary_per_inner: float
    """Sum of |B_n| over sum of |I_n|."""
    replication: float
    """Copies per node, including the owner's: (sum of |I_n| + |B_n|) / N."""
    cut_entries: int
    """Stored entries whose ends have different owners: twice the edges cut."""
    communication_volume: int
    """Sum of |B_n|: rows that all workers receive for one layer (BNS-GCN, Eq. 3)."""


def partition_facts(parts: Sequence[Part]) -> PartitionFacts:
    """The summary of all workers' parts, as `split` returns them."""
    inner = [part.inner_nodes for part in parts]
    boundary = [part.boundary_nodes for part in parts]
    entries = [part.entries for part in parts]
    nodes, volume = sum(inner), sum(boundary)
    return PartitionFacts(
        parts=len(parts),
        nodes=nodes,
        inner=spread_of(inner),
        boundary=spread_of(boundary),
        balance=max(inner) * len(parts) / nodes,
        entry_balance=max(entries) * len(parts) / max(sum(entries), 1),
        boundary_per_inner=volume / nodes,
        replication=(nodes + volume) / nodes,
        cut_entries=sum(int(np.count_nonzero(part.columns >= part.inner_nodes)) for part in parts),
        communication_volume=volume,
    )


def spread_of(counts: Sequence[int]) -> Spread:
    """Mean, least and most of one count per part."""
    return Spread(sum(counts) / len(counts), min(counts), max(counts))


ROLES: Final = ("training", "validation", "test")


def role_spreads(masks: Sequence[BoolArray] | None, owners: Partitioning) -> Mapping[str, Spread]:
    """Nodes of each role per part, by name: of `masks`, bool[N] in the order of `ROLES`.

    A role without nodes is left out; None: unknown.
    """
    return {
        role: spread_of(np.bincount(owners.owner[mask], minlength=owners.parts).tolist())
        for role, mask in zip(ROLES, masks or (), strict=False)
        if mask.any()
    }


def partition_warnings(parts: Sequence[Part]) -> tuple[str, ...]:
    """A warning if `parts` are degenerate: some without edges, or most edges in one.

    Most: more than halfway from an even share to all of them.
    """
    count = len(parts)
    if count < 2:
        return ()
    warnings = []
    idle = sum(not part.entries for part in parts)
    if idle:
        warnings.append(f"{idle} of {count} parts {'has' if idle == 1 else 'have'} nodes but no edges")
    share = max(part.entries for part in parts) / max(sum(part.entries for part in parts), 1)
    if share > (1 + 1 / count) / 2:
        warnings.append(f"one of {count} parts has {100 * share:.0f} % of the edges")
    return (f"degenerate partition: {', '.join(warnings)}",) if warnings else ()


FILE: Final = Path(__file__).resolve().parent.parent / "data" / "partition_spread.yaml"

FIGURES: Final = ("boundary_mean", "boundary_largest", "cross_entries", "entries_largest")

ALIKE: Final = {"reddit-train": "reddit", "yelp-train": "yelp"}
"""Datasets that are a subset of a measured one."""

TWO_DRAWS: Final = sqrt(2.0)
"""The spread of the ratio of two partitions (the known one and another), relative to the spread of either."""

QUANTILE: Final = NormalDist().inv_cdf(0.95)
"""Standard deviations from the mean to either end of a 90 % interval."""


@dataclass(frozen=True, slots=True)
class SeedVariation:
    """Standard deviations, over the seeds of METIS, of the logarithms of a partition's counts.

    boundary_mean, boundary_largest: boundary nodes of the mean and of the largest worker. cross_entries: crossing
    entries. entries_largest: entries of the largest worker. source: what was measured, in words.
    """

    boundary_mean: float
    boundary_largest: float
    cross_entries: float
    entries_largest: float
    source: str

    def factors(self, figure: str) -> tuple[float, float]:
        """The 90 % interval of another partition's `figure` over this one's: (low, high)."""
        wide = QUANTILE * TWO_DRAWS * float(getattr(self, figure))
        return exp(-wide), exp(wide)


def partition_scatter(dataset: str, parts: int) -> SeedVariation:
    """The variation of partitions of `dataset` into `parts`: for each count, the largest of its measures.

    For an unmeasured dataset, the largest of the measured ones.
    """
    known = _known()
    own = ALIKE.get(dataset, dataset)
    chosen = {own: known[own]} if own in known else known
    each = [_at(entry, parts) for entry in chosen.values()]
    seeds = ", ".join(
        f"{entry['seeds']} seeds at {100 * entry['scale']:g} % of {name}" for name, entry in chosen.items()
    )
    values = dict(zip(FIGURES, map(max, zip(*each, strict=True)), strict=True))
    widest = "" if own in known else "; the widest of them"
    return SeedVariation(**values, source=f"{seeds}, and what neighbouring numbers of parts miss{widest}")


def _at(entry: Mapping[str, Any], parts: int) -> list[float]:
    """The figures at `parts`: between measured numbers of parts straight in their logarithm, constant beyond."""
    places = [log(row["parts"]) for row in entry["rows"]]
    return [
        max(
            float(np.interp(log(parts), places, [row[name] for row in entry["rows"]])),
            entry["neighbours"][name],
            entry.get("counted", {}).get(name, 0.0),
        )
        for name in FIGURES
    ]


@cache
def _known() -> Mapping[str, Mapping[str, Any]]:
    found: Mapping[str, Mapping[str, Any]] = read_yaml(FILE)["datasets"]
    return found


_CHUNK = 2**23
_PERCENTILES = (10, 25, 50, 75, 90, 99)


@dataclass(frozen=True, slots=True)
class DegreeBin:
    """Nodes with a degree from `least` to `most`, and the stored entries of their rows."""

    least: int
    most: int
    nodes: int
    entries: int


@dataclass(frozen=True, slots=True)
class Components:
    """Connected components, isolated nodes counted as one each. largest: nodes of the largest."""

    count: int
    largest: int


@dataclass(frozen=True, slots=True)
class Homophily:
    """How often the two ends of an edge have the same class.

    edge: share of the edges between nodes of known class whose ends have the same class (Zhu et al., "Beyond Homophily
    in Graph Neural Networks", 2020). adjusted: (edge - s) / (1 - s), with s the sum over classes of (degrees of the
    class / all degrees)^2, so that 0 corresponds to chance for any class sizes (Platonov et al., "Characterizing Graph
    Datasets for Node Classification", 2023); None if all degrees belong to one class. edges: the number of counted
    edges.
    """

    edge: float
    adjusted: float | None
    edges: int


def degree_bins(graph: Graph) -> tuple[DegreeBin, ...]:
    """The degrees by powers of two: 0, 1, 2-3, 4-7, ..., up to the largest."""
    degrees = graph.degrees
    place = np.zeros(degrees.size, dtype=np.int64)
    place[degrees > 0] = np.frexp(degrees[degrees > 0])[1]
    nodes = np.bincount(place)
    entries = np.bincount(place, weights=degrees).astype(np.int64)
    return tuple(
        DegreeBin(2 ** (k - 1) if k else 0, 2**k - 1, int(nodes[k]), int(entries[k])) for k in range(nodes.size)
    )


def degree_percentiles(graph: Graph) -> dict[str, float]:
    """The 10, 25, 50, 75, 90 and 99 % quantiles of the degrees, by `p10`, ..., linearly interpolated."""
    values = np.percentile(graph.degrees, _PERCENTILES)
    return {f"p{share}": float(value) for share, value in zip(_PERCENTILES, values, strict=True)}


def components(graph: Graph) -> Components:
    """The connected components. Takes about 20 bytes per stored entry."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    values = np.ones(graph.entries, dtype=np.float64)  # the type that scipy would convert to anyway
    matrix = csr_array((values, graph.indices, graph.indptr), shape=(graph.nodes, graph.nodes))
    count, member = connected_components(matrix, directed=False)
    return Components(int(count), int(np.bincount(member).max()))


def homophily(graph: Graph, labels: AnyArray) -> Homophily | None:
    """The homophily for one class per node, labels int64[N], negative: unknown.

    None if no edge has two known classes.
    """
    degrees = np.zeros(int(labels.max(initial=-1)) + 1, dtype=np.int64)
    same = 0
    for rows, columns in _entries(graph):
        first, second = labels[rows], labels[columns]
        known = (first >= 0) & (second >= 0)
        same += int(np.count_nonzero(known & (first == second)))
        degrees += np.bincount(first[known], minlength=degrees.size)
    total = int(degrees.sum())
    if not total:
        return None
    chance = float(np.square(degrees / total).sum())
    share = same / total
    adjusted = (share - chance) / (1 - chance) if np.count_nonzero(degrees) > 1 else None
    return Homophily(share, adjusted, total // 2)


def _entries(graph: Graph) -> Iterator[tuple[IntArray, Int32Array]]:
    """Rows and columns of the stored entries, in chunks of whole rows."""
    begin = 0
    while begin < graph.nodes:
        start = graph.indptr[begin]
        end = max(begin + 1, int(np.searchsorted(graph.indptr, start + _CHUNK, side="right")) - 1)
        rows = np.repeat(np.arange(begin, end), np.diff(graph.indptr[begin : end + 1]))
        yield rows, graph.indices[start : graph.indptr[end]]
        begin = end


MANY_ISOLATED = 0.05
"""The share of isolated nodes above which the file is probably wrong."""

_WORD = re.compile(r"[^\W\d]+")


def graph_warnings(graph: Graph) -> tuple[str, ...]:
    """One line for each property that the graph's owner probably did not intend.

    Many isolated nodes usually come from ids with gaps, because every number below the largest id is a node. A first
    line of names that appear on no other line may be a header. Names may be one number in two spellings.
    """
    return tuple(line for line in (_isolated(graph), _first_line(graph), _spelled_twice(graph)) if line)


def graph_notes(graph: Graph) -> tuple[str, ...]:
    """The warnings, preceded by a line on what loading dropped: loops, duplicates, columns and arrays."""
    left_out = replace(graph.cleaning, reverse_entries_added=0, second_kind_from=0)
    kinds = replace(Cleaning(), second_kind_from=graph.cleaning.second_kind_from)
    notes = [f"{graph.name}: {cleaning}" for cleaning in (left_out, kinds) if cleaning != Cleaning()]
    return (*notes, *graph_warnings(graph))


def _isolated(graph: Graph) -> str | None:
    isolated = int(np.count_nonzero(graph.degrees == 0))
    if isolated <= MANY_ISOLATED * graph.nodes:
        return None
    note = f"{graph.name}: {isolated:,} of {graph.nodes:,} nodes are isolated (no edges)"
    if not graph.unused_ids:
        return note
    do = "does" if graph.unused_ids == 1 else "do"
    return (
        f"{note}: the ids have gaps, {plural(graph.unused_ids, 'number')} {do} not occur; --ids compact leaves them out"
    )


def _first_line(graph: Graph) -> str | None:
    names, other = graph.original_ids, graph.cleaning.second_kind_from or 1
    if not isinstance(names, tuple) or graph.nodes < 4 or list(graph.indices[: graph.indptr[1]]) != [other]:
        return None
    first, second = names[0], names[other]
    if graph.degrees[other] != 1 or not all(_WORD.fullmatch(name) for name in (first, second)):
        return None
    return (
        f"{graph.name}: the first line ({first}, {second}) may be a header, because its names occur on no other line; "
        f"--ends {first},{second} (workload.ends) treats it as one"
    )


def _spelled_twice(graph: Graph) -> str | None:
    """A line on names that are the same number, such as `1e+05` and `100000`."""
    if not isinstance(graph.original_ids, tuple):
        return None
    names, pairs = graph.original_ids, list[tuple[str, str]]()
    begin = graph.cleaning.second_kind_from
    for kind in (names[:begin], names[begin:]):
        met: dict[int, str] = {}
        for name in kind:
            number = whole_number(name)
            if number is not None and met.setdefault(number, name) != name:
                pairs.append((met[number], name))
    if not pairs:
        return None
    more = f" (and {len(pairs) - 1:,} more)" if len(pairs) > 1 else ""
    return (
        f"{graph.name}: {' and '.join(pairs[0])}{more} are two names, though the same number: two nodes; --ids compact "
        "reads numbers"
    )
