"""Fitting the surrogates of published datasets: `python -m studies.fit_surrogates yelp [--rounds 3] [--write]`.

What is fitted: bridges, cross_mean, cross_concentration and reach of the block model, to the published mean boundary
nodes per part; all else of the model is taken from gcnsim/data/surrogates.yaml as it stands there. Every round searches
with the expected boundary (studies/expected_boundary.py) times what METIS gave over it in the round before, draws
the graph, partitions it and looks. It ends when all counts are within 3 %, or after `--rounds`. Among models that fit
alike, one whose cross edges per boundary node are near 0.23 of the degree is preferred: the middle of real graphs.

`--scale` draws with that share of the nodes (same degrees, same communities) and scales the counts back: for graphs
whose partitioning would not fit into memory. `--seeds` partitions with so many seeds and takes the mean. `--rounds 0`
fits nothing: it measures the model that stands in the file, its left-out fits and its checks again. Left-out fits see
the other rows alone and predict the one they did not see by the expected boundary times METIS' mean ratio on the
others. Needs minutes to tens of minutes per dataset.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import yaml
from scipy.optimize import minimize

from benchmarks.measuring import OUT
from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import FloatArray
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph.generate import BlockModel, Surrogate, surrogate_facts, surrogates
from gcnsim.graph.generate.fitted import FILE
from studies.expected_boundary import expected
from studies.measured_boundary import Measured, checked, drawn, measured

FREE = {
    "bridges": (0.02, 0.98),
    "cross_mean": (0.01, 0.9),
    "cross_concentration": (0.3, 8.0),
    "reach": (0.02, 0.98),
}
"""What is fitted, within which bounds."""

LIKELY, PULL = 0.23, 0.05
"""Mean cross edges per boundary node over mean degree of real graphs (gcnsim/trace/sizes_only.py) and its weight."""

CLOSE = 0.03
STARTS = (0.0, 1.2)
SEARCH_NODES = 30_000
HEADER = """\
# Drawn graphs that stand in for published datasets: model, seed, and how well the fit keeps what was printed.
# `python -m studies.fit_surrogates NAME --write` fits one again; docs/surrogates.md says how and shows the table.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit the named surrogates; return the exit code."""
    parser = argparse.ArgumentParser(description="Fit surrogates to published boundary counts.")
    parser.add_argument("names", nargs="+", choices=surrogates())
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/surrogates.yaml")
    options = parser.parse_args(arguments)
    for name in options.names:
        facts = surrogate_facts(name)
        if not facts.rows:
            sys.stdout.write(f"{name}: nothing published to fit to\n")
            continue
        result = fitted(facts, options.rounds, options.scale, options.seeds)
        OUT.mkdir(exist_ok=True)
        (OUT / f"surrogate-{name}.json").write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
        sys.stdout.write(yaml.safe_dump({name: result}, sort_keys=False, width=110))
        if options.write:
            write(name, result)
    return 0


def fitted(facts: Surrogate, rounds: int, scale: float, seeds: int) -> dict[str, object]:
    """The surrogate's entry in the data file, by the model of the round that came nearest."""
    target = np.array([row.published for row in facts.rows])
    counts = [row.parts for row in facts.rows]
    ratio: FloatArray = np.ones(target.size)
    best: tuple[float, BlockModel, Measured] | None = None
    model = facts.model
    for turn in range(max(rounds, 1)):
        model = searched(model, counts, target / ratio, facts.seed) if rounds else model
        found = measured(drawn(facts, model, scale), facts, counts, scale, seeds)
        ratio = found.boundary / expected(model, counts, facts.seed).boundary
        residual = found.boundary / target - 1.0
        sys.stdout.write(f"{facts.name}: round {turn}: {np.round(residual, 3)} of {counts} parts\n")
        sys.stdout.flush()
        error = float(np.abs(residual).max())
        if best is None or error < best[0]:
            best = error, model, found
        if error <= CLOSE:
            break
    assert best is not None
    checks = checked(drawn(facts, best[1], scale), facts, scale, seeds) if facts.checks else []
    return entry(facts, best[1], best[2], checks, scale, seeds)


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
    return at(min(tried, key=lambda item: float(item.fun)).x)


def left_out(facts: Surrogate, model: BlockModel, boundary: FloatArray) -> list[float | None]:
    """Boundary nodes at each number of parts by a fit to the others; None with fewer than three rows."""
    rows = facts.rows
    if len(rows) < 3:
        return [None] * len(rows)
    ratio = boundary / expected(model, [row.parts for row in rows], facts.seed).boundary
    found: list[float | None] = []
    for k, row in enumerate(rows):
        others = [j for j in range(len(rows)) if j != k]
        target = np.array([rows[j].published for j in others]) / ratio[others]
        blind = searched(model, [rows[j].parts for j in others], target, facts.seed)
        mean = math.exp(float(np.log(ratio[others]).mean()))
        found.append(float(expected(blind, [row.parts], facts.seed).boundary[0]) * mean)
    return found


def entry(
    facts: Surrogate, model: BlockModel, found: Measured, checks: Sequence[object], scale: float, seeds: int
) -> dict[str, object]:
    """The surrogate's entry in the data file, with what the fit does not change taken over."""
    rows = [
        {
            "parts": row.parts,
            "inner": row.inner,
            "published": row.published,
            "surrogate": round(float(found.boundary[k])),
            "cross_fraction": round(float(found.cross_fraction[k]), 4),
            "left_out": None if blind is None else round(blind),
            "scale": scale,
            "seeds": seeds,
            "spread": None if seeds < 2 else round(float(found.spread[k]), 4),
        }
        for k, (row, blind) in enumerate(zip(facts.rows, left_out(facts, model, found.boundary), strict=True))
    ]
    return {
        "model": asdict(model),
        "seed": facts.seed,
        "features": facts.features,
        "classes": facts.classes,
        "partition": facts.partition,
        "rows": rows,
        "checks": list(checks),
        "cross_edges": asdict(facts.cross_edges),
        "cite": dict(facts.cite),
        "assumed": facts.assumed,
    }


def write(name: str, result: dict[str, object]) -> None:
    """Put the entry into the data file."""
    raw = read_yaml(FILE)
    raw["surrogates"][name] = result
    write_all(raw)


def write_all(raw: Mapping[str, Any]) -> None:
    """Write the data file."""
    with atomic_write(FILE, text=True) as stream:
        stream.write(HEADER + yaml.safe_dump(dict(raw), sort_keys=False, width=110))


if __name__ == "__main__":
    sys.exit(main())
