"""The laws by which parts of a graph border on one another: `python -m studies.cuts [--count] [--write]`.

Fits the laws of `gcnsim.workload.cuts` to METIS parts that were counted: of the graphs of studies/cut_counts.yaml, and
of those whose boundary is published (gcnsim/data/datasets.yaml, whole graphs alone). Then judges them: each graph is
left out, the laws are fitted to the others, and how often what was counted lies within the range is printed, beside by
how much the likely value misses. --write puts the laws into gcnsim/data/cuts.yaml; --count counts the graphs of
GCNSIM_DATA first, for tens of minutes.
"""

from __future__ import annotations

import argparse
import math
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import yaml
from scipy.stats import t as student

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import AnyArray, FloatArray
from gcnsim.core.yaml_files import read_yaml
from gcnsim.graph import Graph, load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.workload import dataset
from gcnsim.workload.cuts import ANCHOR, DEGREE, FILE, NODES, WEB

EIGHT: Final = 0.9
"""Quantile of a range for eight of ten: of the largest parts so few graphs are counted that nine of ten is anything."""

COUNTS: Final = Path(__file__).with_name("cut_counts.yaml")
PARTS: Final = (2, 3, 4, 6, 8, 10, 16, 32, 64)
OBJECTIVES: Final = ("vol", "cut")
PUBLISHED: Final = ("reddit", "ogbn-products", "yelp", "ogbn-papers100M-2hop")
"""Whole graphs with a published boundary, under whichever objective."""

OF_THE_WEB: Final = ("cnr-2000",)
"""A law of its own: one graph is no range, so it reaches up to the others."""

CROSSING: Final = {"reddit": 0.127, "ogbn-products": 0.16, "yelp": 0.31}
"""Entries that cross, as -ln(1 - share) over boundary/inner, where no count is complete: of Reddit's counted four parts
(datasets.yaml), of the others by volumes of edge sampling (studies/cross_edges.py)."""

NEAR: Final = math.log(2.0)
"""Numbers of parts that differ by less than twofold are taken as that far apart: METIS scatters between any two."""

HEAD: Final = """\
# How METIS parts border on one another, by a graph's sizes: laws of gcnsim/workload/cuts.py, which says what they mean.
# `python -m studies.cuts --write` fits them to counted and published partitions and writes this file.
"""


@dataclass(frozen=True, slots=True)
class Row:
    """One partition. ratio: boundary over inner nodes. cross: share of the entries that cross. boundary, entries:
    largest over mean. None: not counted."""

    parts: int
    ratio: float
    cross: float | None = None
    boundary: float | None = None
    entries: float | None = None


@dataclass(frozen=True, slots=True)
class Counted:
    """One graph, its partitions by objective."""

    name: str
    nodes: int
    degree: float
    rows: tuple[tuple[Row, ...], ...]

    @property
    def every(self) -> list[Row]:
        """The rows of all objectives."""
        return [row for rows in self.rows for row in rows]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, judge, and write where asked to; return the exit code."""
    parser = argparse.ArgumentParser(description="Laws of METIS parts by the sizes of a graph.")
    parser.add_argument("--count", action="store_true", help="count the graphs of GCNSIM_DATA anew first")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/cuts.yaml")
    options = parser.parse_args(arguments)
    if options.count:
        count_all()
    graphs = counted()
    sys.stdout.write("\n".join(judged(graphs)) + "\n")
    if options.write:
        with atomic_write(FILE, text=True) as stream:
            stream.write(HEAD + yaml.safe_dump(fitted(graphs), sort_keys=False, width=110, default_flow_style=None))
    return 0


def counted() -> list[Counted]:
    """All graphs but those of the web."""
    found = []
    for name, raw in read_yaml(COUNTS)["graphs"].items():
        if name not in OF_THE_WEB:
            rows = tuple(tuple(Row(*row) for row in raw[objective]) for objective in OBJECTIVES)
            found.append(Counted(name, raw["nodes"], raw["entries"] / raw["nodes"], rows))
    for name in PUBLISHED:
        facts = dataset(name)
        printed = tuple(Row(row.partitions, row.boundary / row.inner) for row in (*facts.boundary, *facts.elsewhere))
        found.append(Counted(name, facts.nodes, facts.entries / facts.nodes, (printed,)))
    return found


def fitted(graphs: Sequence[Counted]) -> dict[str, Any]:
    """The laws of these graphs, each of which counts alike."""
    factors, tilt = growth_of(graphs)
    coefficients = sizes_of(graphs)
    laws: dict[str, Any] = {
        "ratio": {
            "scale": round(math.exp(coefficients[0]), 3),
            "degree": round(coefficients[1], 3),
            "nodes": round(coefficients[2], 3),
        },
        "growth": {"factors": [[parts, round(math.exp(value), 3)] for parts, value in factors.items()], "tilt": tilt},
    }
    missed = [[log_missed(laws, graph, row) for row in graph.every] for graph in graphs]
    wide = math.exp(_wide(missed, len(coefficients)))
    laws["ratio"]["range"] = [round(1.0 / wide, 2), 1.0, round(wide, 2)]
    laws["ratio"][WEB] = [*_of_the_web(laws), 1.0]
    laws["growth"]["open"] = round(_wide([grown(laws, graph) for graph in graphs], 1), 3)
    laws["crossing"] = {"per_ratio": [round(math.exp(log), 3) for log in ends(list(crossings(graphs).values()))]}
    laws["largest"] = {
        name: [round(max(0.0, power), 2) for power in ends(filter(None, powers(graphs, name).values()), EIGHT)]
        for name in ("boundary", "entries")
    }
    return laws


def _wide(missed: Iterable[Sequence[float]], free: int, one_side: float = 0.95) -> float:
    """Half of a range that holds nine of ten of further graphs, each with its own: Student's, for so few.

    free: coefficients that were fitted to them. one_side: quantile of its upper end. Graphs count alike, whatever
    their rows.
    """
    squares = [float(np.mean(np.square(values))) for values in missed if len(values)]
    left = len(squares) - free
    return float(student.ppf(one_side, left) * math.sqrt(sum(squares) / left))


def ends(values: Iterable[Sequence[float]], one_side: float = 0.95) -> tuple[float, float, float]:
    """Least, middle and most of further graphs, as `_wide`: the middle is that of the graphs' medians."""
    every = list(values)
    middle = float(np.mean([np.median(item) for item in every]))
    wide = _wide([[one - middle for one in item] for item in every], 1, one_side)
    return middle - wide, middle, middle + wide


def growth_of(graphs: Sequence[Counted]) -> tuple[dict[int, float], float]:
    """Logarithms of the growth from ANCHOR parts, by number of parts, at the mean degree; and their tilt with it."""
    seen: list[tuple[int, float, float]] = []
    for graph in graphs:
        for parts in PARTS:
            logs = [math.log(row.ratio / base) for rows in graph.rows for row, base in _anchored(rows, parts)]
            if logs:
                seen.append((parts, math.log(graph.degree / DEGREE), float(np.mean(logs))))
    x = np.array([max(0.0, math.log(parts / ANCHOR)) * degree for parts, degree, _ in seen])
    which = np.array([[parts == part for part in PARTS] for parts, *_ in seen], np.float64)
    solved = np.linalg.lstsq(np.column_stack([which, x]), np.array([value for *_, value in seen]), rcond=None)[0]
    return dict(zip(PARTS, concave(solved[:-1]).tolist(), strict=True)), round(float(solved[-1]), 3)


def concave(values: FloatArray) -> FloatArray:
    """The least concave curve above `values`, over the logarithms of PARTS: a boundary's growth never gains pace."""
    x, curve = np.log(PARTS), values.copy()
    for middle in range(1, x.size - 1):
        for low in range(middle):
            for high in range(middle + 1, x.size):
                between = np.interp(x[middle], x[[low, high]], values[[low, high]])
                curve[middle] = max(curve[middle], between)
    return curve


def _anchored(rows: Iterable[Row], parts: int) -> list[tuple[Row, float]]:
    """The row at `parts`, with the ratio at ANCHOR parts; none where one of the two was not counted."""
    by = {row.parts: row for row in rows}
    return [(by[parts], by[ANCHOR].ratio)] if parts in by and ANCHOR in by else []


def sizes_of(graphs: Sequence[Counted]) -> list[float]:
    """Coefficients of log ratio at ANCHOR parts: constant, of the log of degree and of nodes."""
    points = [[1.0, math.log(graph.degree / DEGREE), math.log(graph.nodes / NODES)] for graph in graphs]
    middle = [
        np.mean([math.log(base) for rows in graph.rows for _, base in _anchored(rows, ANCHOR)]) for graph in graphs
    ]
    found: list[float] = np.linalg.lstsq(np.array(points), np.array(middle), rcond=None)[0].tolist()
    return found


def log_ratio(laws: dict[str, Any], graph: Counted, parts: int) -> float:
    """Logarithm of boundary over inner nodes by `laws`, at a number of parts of their table."""
    law, growth = laws["ratio"], laws["growth"]
    degree = math.log(graph.degree / DEGREE)
    found = math.log(law["scale"]) + law["degree"] * degree + law["nodes"] * math.log(graph.nodes / NODES)
    tilt = growth["tilt"] * degree * max(0.0, math.log(parts / ANCHOR))
    return float(found + math.log(dict(growth["factors"])[parts]) + tilt)


def log_missed(laws: dict[str, Any], graph: Counted, row: Row) -> float:
    """Logarithm of counted over likely boundary."""
    return math.log(row.ratio) - log_ratio(laws, graph, row.parts)


def _of_the_web(laws: dict[str, Any]) -> list[float]:
    """Least and middle of what the web's graphs have over the law."""
    missed = []
    for name in OF_THE_WEB:
        raw = read_yaml(COUNTS)["graphs"][name]
        graph = Counted(name, raw["nodes"], raw["entries"] / raw["nodes"], ())
        missed += [log_missed(laws, graph, Row(*row)) for objective in OBJECTIVES for row in raw[objective]]
    return [round(math.exp(item), 4) for item in (min(missed), float(np.median(missed)))]


def grown(laws: dict[str, Any], graph: Counted) -> list[float]:
    """What the growth from ANCHOR parts misses, as a power of the number of parts over ANCHOR."""
    found = []
    for rows in graph.rows:
        base = next(log_missed(laws, graph, row) for row in rows if row.parts == ANCHOR)
        far = [row for row in rows if row.parts != ANCHOR]
        found += [(log_missed(laws, graph, row) - base) / max(NEAR, abs(math.log(row.parts / ANCHOR))) for row in far]
    return found


def crossings(graphs: Sequence[Counted]) -> dict[str, list[float]]:
    """By graph, of its rows of the objective vol: logarithm of -ln(1 - cross fraction) over boundary/inner."""
    found = {}
    for graph in graphs:
        each = [math.log(-math.log1p(-row.cross) / row.ratio) for row in graph.rows[0] if row.cross is not None]
        if each or graph.name in CROSSING:
            found[graph.name] = each or [math.log(CROSSING[graph.name])]
    return found


def powers(graphs: Sequence[Counted], name: str) -> dict[str, list[float]]:
    """By graph, of its rows of the objective vol from ANCHOR parts on: the power of the parts that is the largest over
    the mean."""
    return {
        graph.name: [
            math.log(largest) / math.log(row.parts)
            for row in graph.rows[0]
            if row.parts >= ANCHOR and (largest := getattr(row, name)) is not None
        ]
        for graph in graphs
    }


def judged(graphs: Sequence[Counted]) -> list[str]:
    """A table: what laws fitted to the other graphs say of each, and how often that holds what was counted."""
    lines = ["| graph left out | boundary: counted / likely | within | growth from 4 parts, as a power | within |"]
    lines += ["|---|---|---|---|---|"]
    shares: list[list[float]] = []
    for graph in graphs:
        laws = without(graphs, graph)
        missed = [math.exp(log_missed(laws, graph, row)) for row in graph.every]
        low, _, high = laws["ratio"]["range"]
        own = grown(laws, graph)
        held = [np.mean([low <= entry <= high for entry in missed])]
        held += [np.mean([abs(value) <= laws["growth"]["open"] for value in own])]
        shares.append([float(share) for share in held])
        lines.append(
            f"| {graph.name} | {min(missed):.2f} to {max(missed):.2f} | {held[0]:.0%} | "
            f"{min(own):+.2f} to {max(own):+.2f} | {held[1]:.0%} |"
        )
    mean = np.mean(shares, axis=0)
    lines += [f"| all, each alike |  | {mean[0]:.0%} |  | {mean[1]:.0%} |", ""]
    lines.append(f"Cross fractions within the range of the other graphs: {crossing_held(graphs):.0%}, each graph alike")
    for name in ("boundary", "entries"):
        lines.append(f"Largest {name} within the range of the other graphs: {largest_held(graphs, name):.0%}")
    return lines


def crossing_held(graphs: Sequence[Counted]) -> float:
    """Share of cross fractions that are within the range of the other graphs, each graph alike."""
    own = {name: np.exp(crossing) for name, crossing in crossings(graphs).items()}
    return _held(own, {graph.name: without(graphs, graph)["crossing"]["per_ratio"] for graph in graphs})


def largest_held(graphs: Sequence[Counted], name: str) -> float:
    """Share of largest parts over the mean that are within the range of the other graphs, each graph alike."""
    own = {graph: np.array(power) for graph, power in powers(graphs, name).items() if power}
    return _held(own, {graph.name: without(graphs, graph)["largest"][name] for graph in graphs})


def _held(own: Mapping[str, FloatArray], by_others: Mapping[str, Sequence[float]]) -> float:
    held = [((by_others[name][0] <= value) & (value <= by_others[name][2])).mean() for name, value in own.items()]
    return float(np.mean(held))


def without(graphs: Sequence[Counted], graph: Counted) -> dict[str, Any]:
    """The laws of all graphs but one."""
    return fitted([other for other in graphs if other is not graph])


def count_all(say: Callable[[str], object] = sys.stdout.write) -> None:
    """Count the graphs of GCNSIM_DATA and write them down."""
    folder = Path(os.environ["GCNSIM_DATA"])
    raw = read_yaml(COUNTS)
    for name, entry in raw["graphs"].items():
        graph = load_graph(folder / f"{name}.npz")
        for objective in OBJECTIVES:
            entry[objective] = [[parts, *count(graph, parts, objective)] for parts in PARTS]
            say(f"{name} {objective}: counted\n")
    head = COUNTS.read_text(encoding="utf-8").partition("graphs:")[0]
    with atomic_write(COUNTS, text=True) as stream:
        stream.write(head + yaml.safe_dump(raw, sort_keys=False, default_flow_style=None))


def count(graph: Graph, parts: int, objective: str, seed: int = 1) -> list[float]:
    """Boundary over inner nodes, share of entries that cross, largest over mean of boundary nodes and of entries."""
    owner = partition_graph(graph, parts, "metis", objective, seed).owner.astype(np.int64)
    rows = np.repeat(np.arange(graph.nodes), graph.degrees)
    cross = owner[rows] != owner[graph.indices]
    part = np.unique(owner[rows[cross]] * graph.nodes + graph.indices[cross]) // graph.nodes
    boundary = np.bincount(part, minlength=parts)
    loads: list[AnyArray] = [boundary, np.bincount(owner, weights=graph.degrees, minlength=parts)]
    largest = [round(float(load.max() / load.mean()), 2) for load in loads]
    return [round(float(part.size / graph.nodes), 4), round(float(cross.mean()), 4), *largest]


if __name__ == "__main__":
    sys.exit(main())
