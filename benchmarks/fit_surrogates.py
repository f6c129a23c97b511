"""Fitting the surrogates of published datasets: `python -m benchmarks.fit_surrogates yelp [--rounds 3] [--write]`.

What is fitted: bridges, cross_mean, cross_concentration and reach of the block model, to the published mean boundary
nodes per part; all else of the model is taken from gcnsim/data/surrogates.yaml as it stands there. Every round searches
with the expected boundary (benchmarks/expected_boundary.py) times what METIS gave over it in the round before, draws
the graph, partitions it and looks. It ends when all counts are within 3 %, or after `--rounds`. Among models that fit
alike, one whose cross edges per boundary node are near 0.23 of the degree is preferred: the middle of real graphs.

`--scale` draws with that share of the nodes (same degrees, same communities) and scales the counts back: for graphs
whose partitioning would not fit into memory. Left-out fits see the other rows alone and predict the one they did not
see by the expected boundary times METIS' mean ratio on the others. Needs minutes to tens of minutes per dataset.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import yaml
from scipy.optimize import minimize

from benchmarks.expected_boundary import expected
from benchmarks.measuring import OUT
from gcnsim.documents import read_yaml
from gcnsim.graph.generate import BlockModel, Surrogate, block_model, surrogate_facts, surrogates
from gcnsim.graph.generate.fitted import FILE
from gcnsim.ids import FloatArray
from gcnsim.partition import part_of, partition_graph
from gcnsim.processes import cores
from gcnsim.sections import replacing

FREE = {
    "bridges": (0.02, 0.98),
    "cross_mean": (0.01, 0.9),
    "cross_concentration": (0.3, 8.0),
    "reach": (0.02, 0.98),
}
"""What is fitted, within which bounds."""

LIKELY, PULL = 0.23, 0.05
"""Mean cross edges per boundary node over mean degree of real graphs (gcnsim/trace/published.py), and its weight."""

CLOSE = 0.03
STARTS = (0.0, 1.2)
SEARCH_NODES = 30_000
HEADER = """\
# Drawn graphs that stand in for published datasets: model, seed, and how well the fit keeps what was printed.
# `python -m benchmarks.fit_surrogates NAME --write` fits one again; docs/surrogates.md says how and shows the table.
"""


@dataclass(frozen=True, slots=True)
class Measured:
    """What partitioning the drawn graph gave, by number of parts: mean boundary nodes, and share of cross entries."""

    boundary: FloatArray
    cross_fraction: FloatArray


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the named surrogates; return the exit code."""
    parser = argparse.ArgumentParser(description="Fit surrogates to published boundary counts.")
    parser.add_argument("names", nargs="+", choices=surrogates())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/surrogates.yaml")
    asked = parser.parse_args(arguments)
    for name in asked.names:
        facts = surrogate_facts(name)
        if not facts.rows:
            sys.stdout.write(f"{name}: nothing published to fit to\n")
            continue
        model, found, ratio = fitted(facts, asked.rounds, asked.scale)
        result = fit_of(facts, model, found, left_out(facts, model, ratio), asked.scale)
        OUT.mkdir(exist_ok=True)
        (OUT / f"surrogate-{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        sys.stdout.write(yaml.safe_dump({name: result}, sort_keys=False, width=110))
        if asked.write:
            write(name, result)
    return 0


def fitted(facts: Surrogate, rounds: int, scale: float) -> tuple[BlockModel, Measured, FloatArray]:
    """The model of the round that came nearest, what METIS gave of it, and that over the expectation."""
    target = np.array([row.published for row in facts.rows])
    counts = [row.parts for row in facts.rows]
    ratio: FloatArray = np.ones(target.size)
    best: tuple[float, BlockModel, Measured, FloatArray] | None = None
    model = facts.model
    for turn in range(rounds):
        model = searched(model, counts, target / ratio, facts.seed)
        found = measured(facts, model, counts, scale)
        ratio = found.boundary / expected(model, counts, facts.seed).boundary
        error = float(np.abs(found.boundary / target - 1.0).max())
        sys.stdout.write(
            f"{facts.name}: round {turn}: {np.round(found.boundary / target - 1.0, 3)} of {counts} parts\n"
        )
        sys.stdout.flush()
        if best is None or error < best[0]:
            best = error, model, found, ratio
        if error <= CLOSE:
            break
    assert best is not None
    return best[1:]


def searched(model: BlockModel, counts: Sequence[int], target: FloatArray, seed: int) -> BlockModel:
    """`model` with the free parameters whose expected boundary is nearest to `target` (Nelder and Mead's simplex)."""
    least, most = (np.array([bounds[side] for bounds in FREE.values()]) for side in (0, 1))
    share = target * np.array(counts) / model.nodes

    def at(place: FloatArray) -> BlockModel:
        values = least + (most - least) / (1.0 + np.exp(-np.clip(place, -30.0, 30.0)))
        changes: dict[str, Any] = {name: round(float(value), 4) for name, value in zip(FREE, values, strict=True)}
        return replace(model, **changes)

    def cost(place: FloatArray) -> float:
        looked = expected(at(place), counts, seed, SEARCH_NODES)
        likeness = float(np.log(np.maximum(looked.cross_fraction, 1e-9) / share / LIKELY).mean())
        return float((np.log(looked.boundary / target) ** 2).sum()) + (PULL * likeness) ** 2

    here = np.array([getattr(model, name) for name in FREE])
    start = np.log(np.clip((here - least) / (most - least), 1e-3, 1.0 - 1e-3))
    start -= np.log(1.0 - np.clip((here - least) / (most - least), 1e-3, 1.0 - 1e-3))
    tried = []
    for shift in STARTS:
        first = start + shift * np.array([0.0, 0.0, 1.0, -1.0])
        simplex = np.vstack([first, first + 0.6 * np.eye(len(FREE))])
        options: Any = {"maxfev": 220, "xatol": 0.01, "fatol": 1e-6, "initial_simplex": simplex}
        tried.append(minimize(cost, first, method="Nelder-Mead", options=options))
    return at(min(tried, key=lambda each: float(each.fun)).x)


def measured(facts: Surrogate, model: BlockModel, counts: Sequence[int], scale: float) -> Measured:
    """Draw, partition and look, one number of parts after another."""
    small = replace(model, nodes=round(model.nodes * scale), edges=round(model.edges * scale))
    graph = block_model(small, facts.seed, facts.name, processes=cores())
    boundary, crossing = [], []
    for parts in counts:
        owners = partition_graph(graph, parts, "metis", facts.partition.removeprefix("metis-"))
        nodes = crossed = 0
        for rank in range(parts):
            share = part_of(graph, owners, rank)
            nodes += share.boundary_nodes
            crossed += int(np.count_nonzero(share.columns >= share.inner_nodes))
        boundary.append(nodes / parts / scale)
        crossing.append(crossed / graph.entries)
        sys.stdout.write(f"{facts.name}: {parts} parts: {boundary[-1]:,.0f} boundary nodes each\n")
        sys.stdout.flush()
    return Measured(np.array(boundary), np.array(crossing))


def left_out(facts: Surrogate, model: BlockModel, ratio: FloatArray) -> list[float | None]:
    """Boundary nodes at each number of parts by a fit to the others; None with fewer than three rows."""
    rows = facts.rows
    if len(rows) < 3:
        return [None] * len(rows)
    found: list[float | None] = []
    for k, row in enumerate(rows):
        others = [j for j in range(len(rows)) if j != k]
        target = np.array([rows[j].published for j in others]) / ratio[others]
        blind = searched(model, [rows[j].parts for j in others], target, facts.seed)
        mean = math.exp(float(np.log(ratio[others]).mean()))
        found.append(float(expected(blind, [row.parts], facts.seed).boundary[0]) * mean)
    return found


def fit_of(
    facts: Surrogate, model: BlockModel, found: Measured, blind: Sequence[float | None], scale: float
) -> dict[str, object]:
    """The surrogate's entry in the data file."""
    rows = [
        {
            "parts": row.parts,
            "inner": row.inner,
            "published": row.published,
            "surrogate": round(float(found.boundary[k])),
            "cross_fraction": round(float(found.cross_fraction[k]), 4),
            "left_out": None if blind[k] is None else round(float(blind[k] or 0.0)),
            "scale": scale,
        }
        for k, row in enumerate(facts.rows)
    ]
    return {
        "model": asdict(model),
        "seed": facts.seed,
        "features": facts.features,
        "classes": facts.classes,
        "partition": facts.partition,
        "rows": rows,
        "cite": dict(facts.cite),
        "assumed": facts.assumed,
    }


def write(name: str, result: dict[str, object]) -> None:
    """Put the entry into the data file."""
    raw = read_yaml(FILE)
    raw["surrogates"][name] = result
    with replacing(FILE, text=True) as stream:
        stream.write(HEADER + yaml.safe_dump(raw, sort_keys=False, width=110))


if __name__ == "__main__":
    sys.exit(main())
