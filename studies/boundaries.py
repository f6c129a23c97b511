"""What partitions of real graphs look like: the measurements behind the assumptions for published datasets.

Prints the tables of docs/checks.md: boundary and cross edges, how uneven the parts are, and the rows that the
variance-reduction sampler really needs beside the first-order rule that stands in for it without a graph.
Needs GCNSIM_DATA.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from gcnsim.core.ids import AnyArray, FloatArray, frozen
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split
from gcnsim.trace.counts import BoundaryProfile, class_inclusion, cross_edges
from gcnsim.workload.draws import inclusion
from gcnsim.workload.samplers import sampler

GRAPHS = ("acl_papers", "tolokers", "amazon_cs", "coauthor_phy")
PARTS = (4, 6, 8)
EPSILONS = (0.5, 0.1, 0.01)
PER_SERVER = 2

SHAPE = "| graph | parts | boundary/inner | cross fraction | cross fraction / (b/i) | mean m | std of log m |"
UNEVEN = "| graph | parts | inner nodes | stored entries | boundary nodes | cross entries |"
OWNED = "| graph | parts | on other servers | if alike | ratio | hits, 30 % cache | of a profile | ratio |"
ROWS = "| graph | parts | " + " | ".join(f"rows, epsilon {epsilon:g}" for epsilon in EPSILONS) + " |"


def main() -> int:
    """Measure all graphs; return the exit code."""
    folder = os.environ.get("GCNSIM_DATA")
    if not folder:
        sys.stdout.write("skipped: GCNSIM_DATA is not set\n")
        return 0
    shape, uneven, owned, rows = [], [], [], []
    for name in GRAPHS:
        graph = load_graph(Path(folder) / f"{name}.npz")
        for count in PARTS:
            parts = split(graph, partition_graph(graph, count))
            lead = f"| {name} | {count} | "
            shape.append(lead + shape_of(parts))
            uneven.append(lead + unevenness_of(parts))
            owned.append(lead + ownership_of(parts) + hits_of(parts))
            rows.append(lead + rows_of(parts))
    for head, table in ((SHAPE, shape), (UNEVEN, uneven), (OWNED, owned), (ROWS, rows)):
        sys.stdout.write("\n".join([head, "|---" * (head.count("|") - 1) + "|", *table]) + "\n\n")
    return 0


def shape_of(parts: tuple[Part, ...]) -> str:
    """Boundary over inner nodes, cross entries over all, and the cross edges m of boundary nodes."""
    profile = profile_of(parts)
    ratio = profile.boundary_nodes.sum() / profile.inner_nodes.sum()
    weights = profile.nodes.sum(axis=(0, 1))
    log = np.log(profile.cross_edges)
    centre = np.average(log, weights=weights)
    spread = np.sqrt(np.average((log - centre) ** 2, weights=weights))
    mean = np.average(profile.cross_edges, weights=weights)
    cross = profile.cross_fraction
    return f"{ratio:.2f} | {cross:.3f} | {cross / ratio:.3f} | {mean:.1f} | {spread:.2f} |"


def unevenness_of(parts: tuple[Part, ...]) -> str:
    """Largest part over mean part, for all that a worker's time depends on."""
    profile = profile_of(parts)
    loads: list[AnyArray] = [profile.inner_nodes, profile.entries, profile.boundary_nodes, profile.boundary_entries]
    return " | ".join(f"{load.max() / load.mean():.2f}" for load in loads) + " |"


def ownership_of(parts: tuple[Part, ...]) -> str:
    """Share of boundary nodes owned on other servers, two workers each, beside what equal ownership would give."""
    held = [np.diff(part.boundary_ptr) for part in parts]
    server = np.arange(len(parts)) // PER_SERVER
    away = sum(int(counts[server != server[rank]].sum()) for rank, counts in enumerate(held))
    found = away / sum(int(counts.sum()) for counts in held)
    equal = (len(parts) - PER_SERVER) / (len(parts) - 1)
    return f"{found:.3f} | {equal:.3f} | {found / equal:.2f} | "


def hits_of(parts: tuple[Part, ...]) -> str:
    """Expected hit rate of a 30 % cache by inclusion at epsilon 0.1, beside one that ranks by cross edges alone."""
    true = profiled = requested = seen = 0.0
    for part in parts:
        chance = inclusion(part, sampler("vr")(part, None).probabilities(0.1).p)
        cross = np.bincount(part.columns[part.columns >= part.inner_nodes] - part.inner_nodes, minlength=chance.size)
        assumed = 1.0 - 0.9 ** cross.astype(np.float64)
        size = round(0.3 * chance.size)
        true += float(np.sort(chance)[::-1][:size].sum())
        profiled += float(np.sort(assumed)[::-1][:size].sum())
        requested, seen = requested + float(chance.sum()), seen + float(assumed.sum())
    return f"{true / requested:.2f} | {profiled / seen:.2f} | {true / requested / (profiled / seen):.2f} |"


def rows_of(parts: tuple[Part, ...]) -> str:
    """Boundary rows that variance reduction needs in expectation, over the first-order rule's."""
    profile, rules = profile_of(parts), [sampler("vr")(part, None) for part in parts]
    ratios = []
    for epsilon in EPSILONS:
        true = sum(
            float(inclusion(part, rule.probabilities(epsilon).p).sum()) for part, rule in zip(parts, rules, strict=True)
        )
        ratios.append(f"{true / float(expected_rows(profile, epsilon).sum()):.2f}")
    return " | ".join(ratios) + " |"


def profile_of(parts: Sequence[Part]) -> BoundaryProfile:
    """The exact profile of real parts, one class per number of cross edges that occurs."""
    multiplicity = [cross_edges(part) for part in parts]
    classes = np.unique(np.concatenate([np.empty(0, np.int64), *multiplicity]))
    nodes = np.zeros((len(parts), len(parts), classes.size), np.int64)
    for part, cross in zip(parts, multiplicity, strict=True):
        for owner in range(part.parts):
            owned = cross[part.boundary_ptr[owner] : part.boundary_ptr[owner + 1]]
            nodes[part.rank, owner] = np.bincount(np.searchsorted(classes, owned), minlength=classes.size)
    boundary = np.array([cross.sum() for cross in multiplicity], np.int64)
    entries = np.array([part.entries for part in parts], np.int64)
    return BoundaryProfile(
        cross_edges=frozen(classes),
        of_worker=frozen(nodes).__getitem__,
        pairs=frozen(nodes.sum(axis=2)),
        inner_nodes=frozen(np.array([part.inner_nodes for part in parts], np.int64)),
        inner_entries=frozen(entries - boundary),
        boundary_entries=frozen(boundary),
    )


def expected_rows(profile: BoundaryProfile, epsilon: float) -> FloatArray:
    """The expected boundary rows of n owned by m in a graph sampled at the uniform rate, float64[P, P]."""
    chance = class_inclusion(profile, epsilon)
    return np.stack([profile.of_worker(rank) @ chance for rank in range(profile.parts)])


if __name__ == "__main__":
    sys.exit(main())
