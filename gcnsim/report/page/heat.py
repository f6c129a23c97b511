"""How busy workers and links are under the recommended setting, as plain data: the heat map of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from gcnsim.cluster import LinkName
from gcnsim.report.answer.provenance import plain
from gcnsim.report.figures.breakdown import MOST_BARS
from gcnsim.results import LinkUse, WhatIf

STAGES = {"gpu": "GPU", "sampler": "sampler", "copies": "copies", "reduce": "all-reduce", "waiting": "waits"}
"""Shares of a worker, and their headings."""

IDLE = STAGES["waiting"]
"""The heading of a share in which a worker does nothing: it has no colour in a map of what is busy."""

_WAYS = {"up": "to host", "down": "to GPU", "tx": "out", "rx": "in", None: ""}
_OF_RACKS = {"up": "out", "down": "in"}


class HeatRow(NamedTuple):
    """One worker, server or link: its shares in [0, 1], None where it has none. marked: it sets the pace."""

    name: str
    shares: tuple[float | None, ...]
    marked: bool = False

    @property
    def busiest(self) -> float:
        """Its largest share."""
        return max((share for share in self.shares if share is not None), default=0.0)


class Heat(NamedTuple):
    """A table of shares: what a row is, the headings of its shares, and the rows."""

    of: str
    heads: tuple[str, ...]
    rows: tuple[HeatRow, ...]

    @property
    def busiest(self) -> list[HeatRow]:
        """The rows that are shown at once, in their order: those that set the pace, then the busiest."""
        found = sorted(self.rows, key=lambda row: (not row.marked, -row.busiest))[:MOST_BARS]
        return [row for row in self.rows if row in found]


def heats_of(answer: WhatIf) -> list[Heat]:
    """Workers with their own links, servers with theirs, and links between servers; those that there are."""
    told = answer.utilization
    if told is None:
        return []
    workers, servers, others = _sorted(told.links)
    slow = _straggler(answer)
    held: dict[int, dict[str, float]] = {
        each.worker: {head: getattr(each, stage) for stage, head in STAGES.items()} for each in told.workers
    }
    for rank, links in workers.items():
        held.setdefault(rank, {}).update(links)
    first = _heat("worker", {f"worker {rank}": shares for rank, shares in sorted(held.items())}, f"worker {slow}")
    home = next((each.server for each in told.workers if each.worker == slow), None)
    second = _heat("server", {f"server {place}": shares for place, shares in sorted(servers.items())}, f"server {home}")
    third = _heat("link", {name: {"busy": share} for name, share in others.items()}, "")
    return [heat for heat in (first, second, third) if heat.rows]


def _straggler(answer: WhatIf) -> int | None:
    """The worker that the others wait for, or whose link or stage sets the pace."""
    return answer.recommendation.row.limited_by_worker if answer.straggler is None else answer.straggler.worker


def _sorted(
    links: Sequence[LinkUse],
) -> tuple[dict[int, dict[str, float]], dict[int, dict[str, float]], dict[str, float]]:
    """Links by worker, by server, and the others in words, each with its heading and share."""
    workers: dict[int, dict[str, float]] = {}
    servers: dict[int, dict[str, float]] = {}
    others: dict[str, float] = {}
    for link in links:
        found = LinkName.of(link.name)
        if found is None:
            others[plain(link.name)] = link.utilization
        elif found.of_worker is None and found.of_server is None:
            others[f"{found.text}, {_OF_RACKS.get(found.way or '', found.way)}"] = link.utilization
        else:
            head = f"{found.head} {_WAYS.get(found.way, found.way)}".strip()
            (servers if found.of_worker is None else workers).setdefault(found.number, {})[head] = link.utilization
    return workers, servers, others


def _heat(of: str, shares: Mapping[str, Mapping[str, float]], marked: str) -> Heat:
    heads = tuple(dict.fromkeys(head for each in shares.values() for head in each))
    rows = (HeatRow(name, tuple(map(each.get, heads)), name == marked) for name, each in shares.items())
    return Heat(of, heads, tuple(rows))
