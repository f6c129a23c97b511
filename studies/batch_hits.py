"""What degrees alone say of mini-batches beside drawn ones: `python -m studies.batch_hits`.

The simulator knows of a dataset's degrees their mean and one spread (`degree_spread` of data/datasets.yaml). For the
graphs of GCNSIM_DATA that spread is found as for a published one, from the boundary nodes of ten random parts, which
follow from degrees alone; then the rows that a batch loads and the hits of caches of 10 to 90 % of the nodes, the
highest degrees first, are set beside batches that are really drawn. Of Reddit such counts are published. The last line
is the range of spreads for a graph of which nothing is known: nine of ten of further ones.
"""

from __future__ import annotations

import math
import os
import sys
from pathlib import Path
from typing import Final

import numpy as np
from scipy.optimize import brentq
from scipy.stats import t as student

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph, load_graph
from gcnsim.workload import dataset
from gcnsim.workload.mini_batches import NeighbourDraws
from gcnsim.workload.reach import DegreeLaw, expected_neighbours, lognormal_law
from studies.measured_boundary import random_boundary

GRAPHS: Final = ("amazon_cs", "coauthor_phy", "tolokers", "acl_papers", "cnr-2000")
SHARES: Final = np.arange(1, 10) / 10
BATCH: Final = 1024
FANOUTS: Final = ((10, 25), (5, 5, 5), (5, 5, 5, 5))
RANDOM_PARTS: Final = 10
TRAINING: Final = 0.65
DRAWN: Final = 3

REDDIT: Final = (0.1779, 0.3378, 0.4836, 0.6131, 0.7255, 0.8213, 0.8981, 0.9555, 0.9896)
"""Hits of caches of SHARES of the nodes, those of the highest degree: batches of 1,024, fanout 5, 5, 5, 5; and the rows
that one epoch loads. github saurabhbajaj123/GNN_minibatch_vs_fullbatch, plotting/simulate_minibatch_dataload."""

REDDIT_ROWS: Final = 18_555_664
REDDIT_TRAINING: Final = 153_431


def main() -> int:
    """Print the table; return the exit code."""
    sys.stdout.write(
        "| graph | spread of degrees | fanout | rows of a batch | hits, largest error |\n|---|---|---|---|---|\n"
    )
    facts, spreads = dataset("reddit"), []
    assert facts.degree_spread is not None
    law = lognormal_law(facts.nodes, facts.entries / facts.nodes, facts.degree_spread)
    rows, hits = expected(law, (5, 5, 5, 5))
    print_row(
        "reddit, published",
        facts.degree_spread,
        (5, 5, 5, 5),
        rows / (REDDIT_ROWS * BATCH / REDDIT_TRAINING),
        hits,
        REDDIT,
    )
    folder = os.environ.get("GCNSIM_DATA")
    for name in GRAPHS if folder else ():
        graph = load_graph(Path(folder or "") / f"{name}.npz")
        spread = spread_of(graph.nodes, graph.entries, RANDOM_PARTS, random_boundary(graph, RANDOM_PARTS))
        spreads.append(spread)
        law = lognormal_law(graph.nodes, graph.entries / graph.nodes, spread)
        for fanout in FANOUTS:
            (rows, hits), (true, counted) = expected(law, fanout), drawn(graph, fanout)
            print_row(name, spread, fanout, rows / true, hits, counted)
    spreads += [
        known
        for text in ("reddit", "ogbn-products", "reddit-train", "yelp-train")
        if (known := dataset(text).degree_spread)
    ]
    middle, wide = float(np.mean(spreads)), float(np.std(spreads, ddof=1) * student.ppf(0.95, len(spreads) - 1))
    sys.stdout.write(f"\nspreads: {middle:.2f}, {middle - wide:.2f} to {middle + wide:.2f}\n")
    return 0


def print_row(
    name: str,
    spread: float,
    fanout: tuple[int, ...],
    rows: float,
    hits: FloatArray,
    true: FloatArray | tuple[float, ...],
) -> None:
    """Print a row: expected over drawn rows, and by how many points hits are off at most."""
    off = 100.0 * float(np.abs(hits - np.array(true)).max())
    sys.stdout.write(
        f"| {name} | {spread:.2f} | {', '.join(map(str, fanout))} | {rows - 1.0:+.0%} | {off:.1f} points |\n"
    )


def spread_of(nodes: int, entries: int, parts: int, boundary: float) -> float:
    """The spread of lognormal degrees with which random parts have so many boundary nodes in all."""

    def more(spread: float) -> float:
        law = lognormal_law(nodes, entries / nodes, spread)
        reached = 1.0 - (1.0 - 1.0 / parts) ** law.degree
        return float((parts - 1) * nodes * (law.share @ reached)) - boundary

    return float(brentq(more, 0.01, 3.0))


def expected(law: DegreeLaw, fanout: tuple[int, ...]) -> tuple[float, FloatArray]:
    """Rows of a batch, and hits of caches of SHARES of the nodes, from degrees alone."""
    chance = expected_neighbours(law, np.array([min(1.0, BATCH / law.nodes)]), fanout).chance[0][0]
    weight = law.share * chance
    above = np.cumsum(law.share[::-1])[::-1] - law.share
    kept = np.clip((SHARES[:, None] - above) / law.share, 0.0, 1.0)
    return float(law.nodes * weight.sum()), np.asarray(kept @ weight / weight.sum())


def drawn(graph: Graph, fanout: tuple[int, ...]) -> tuple[float, FloatArray]:
    """The same of batches that are drawn."""
    order = np.argsort(-graph.degrees, kind="stable")
    place = np.empty(graph.nodes, np.int64)
    place[order] = np.arange(graph.nodes)
    training = stream(0, "training").choice(graph.nodes, math.ceil(TRAINING * graph.nodes), replace=False)
    draws = NeighbourDraws(graph, [np.sort(training)], BATCH, fanout, (), 0, 0)
    read = [draws.draw(step, 0).levels[0] for step in range(DRAWN)]
    total = sum(rows.size for rows in read)
    held = [sum(int((place[rows] < share * graph.nodes).sum()) for rows in read) / total for share in SHARES]
    return total / DRAWN, np.array(held)


if __name__ == "__main__":
    sys.exit(main())
