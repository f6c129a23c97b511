"""How METIS parts of a graph border on one another, by its sizes alone: laws of partitions that were counted.

gcnsim/data/cuts.yaml holds them; `python -m studies.cuts` fits them to counts of real graphs, and judges each law on
the graphs that it was not fitted to (docs/surrogates.md). With d the mean degree and N the nodes of a graph:

- boundary over inner nodes at 4 parts: scale * (d / 50)^degree * (N / 100,000)^nodes, in a range of factors;
- at other numbers of parts: times a factor of a table, straight in the logarithms between its numbers, and times
  (d / 50)^(tilt ln(parts / 4)) above 4: dense graphs go on growing, sparse ones less, since no node borders on more
  parts than it has neighbours;
- share of the entries that cross: 1 - exp(-per_ratio * boundary over inner nodes);
- the largest part over the mean one: a power of the number of parts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from gcnsim.io.yaml_files import read_yaml

FILE: Final = Path(__file__).resolve().parents[1] / "data" / "cuts.yaml"
"""The laws, as fitted."""

ANCHOR: Final = 4
"""The number of parts at which the law of sizes speaks."""

DEGREE: Final = 50.0
NODES: Final = 1e5
"""What sizes are taken over in the laws."""

WEB: Final = "web"
"""Kind of a graph of web pages: they link within their site, so its parts border on few others."""

MOST_COUNTED: Final = 64
"""The most parts that a graph was cut into."""

MOST_CROSSING: Final = 0.95
"""At most this share of the entries crosses."""


class Ends(NamedTuple):
    """Least, likely and most of what is assumed."""

    low: float
    likely: float
    high: float


def growth_between(since: float, parts: float, degree: float) -> float:
    """Boundary over inner nodes at `parts` parts over that at `since`, both 2 or more; degree: of the mean node."""
    return math.exp(_log_growth(parts, degree) - _log_growth(since, degree))


def open_growth(since: float, parts: float) -> Ends:
    """What the graphs at hand leave open of `growth_between`: factors on it, 1 in the middle.

    Numbers of parts that differ by less than twofold count as that far apart, since METIS scatters between any two.
    """
    wide = max(math.log(2.0), abs(math.log(parts / since))) * _law()["growth"]["open"] if parts != since else 0.0
    return Ends(math.exp(-wide), 1.0, math.exp(wide))


def assumed_ratio(nodes: int, entries: int, parts: int, kind: str = "") -> Ends:
    """Boundary over inner nodes of the mean of `parts` parts, 2 or more, of a graph that nobody cut.

    entries: stored entries, both directions of every edge. kind: `WEB`, or of any other kind.
    """
    law, degree = _law()["ratio"], max(1.0, entries / nodes)
    found = float(law["scale"] * (degree / DEGREE) ** law["degree"] * (nodes / NODES) ** law["nodes"])
    found *= growth_between(ANCHOR, parts, degree)
    # Every part that a node borders on takes a neighbour of its own, and there are no more nodes than all others.
    most = min(degree, parts - 1.0)
    factors = law[WEB] if kind == WEB else law["range"]
    return Ends(*(min(most, factor * found) for factor in factors))


def crossing_fraction(ratio: float) -> Ends:
    """Share of the entries that cross partitions, by boundary over inner nodes."""
    return Ends(*(min(MOST_CROSSING, -math.expm1(-per * ratio)) for per in _law()["crossing"]["per_ratio"]))


def largest_of(figure: str, parts: int) -> Ends:
    """The largest of `parts` parts over the mean one; figure: `boundary` nodes or `entries`.

    Beyond the most parts that were counted it stays: a power of a thousand parts would leave most of them nothing.
    """
    return Ends(*(min(parts, MOST_COUNTED) ** power for power in _law()["largest"][figure]))


def _log_growth(parts: float, degree: float) -> float:
    """Logarithm of boundary over inner nodes at `parts` over that at `ANCHOR`."""
    places, values = _growth()
    x = math.log(parts)
    k = min(max(1, sum(place <= x for place in places)), len(places) - 1)
    slope = (values[k] - values[k - 1]) / (places[k] - places[k - 1])
    tilt = float(_law()["growth"]["tilt"]) * math.log(degree / DEGREE) * max(0.0, x - math.log(ANCHOR))
    # However sparse a graph is, more parts have no smaller boundary in all.
    return max(values[k - 1] + slope * (x - places[k - 1]) + tilt, 0.0 if parts > ANCHOR else -math.inf)


@cache
def _growth() -> tuple[Sequence[float], Sequence[float]]:
    """Logarithms of the numbers of parts of the table, and of its factors."""
    table = _law()["growth"]["factors"]
    return [math.log(parts) for parts, _ in table], [math.log(factor) for _, factor in table]


@cache
def _law() -> Mapping[str, Any]:
    found: dict[str, Any] = read_yaml(FILE)
    return found
