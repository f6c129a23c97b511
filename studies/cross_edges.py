"""Cross edges per boundary node from published volumes of edge sampling: `python -m studies.cross_edges [--write]`.

Two samplers drop the same number of edges, DropEdge among all edges, boundary-edge sampling among cross edges alone: as
many as boundary-node sampling at rate 0.1 does, 0.9 of the cross edges. A node with m cross edges is still sent with
the chance 1 - drop^m, so the ratio of the two volumes, whatever they count, is

    E[1 - 0.9^m] / E[1 - (0.9 c)^m],    c: the share of entries that cross.

m is taken as a lognormal rounded to whole edges from 1, with the spread of log m that METIS parts of real graphs have
(gcnsim/trace/sizes_only.py): 1.0 to 1.6, likely 1.3. That leaves its mean, found here as a share of the mean
degree. The three spreads are the range's low, likely and high. Published at one number of parts, it is taken to hold at
all.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr

from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph.generate import surrogate_facts
from gcnsim.graph.generate.fitted import FILE
from gcnsim.workload.cuts import FILE as CUTS
from studies.fit_surrogates import write_all

SPREADS = {"low": 1.0, "likely": 1.3, "high": 1.6}
DROP = 0.9
MOST = 0.95
CLASSES = np.arange(1, 20_001)


@dataclass(frozen=True, slots=True)
class Volumes:
    """Published volumes per epoch, MB: of DropEdge and of boundary-edge sampling, on `parts` parts of a graph.

    boundary: mean boundary nodes per part at the nearest number of parts that was published; it only enters c.
    """

    parts: int
    dropedge: float
    boundary_edges: float
    boundary: float


TABLE_9 = {
    "reddit-train": Volumes(2, 301.3, 207.9, 57_500),
    "ogbn-products": Volumes(5, 1364.0, 521.1, 258_300),
    "yelp-train": Volumes(3, 718.7, 195.3, 64_900),
}
"""C. Wan et al., BNS-GCN: Efficient Full-Graph Training of Graph Convolutional Networks with Partition-Parallelism and
Random Boundary Node Sampling, Table 9."""

SAME = {"yelp": "yelp-train"}
"""The whole graph takes what its training graph says."""

REDDIT = {"parts": 4, "crossing": 0.1978, "ratio": 1.737}
"""Counted on METIS parts of Reddit, objective vol: share of the entries that cross, boundary over inner nodes. Logs of
github saurabhbajaj123/GNN_minibatch_vs_fullbatch at 1559508."""

OTHER_PARTS = 1.37
"""By how much the share differs at other numbers of parts of the same graph, in nine of ten of the counts."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the ranges, and put them into the data file where asked to; return the exit code."""
    parser = argparse.ArgumentParser(description="Cross edges per boundary node from published volumes.")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/surrogates.yaml")
    options = parser.parse_args(arguments)
    found = {name: shares(name, volumes) for name, volumes in TABLE_9.items()}
    for name, share in found.items():
        sys.stdout.write(f"{name}: {share} of the mean degree\n")
    if options.write:
        raw = read_yaml(FILE)
        for name in raw["surrogates"]:
            raw["surrogates"][name]["cross_edges"] = facts_of(name, found)
        write_all(raw)
    return 0


def shares(name: str, volumes: Volumes) -> dict[str, float]:
    """Mean cross edges per boundary node over the mean degree, at each spread of SPREADS."""
    model = surrogate_facts(name).model
    boundary = volumes.boundary * volumes.parts
    wanted = volumes.boundary_edges / volumes.dropedge
    found = {}
    for key, spread in SPREADS.items():

        def off(log_mean: float, spread: float = spread) -> float:
            return ratio(float(np.exp(log_mean)), spread, boundary / (2.0 * model.edges)) - wanted

        mean = float(np.exp(brentq(off, np.log(1.02), np.log(600.0))))
        found[key] = round(mean * model.nodes / (2.0 * model.edges), 3)
    return found


def ratio(mean: float, spread: float, nodes_per_entry: float) -> float:
    """Volume of boundary-edge sampling over DropEdge's, for cross edges of this mean and spread of their log."""
    chance = lognormal(mean, spread)
    crossing = min(MOST, mean * nodes_per_entry)
    sent = 1.0 - float(chance @ DROP**CLASSES)
    return sent / (1.0 - float(chance @ (DROP * crossing) ** CLASSES))


def lognormal(mean: float, spread: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Chances of CLASSES: a lognormal cut between them, of the given mean after rounding."""
    cuts = np.log(CLASSES[:-1] + 0.5)

    def chances(centre: float) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
        return np.diff(ndtr((cuts - centre) / spread), prepend=0.0, append=1.0)

    centre = brentq(lambda place: float(chances(place) @ CLASSES) - mean, -20.0 * spread, np.log(CLASSES[-1]))
    return chances(float(centre))


def facts_of(name: str, found: dict[str, dict[str, float]]) -> dict[str, object]:
    """The range of one dataset and where it comes from; without counts of its own, that of other graphs."""
    if name == "reddit":
        likely = -math.log1p(-REDDIT["crossing"]) / REDDIT["ratio"]
        ends = {"low": likely / OTHER_PARTS, "likely": likely, "high": likely * OTHER_PARTS}
        source = "counted at 4 METIS parts; at other numbers of parts of the same graph it differs by a factor of 1.37"
        return {**{end: round(share, 3) for end, share in ends.items()}, "source": source}
    own = SAME.get(name, name)
    if own in found:
        parts = TABLE_9[own].parts
        source = f"volumes of edge sampling at {parts} parts of {own}, BNS-GCN Table 9, by studies/cross_edges.py"
        return {**found[own], "source": source}
    ends = dict(zip(("low", "likely", "high"), read_yaml(CUTS)["crossing"]["per_ratio"], strict=True))
    return {**ends, "source": "nothing published: that of METIS parts of other graphs (studies/cuts.py)"}


if __name__ == "__main__":
    sys.exit(main())
