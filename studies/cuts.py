"""The laws by which parts of a graph border on one another: `python -m studies.cuts [--write]`.

Fits the laws of `gcnsim.workload.cuts` to METIS parts that were counted: of the graphs of studies/cut_counts.yaml, and
of those whose boundary is published (gcnsim/data/datasets.yaml, whole graphs alone). Then judges them: each graph is
left out, the laws are fitted to the others, and how often what was counted lies within the range is printed, beside by
how much the likely value misses, by graph and by family. --write puts the laws into gcnsim/data/cuts.yaml.
`studies.part_counts` counts.

Accepted before they were compared: boundaries of graphs left out within 20 % at the median, and 85 to 97 % of them
within the range, each graph alike.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import yaml
from scipy.stats import t as student

from gcnsim.core.atomic import atomic_write
from gcnsim.core.ids import FloatArray
from gcnsim.core.yaml_files import read_yaml
from gcnsim.workload import dataset
from gcnsim.workload.cuts import ANCHOR, DEGREE, FILE, NODES, SPARSE, WEB

SPREAD_SIDE: Final = 0.99
"""Quantile of each end of the spread of degrees: hits of caches, which no spread gives exactly, are then within the
range for nine of ten (studies/batch_hits.py)."""

EIGHT: Final = 0.9
"""Quantile of a range for eight of ten: of the largest parts so few graphs are counted that nine of ten is anything."""

COUNTS: Final = Path(__file__).with_name("cut_counts.yaml")
PARTS: Final = (2, 3, 4, 6, 8, 10, 16, 32, 64)
OBJECTIVES: Final = ("vol", "cut")
PUBLISHED: Final = ("reddit", "ogbn-products", "yelp", "ogbn-papers100M-2hop")
"""Whole graphs with a published boundary, under whichever objective."""

FAMILIES: Final = {
    "reddit": "social",
    "ogbn-products": "co-purchase",
    "yelp": "social",
    "ogbn-papers100M-2hop": "citation",
}

OF_THE_WEB: Final = ("cnr-2000",)
"""A law of its own: one graph is no range, so it reaches up to the others."""

DENSE: Final = ("acl_papers", "tolokers", "amazon_cs", "coauthor_phy", *PUBLISHED)
"""The graphs that growth, imbalance and the crossing of dense graphs are fitted to; the others judge them unseen."""

ROUNDS: Final = 100
ROBUST: Final = 0.1
"""Residuals of the logarithm up to this count by their square, larger ones by their size: an odd graph bends little."""

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
    """One graph, its partitions by objective. spread: standard deviation of the log of its degrees."""

    name: str
    nodes: int
    degree: float
    rows: tuple[tuple[Row, ...], ...]
    family: str = ""
    spread: float | None = None

    @property
    def every(self) -> list[Row]:
        """The rows of all objectives."""
        return [row for rows in self.rows for row in rows]


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, judge, and write where asked to; return the exit code."""
    parser = argparse.ArgumentParser(description="Laws of METIS parts by the sizes of a graph.")
    parser.add_argument("--write", action="store_true", help="change gcnsim/data/cuts.yaml")
    options = parser.parse_args(arguments)
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
            degree = raw["entries"] / raw["nodes"]
            found.append(Counted(name, raw["nodes"], degree, rows, raw["family"], raw["degree_spread"]))
    for name in PUBLISHED:
        facts = dataset(name)
        printed = tuple(Row(row.partitions, row.boundary / row.inner) for row in (*facts.boundary, *facts.elsewhere))
        degree = facts.entries / facts.nodes
        found.append(Counted(name, facts.nodes, degree, (printed,), FAMILIES[name], facts.degree_spread))
    return found


def fitted(graphs: Sequence[Counted]) -> dict[str, Any]:
    """The laws of these graphs, each of which counts alike."""
    dense = [graph for graph in graphs if graph.name in DENSE]
    factors, tilt = growth_of(dense)
    coefficients = sizes_of(graphs)
    laws: dict[str, Any] = {
        "ratio": {
            "scale": round(math.exp(coefficients[0]), 3),
            "sparse": round(coefficients[1], 3),
            "degree": round(coefficients[2], 3),
            "nodes": round(coefficients[3], 3),
        },
        "growth": {"factors": [[parts, round(math.exp(value), 3)] for parts, value in factors.items()], "tilt": tilt},
    }
    missed = [[log_missed(laws, graph, row) for row in graph.every] for graph in graphs]
    wide = math.exp(_wide(missed, len(coefficients)))
    laws["ratio"]["range"] = [round(1.0 / wide, 2), 1.0, round(wide, 2)]
    laws["ratio"][WEB] = [*_of_the_web(laws), 1.0]
    laws["growth"]["open"] = round(_wide([grown(laws, graph) for graph in dense], 1), 3)
    laws["crossing"] = {"per_ratio": [round(math.exp(log), 3) for log in ends(list(crossings(dense).values()))]}
    laws["crossing"]["sparse"] = sparse_crossing(graphs, math.log(laws["crossing"]["per_ratio"][1]))
    laws["largest"] = {
        name: [round(max(0.0, power), 2) for power in ends(filter(None, powers(dense, name).values()), EIGHT)]
        for name in ("boundary", "entries")
    }
    laws["degree_spread"] = spread_law(graphs)
    return laws


def sparse_crossing(graphs: Sequence[Counted], dense: float) -> float:
    """The power of SPARSE over a lower mean degree with which -ln(1 - cross fraction) over boundary/inner grows.

    dense: its logarithm for other graphs.
    """
    found = crossings(graphs)
    powers = [
        (float(np.median(found[graph.name])) - dense) / math.log(SPARSE / graph.degree)
        for graph in graphs
        if graph.degree < 0.9 * SPARSE and graph.name in found
    ]
    return round(float(np.median(powers)), 2) if powers else 0.0


def spread_law(graphs: Sequence[Counted]) -> dict[str, float]:
    """The spread of the logarithm of degrees by the mean degree, and half of its range."""
    known = [(math.log(graph.degree / DEGREE), graph.spread) for graph in graphs if graph.spread is not None]
    x, y = np.array(known).T
    slope, middle = np.polyfit(x, y, 1)
    wide = float(
        student.ppf(SPREAD_SIDE, x.size - 2) * math.sqrt(float(((y - middle - slope * x) ** 2).sum()) / (x.size - 2))
    )
    return {"likely": round(float(middle), 2), "degree": round(float(slope), 3), "open": round(wide, 2)}


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
    """Coefficients of log ratio at ANCHOR parts: constant; of the log of degrees below SPARSE, and above; of nodes."""
    known = [graph for graph in graphs if any(_anchored(rows, ANCHOR) for rows in graph.rows)]
    points = np.array([[1.0, *_sizes(graph)] for graph in known])
    middle = np.array(
        [np.mean([math.log(base) for rows in graph.rows for _, base in _anchored(rows, ANCHOR)]) for graph in known]
    )
    weights = np.ones(middle.size)
    for _ in range(ROUNDS):
        root = np.sqrt(weights)
        found = np.linalg.lstsq(points * root[:, None], middle * root, rcond=None)[0]
        weights = 1.0 / np.maximum(np.abs(points @ found - middle), ROBUST)
    return [float(value) for value in found]


def _sizes(graph: Counted) -> tuple[float, float, float]:
    """What the law of sizes multiplies by its coefficients."""
    sparse = math.log(min(graph.degree, SPARSE) / SPARSE)
    return sparse, math.log(max(graph.degree, SPARSE) / DEGREE), math.log(graph.nodes / NODES)


def log_ratio(laws: dict[str, Any], graph: Counted, parts: int) -> float:
    """Logarithm of boundary over inner nodes by `laws`, at a number of parts of their table."""
    law, growth = laws["ratio"], laws["growth"]
    degree = math.log(graph.degree / DEGREE)
    sparse, dense, nodes = _sizes(graph)
    found = math.log(law["scale"]) + law["sparse"] * sparse + law["degree"] * dense + law["nodes"] * nodes
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
    """Tables: what laws fitted to the other graphs say of each, and how often that holds what was counted."""
    lines = [
        "| graph left out | family | likely / counted | median miss | within | growth missed, as a power | within |"
    ]
    lines += ["|---|---|---|---|---|---|---|"]
    found = []
    for graph in graphs:
        verdict = verdict_of(graph, without(graphs, graph))
        found.append((graph.family, verdict))
        over, powers = verdict.over, verdict.powers
        lines.append(
            f"| {graph.name} | {graph.family} | {min(over):.2f} to {max(over):.2f} | {verdict.miss:.0%} | "
            f"{verdict.held:.0%} | {min(powers):+.2f} to {max(powers):+.2f} | {verdict.grown:.0%} |"
        )
    lines += ["", "| family | graphs | boundary, median miss | within |", "|---|---|---|---|"]
    for family in (*dict.fromkeys(name for name, _ in found), "all"):
        own = [verdict for name, verdict in found if family in (name, "all")]
        miss, held = (
            np.median([abs(over - 1.0) for one in own for over in one.over]),
            np.mean([one.held for one in own]),
        )
        lines.append(f"| {family} | {len(own)} | {miss:.0%} | {held:.0%} |")
    share = np.mean([one.grown for _, one in found])
    lines += ["", f"Median of the graphs' medians: {np.median([one.miss for _, one in found]):.0%}"]
    lines.append(f"Growth within the range, each graph alike: {share:.0%}")
    lines.append(f"Cross fractions within the range of the other graphs: {crossing_held(graphs):.0%}, each graph alike")
    for name in ("boundary", "entries"):
        lines.append(f"Largest {name} within the range of the other graphs: {largest_held(graphs, name):.0%}")
    return lines


class Verdict(NamedTuple):
    """What laws say of a graph they were not fitted to: likely over counted boundary, its median miss, the share within
    the range; growth missed as a power of the parts, and the share of it within."""

    over: list[float]
    miss: float
    held: float
    powers: list[float]
    grown: float


def verdict_of(graph: Counted, laws: dict[str, Any]) -> Verdict:
    """How `laws` fare on the counts of `graph`."""
    over = [math.exp(-log_missed(laws, graph, row)) for row in graph.every]
    low, _, high = laws["ratio"]["range"]
    held = [low <= 1.0 / value <= high for value in over]
    powers = grown(laws, graph)
    inside = [abs(value) <= laws["growth"]["open"] for value in powers]
    miss = float(np.median([abs(value - 1.0) for value in over]))
    return Verdict(over, miss, float(np.mean(held)), powers, float(np.mean(inside)))


def crossing_held(graphs: Sequence[Counted]) -> float:
    """Share of cross fractions that are within the range of the other graphs, each graph alike."""
    laws = {graph.name: without(graphs, graph)["crossing"] for graph in graphs}
    sparse = {graph.name: max(1.0, SPARSE / graph.degree) ** laws[graph.name]["sparse"] for graph in graphs}
    own = {name: np.exp(crossing) / sparse[name] for name, crossing in crossings(graphs).items()}
    return _held(own, {name: law["per_ratio"] for name, law in laws.items()})


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


if __name__ == "__main__":
    sys.exit(main())
