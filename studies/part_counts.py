"""Counts METIS' parts of real graphs for studies/cut_counts.yaml: `python -m studies.part_counts FOLDER...`.

Graphs of that file that lie in the folders as NAME.npz are counted again: those of GCNSIM_DATA, and those that packages
ship (`studies.shipped_graphs`). Tens of minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import yaml

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import AnyArray
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph import Graph, load_graph
from gcnsim.graph.assign import partition_graph
from studies.cuts import COUNTS, OBJECTIVES, PARTS
from studies.measured_boundary import RANDOM_PARTS, random_boundary, spread_of

LEAST_PART: Final = 100
"""Nodes of the least part that is counted."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Count the graphs that lie in the folders and write them down; return the exit code."""
    parser = argparse.ArgumentParser(description="Counts of METIS parts of real graphs.")
    parser.add_argument("folders", nargs="+", type=Path)
    folders = parser.parse_args(arguments).folders
    raw = read_yaml(COUNTS)
    for name, entry in raw["graphs"].items():
        path = next((path for folder in folders if (path := folder / f"{name}.npz").exists()), None)
        if path is not None:
            graph = load_graph(path)
            parts = [parts for parts in PARTS if graph.nodes >= LEAST_PART * parts]
            for objective in OBJECTIVES:
                entry[objective] = [[part, *count(graph, part, objective)] for part in parts]
                sys.stdout.write(f"{name} {objective}: counted\n")
            entry["degree_spread"] = round(
                spread_of(graph.nodes, graph.entries, RANDOM_PARTS, random_boundary(graph, RANDOM_PARTS)), 2
            )
    head = COUNTS.read_text(encoding="utf-8").partition("graphs:")[0]
    with atomic_write(COUNTS, text=True) as stream:
        stream.write(head + yaml.safe_dump(raw, sort_keys=False, default_flow_style=None))
    return 0


def count(graph: Graph, parts: int, objective: str, seeds: Sequence[int] = (1, 2, 3)) -> list[float]:
    """Boundary over inner nodes, share of entries that cross, largest over mean of boundary nodes and of entries: the
    mean over METIS' seeds.
    """
    rows = np.repeat(np.arange(graph.nodes), graph.degrees)
    found = []
    for seed in seeds:
        owner = partition_graph(graph, parts, "metis", objective, seed).owner.astype(np.int64)
        cross = owner[rows] != owner[graph.indices]
        part = np.unique(owner[rows[cross]] * graph.nodes + graph.indices[cross]) // graph.nodes
        boundary = np.bincount(part, minlength=parts)
        loads: list[AnyArray] = [boundary, np.bincount(owner, weights=graph.degrees, minlength=parts)]
        largest = [load.max() / load.mean() for load in loads]
        found.append([part.size / graph.nodes, cross.mean(), *largest])
    return [float(f"{value:.4g}") for value in np.mean(found, axis=0)]


if __name__ == "__main__":
    sys.exit(main())
