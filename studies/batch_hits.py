"""What degrees alone say of mini-batches beside drawn ones: `python -m studies.batch_hits FOLDER...`.

The simulator knows of a dataset's degrees their mean and one spread (`degree_spread` of data/datasets.yaml). For graphs
of studies/cut_counts.yaml that lie in the folders that spread is taken twice: as for a published one, from the boundary
nodes of ten random parts, which follow from degrees alone; and by the law of all other graphs (`studies.cuts`). Then
the rows that a batch loads and the hits of caches of 10 to 90 % of the nodes, the highest degrees first, are set beside
batches that are really drawn. Of Reddit such counts are published. Accepted of the law, before it was compared: hits
within 5 points at the median, and 85 to 97 % of them within the range.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray
from gcnsim.core.streams import stream
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph import Graph, load_graph
from gcnsim.workload import dataset
from gcnsim.workload.cuts import DEGREE, LEAST_SPREAD
from gcnsim.workload.mini_batches import NeighbourDraws
from gcnsim.workload.reach import DegreeLaw, expected_neighbours, lognormal_law
from studies.cuts import COUNTS, counted, spread_law

SHARES: Final = np.arange(1, 10) / 10
BATCH: Final = 1024
FANOUTS: Final = ((10, 25), (5, 5, 5), (5, 5, 5, 5))
TRAINING: Final = 0.65
DRAWN: Final = 3

REDDIT: Final = (0.1779, 0.3378, 0.4836, 0.6131, 0.7255, 0.8213, 0.8981, 0.9555, 0.9896)
"""Hits of caches of SHARES of the nodes, those of the highest degree: batches of 1,024, fanout 5, 5, 5, 5; and the rows
that one epoch loads. github saurabhbajaj123/GNN_minibatch_vs_fullbatch, plotting/simulate_minibatch_dataload."""

REDDIT_ROWS: Final = 18_555_664
REDDIT_TRAINING: Final = 153_431


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return the exit code."""
    parser = argparse.ArgumentParser(description="Mini-batches by the spread of degrees, and drawn ones.")
    parser.add_argument("folders", nargs="*", type=Path)
    folders = parser.parse_args(arguments).folders
    sys.stdout.write(
        "| graph | fanout | spread | rows of a batch | hits, median and largest error | spread by the law | hits |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    facts = dataset("reddit")
    assert facts.degree_spread is not None
    rows, hits = expected(lognormal_law(facts.nodes, facts.entries / facts.nodes, facts.degree_spread), (5, 5, 5, 5))
    over = rows / (REDDIT_ROWS * BATCH / REDDIT_TRAINING) - 1.0
    off = points(hits, np.array(REDDIT))
    sys.stdout.write(
        f"| reddit, published | 5, 5, 5, 5 | {facts.degree_spread:.2f} | {over:+.0%} | {said(off)} | | |\n"
    )
    counts, missed, within = counted(), [], []
    for name, raw in read_yaml(COUNTS)["graphs"].items():
        path = next((path for folder in folders if (path := folder / f"{name}.npz").exists()), None)
        if path is None:
            continue
        graph = load_graph(path)
        mean = graph.entries / graph.nodes
        law = spread_law([other for other in counts if other.name != name])
        spreads = raw["degree_spread"], law["likely"] + law["degree"] * math.log(mean / DEGREE)
        for fanout in FANOUTS:
            true, held = drawn(graph, fanout)
            ends = (max(LEAST_SPREAD, spreads[1] - law["open"]), spreads[1] + law["open"])
            (rows, own), (_, blind), (_, low), (_, high) = (
                expected(lognormal_law(graph.nodes, mean, one), fanout) for one in (*spreads, *ends)
            )
            missed.append((raw["family"], points(blind, held)))
            within.append(float(np.mean((np.minimum(low, high) <= held) & (held <= np.maximum(low, high)))))
            sys.stdout.write(
                f"| {name} | {', '.join(map(str, fanout))} | {spreads[0]:.2f} | {rows / true - 1.0:+.0%} | "
                f"{said(points(own, held))} | {spreads[1]:.2f} | {said(missed[-1][1])} |\n"
            )
    for family in dict.fromkeys([*(name for name, _ in missed), "all"] if missed else ()):
        off = np.concatenate([one for name, one in missed if family in (name, "all")])
        sys.stdout.write(f"hits by the law, {family}: {said(off)}\n")
    if within:
        sys.stdout.write(f"hits within the range of the law, each graph alike: {np.mean(within):.0%}\n")
    return 0


def points(hits: FloatArray, true: FloatArray) -> FloatArray:
    """By how many points hits are off."""
    return np.asarray(100.0 * np.abs(hits - true))


def said(off: FloatArray) -> str:
    """Median and largest of `points`."""
    return f"{np.median(off):.1f}, {off.max():.1f} points"


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
