"""How much a partition depends on METIS' seed: `python -m studies.partition_spread [NAME ...] [--write]`.

Two measures, of which answers take the larger, or what published counts of one graph differ by. *Seeds*: the surrogate
is drawn at a share of its nodes (same degrees, same communities) and cut with several seeds; of each number of parts,
the standard deviation over the seeds of the logarithm of: boundary nodes of the mean and of the largest worker, entries
that cross, and entries of the largest worker. *Neighbours*: what a power law through its neighbours misses of a profile
at full size, the root mean square of the logarithm over sqrt(1.5), since the two neighbours scatter too; it holds more
than the seed, and is measured before `studies.rescaled_profiles`, since published means hardly scatter.

`--write` puts them into gcnsim/data/partition_spread.yaml. Seed 0 is left out: METIS cuts as with seed 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import yaml

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import FloatArray
from gcnsim.core.processes import cores, parallel_map
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph import Graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.describe import FIGURES, FILE
from gcnsim.graph.generate import surrogate_facts
from gcnsim.graph.parts import part_of
from gcnsim.trace.packaged_profiles import bundled_parts, bundled_profile, profile_without
from gcnsim.trace.stored_profile import StoredProfile
from studies.measured_boundary import drawn

PARTS = (2, 4, 8, 16)
SCALES = {"yelp": 0.03, "ogbn-products": 0.015, "reddit": 0.03}
"""Shares of the nodes that METIS cuts in a few seconds."""

HEADER = """\
# How much METIS' result depends on its seed: standard deviations of the logarithm over seeds 1 to `seeds` of surrogates
# drawn at a share `scale` of their nodes, and between neighbouring numbers of parts of the surrogates' profiles.
# counted: between published counts of one graph (Reddit at 4 and 8 parts: 94,900 and 90,700 in PSC-GCN's Table I,
# 100,880 and 98,666 in github saurabhbajaj123/GNN_minibatch_vs_fullbatch at 1559508), over the root of 2.
# `python -m studies.partition_spread NAME --write` measures one again; docs/surrogates.md says how.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the named surrogates; return the exit code."""
    parser = argparse.ArgumentParser(description="Spread of partitions over METIS' seeds.")
    parser.add_argument("names", nargs="*", default=list(SCALES))
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--scale", type=float)
    parser.add_argument("--write", action="store_true", help=f"change {FILE.name}")
    options = parser.parse_args(arguments)
    for name in options.names:
        found = measured(name, options.scale or SCALES[name], options.seeds)
        sys.stdout.write(yaml.safe_dump({name: found}, sort_keys=False, width=110))
        sys.stdout.flush()
        if options.write:
            write(name, found)
    return 0


def measured(name: str, scale: float, seeds: int) -> dict[str, Any]:
    """The entry of a surrogate: the spread of each figure by number of parts, and between neighbours."""
    facts = surrogate_facts(name)
    graph = drawn(facts, facts.model, scale)
    objective = facts.partition.removeprefix("metis-")
    requested = [(parts, seed) for parts in PARTS for seed in range(1, seeds + 1)]
    cut = parallel_map(lambda pair: looked(graph, objective, *pair), requested, cores())
    spread = np.log(np.array(cut)).reshape(len(PARTS), seeds, len(FIGURES)).std(axis=1, ddof=1)
    rows = [{"parts": parts} | rounded(row) for parts, row in zip(PARTS, spread, strict=True)]
    return {
        "partition": facts.partition,
        "seeds": seeds,
        "scale": scale,
        "rows": rows,
        "neighbours": rounded(missed(name)),
    }


def rounded(values: FloatArray) -> dict[str, float]:
    """The figures by name, to four digits."""
    return {figure: round(float(value), 4) for figure, value in zip(FIGURES, values, strict=True)}


def looked(graph: Graph, objective: str, parts: int, seed: int) -> FloatArray:
    """The figures of one partition."""
    owners = partition_graph(graph, parts, "metis", objective, seed)
    shares = [part_of(graph, owners, rank) for rank in range(parts)]
    boundary = [share.boundary_nodes for share in shares]
    crossing = sum(int(np.count_nonzero(share.columns >= share.inner_nodes)) for share in shares)
    return np.array([np.mean(boundary), max(boundary), crossing, max(share.entries for share in shares)])


def missed(name: str) -> FloatArray:
    """What neighbours miss of the shipped profiles, as one standard deviation per figure."""
    pairs = [(profile_without(name, parts), bundled_profile(name, parts)) for parts in bundled_parts(name)]
    off = np.log([counted(blind) / counted(true) for blind, true in pairs if blind is not None])
    return np.asarray(np.sqrt((off**2).mean(axis=0) / 1.5))


def counted(profile: StoredProfile) -> FloatArray:
    """The figures of a profile."""
    boundary = profile.boundary_nodes
    return np.array([boundary.mean(), boundary.max(), profile.boundary_entries.sum(), profile.entries.max()])


def write(name: str, found: dict[str, Any]) -> None:
    """Put the entry into the data file."""
    raw = read_yaml(FILE) if FILE.exists() else {"datasets": {}}
    counted = raw["datasets"].get(name, {}).get("counted")
    raw["datasets"][name] = found | ({} if counted is None else {"counted": counted})
    with atomic_write(FILE, text=True) as stream:
        stream.write(HEADER + yaml.safe_dump(raw, sort_keys=False, width=110))


if __name__ == "__main__":
    sys.exit(main())
