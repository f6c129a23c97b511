"""What limits an iteration: the worker, link or stage to speed up first, and its share of the iteration.

Either one stream or link is busy all the time, and the iteration is as long as its work; or nothing is, and the longest
exposed part of the slowest worker's iteration is what to shorten.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from gcnsim.cluster import LinkName
from gcnsim.ids import FloatArray, IntArray, Rank, Server
from gcnsim.schedule import Bounds
from gcnsim.schedule.columns import EVERY
from gcnsim.simulation.window import MeasurementWindow, Split
from gcnsim.timeline import PS_PER_S, Intervals, OpKind, Phase

WORDS: Final = {
    "compute": "GPU compute",
    "nic": "network (NIC)",
    "pcie": "PCIe copies",
    "nvlink": "NVLink",
    "rack": "uplinks of racks",
    "memory": "host memory copies",
    "cpu": "sampling on the CPU",
    "peer": "waiting for a slower worker",
    "other": "optimizer and bookkeeping",
    "pause": "paused",
}

ON_CORES: Final = {"cpu": "CPU cores", "compute": "CPU cores"}
"""Where workers compute on CPU cores, all their work shares these."""

LOADING: Final = {"cpu": "drawing and loading on the CPU"}
"""Where mini-batches are drawn, the same cores pick their rows out of memory."""

SOCKETS: Final = {"cpu": "CPU cores: sampling and sockets"}
"""Where messages between hosts take of the cores that draw."""

SATURATED: Final = 0.95
"""Share of the iteration above which a stream or link sets the pace by itself: 95 %."""

MOSTLY: Final = 0.5
"""Share of an exposed part above which the part is named after what takes it: all-reduce, latency."""

STAGES: Final = {"compute": "GPU compute", "cpu": "sampler", "other": "optimizer and bookkeeping", "pause": "pause"}
"""What a worker does by itself, in words."""


@dataclass(frozen=True, slots=True)
class Limit:
    """What sets the pace of an iteration.

    text: the link, stage or worker by name, e.g. "NIC of server 2". kind: one of `WORDS`; word: that in words. share:
    of the iteration in which the link or stage is busy; of a wait, an all-reduce or the latency of messages, the share
    that it takes. worker: whose stage it is, who is waited for, or of a link who moves most over it; None where that is
    nobody. server, link: where it is a link of a server, and the link's name.
    """

    text: str
    kind: str
    word: str
    share: float
    worker: Rank | None = None
    server: Server | None = None
    link: str | None = None


class Limits:
    """Finds the limit of a measured run whose schedule has the bounds `limits`."""

    def __init__(self, window: MeasurementWindow, limits: Bounds, iteration_s: float) -> None:
        self.window = window
        self.limits = limits
        self.iteration_s = iteration_s
        schedule = window.schedule
        self.busy = link_loads(window) / iteration_s
        self.moves = window.of_phase(Phase.TRANSFER, Phase.REDUCE)
        self.reduces = window.of_phase(Phase.REDUCE)
        self.on_cores = bool(schedule.columns.is_flow[schedule.ends[0]])
        self.loads = bool(schedule.columns.is_kind(OpKind.GATHER).any())
        self.words = WORDS | (ON_CORES if self.on_cores else {})
        if self.loads:
            self.words |= LOADING
        elif not self.on_cores and self._through_sockets():
            self.words |= SOCKETS

    def limit(self, split: Split, rank: Rank) -> Limit:
        """The saturated stream or link, else the longest exposed part of `rank`, the slowest worker."""
        if self.limits.busiest_s >= SATURATED * self.iteration_s:
            return self._saturated()
        parts = {"compute": split.compute, "other": 0, "cpu": 0}
        rest = split.other - split.paused
        parts["cpu" if split.sampling > rest / 2 else "other"] = rest
        parts["pause"] = split.paused
        carried, near = self._carried(split, rank), self._near(rank)
        kind = self._link_kind(near, rank)
        parts[kind] = carried.length
        parts["peer"] = split.exposed.length - carried.length
        longest = max(parts, key=lambda part: parts[part])
        if longest == "peer":
            waited = self._waited_for(rank)
            return self._named(f"waiting for worker {waited}", "peer", self._share(parts["peer"], rank), waited)
        if longest not in STAGES:
            return self._of_transfers(longest, near, carried, rank)
        busy = {"compute": split.compute, "cpu": split.sampling}.get(longest, parts[longest])
        return self._stage(longest, rank, self._share(busy, rank))

    def _share(self, length: int, rank: Rank) -> float:
        start, end = self.window.edges(rank)
        return length / max(1, end - start)

    def _named(
        self, text: str, kind: str, share: float, worker: Rank | None, server: Server | None = None, link: str = ""
    ) -> Limit:
        return Limit(text, kind, self.words[kind], min(1.0, share), worker, server, link or None)

    def _stage(self, kind: str, rank: Rank, share: float) -> Limit:
        text = "drawing and loading" if kind == "cpu" and self.loads else STAGES[kind]
        if kind in ON_CORES and self.on_cores:
            return self._named(f"CPU cores of worker {rank}", kind, share, rank)
        if kind == "cpu" and self._samples_on_gpu(rank):
            return self._named(f"sampling on the GPU of worker {rank}", "compute", share, rank)
        host = " (host CPU)" if kind == "cpu" else ""
        return self._named(f"{text} of worker {rank}{host}", kind, share, rank)

    def _saturated(self) -> Limit:
        """The stream or link with the most work."""
        name, kind = self.limits.busiest, self.limits.busiest_kind
        share = self.limits.busiest_s / self.iteration_s
        names = self.window.schedule.link_names
        if name in names:
            return self._link(names.index(name), kind, share)
        stream, _, number = name.rpartition(" of worker ")
        rank = int(number)
        if kind in STAGES:
            return self._stage(kind, rank, share)
        links = self._links_of(kind, self.window.schedule.columns.of_worker(rank))
        busiest = max(links, key=lambda link: self.busy[link])
        told = self._link(busiest, kind, share)
        if stream.startswith("reduce"):
            return self._named(f"all-reduce ({WORDS_SHORT.get(kind, told.text)})", kind, share, rank)
        text = f"transfers of worker {rank}, one after the other ({told.text})"
        return self._named(text, kind, share, rank, told.server, names[busiest])

    def _link(self, link: int, kind: str, share: float) -> Limit:
        name = self.window.schedule.link_names[link]
        found = LinkName.of(name)
        if found is None:
            return self._named(name, kind, share, self.heaviest(link), None, name)
        text = found.text
        if found.family == "cpu" and not self.on_cores:
            text += f" ({'drawing and loading' if self.loads else 'samplers'})"
        worker = self.heaviest(link) if found.of_worker is None else found.of_worker
        return self._named(text, kind, share, worker, found.of_server, name)

    def _of_transfers(self, kind: str, near: IntArray, carried: Intervals, rank: Rank) -> Limit:
        """Transfers that are waited for, over links of `kind`: named after the busiest of these."""
        links = self._links_of(kind, near) or self._links_of(kind, EVERY)
        if not links:
            return self._named(self.words[kind], kind, self._share(carried.length, rank), rank)
        link = max(links, key=lambda link: self.busy[link])
        told, takes = self._link(link, kind, float(self.busy[link])), self._share(carried.length, rank)
        for text, part in (
            (
                "all-reduce",
                carried.intersection(self.window.spans(near[self.reduces[near]], rank)).length,
            ),
            ("latency of messages", round(carried.length * self._latency_share(near, kind))),
        ):
            if part > MOSTLY * carried.length:
                return self._named(f"{text} ({WORDS_SHORT.get(kind, told.text)})", kind, takes, rank, None)
        return told

    def _carried(self, split: Split, rank: Rank) -> Intervals:
        """Exposed waits of a worker while one of its own transfers or reductions is under way."""
        return split.exposed.intersection(self.window.spans(self._near(rank), rank))

    def _near(self, rank: Rank) -> IntArray:
        """Transfers and reductions of a worker, and those of others whose peer it is, int64[k]."""
        near = self.window.schedule.columns.near(rank)
        return near[self.moves[near]]

    def _waited_for(self, rank: Rank) -> Rank:
        """The worker that waits least for others: the one that `rank` waits for."""
        others = [other for other in range(self.window.schedule.workers) if other != rank]

        def waits(other: Rank) -> int:
            split = self.window.split(other)
            return split.exposed.length - self._carried(split, other).length

        return min(others, key=lambda other: (waits(other), other), default=rank)

    def _latency_share(self, near: IntArray, kind: str) -> float:
        """Of the time of transfers over links of `kind`, the share in which no byte moves yet."""
        schedule, first = self.window.schedule, self.window.first
        columns = schedule.columns
        crosses = np.array([any(schedule.link_kinds[link] == kind for link in way) for way in (*columns.routes, ())])
        chosen = near[crosses[columns.way[near]]]
        lasted = (self.window.run.ends[first:, chosen] - self.window.run.starts[first:, chosen]) / PS_PER_S
        latency = columns.of_route(columns.latency_s)[chosen] * (lasted > 0)
        return float(latency.sum() / max(float(lasted.sum()), 1e-12))

    def _link_kind(self, near: IntArray, rank: Rank) -> str:
        """The kind of link that the ops of `near` spend most time on, each of them on the busiest link of its route."""
        schedule = self.window.schedule
        columns = schedule.columns
        kinds = np.array([*(self._tightest(route) for route in columns.routes), ""])[columns.way[near]]
        spent: dict[str, int] = {"nic": 0}
        for kind in dict.fromkeys(schedule.link_kinds):
            spent[kind] = self.window.spans(near[kinds == kind], rank).length
        return max(spent, key=lambda kind: spent[kind])

    def _tightest(self, route: Sequence[int]) -> str:
        """The kind of the busiest of these links; nothing without any."""
        busiest = max(route, key=lambda link: self.busy[link], default=None)
        return "" if busiest is None else self.window.schedule.link_kinds[busiest]

    def _links_of(self, kind: str, near: IntArray | slice) -> list[int]:
        """The links of `kind` on the routes of the ops of `near`, by id."""
        schedule = self.window.schedule
        ways = np.unique(schedule.columns.way[near])
        links = {link for way in ways[ways >= 0].tolist() for link in schedule.columns.routes[way]}
        return sorted(link for link in links if schedule.link_kinds[link] == kind)

    def heaviest(self, link: int) -> Rank | None:
        """The worker that moves most over a link: who sends where it leads away, who receives where it arrives."""
        by_worker = self.by_worker(link)
        return int(by_worker.argmax()) if by_worker.any() else None

    def by_worker(self, link: int) -> FloatArray:
        """Units per iteration that each worker moves over a link, float64[P]; nothing where mini-batches are loaded:
        who asks for rows there is not who sends them.
        """
        schedule = self.window.schedule
        arrives = schedule.link_names[link].endswith((".rx", ".down"))
        if self.loads:
            return np.zeros(schedule.workers)
        columns = schedule.columns
        ops, links = columns.crossings
        here = ops[links == link]
        mover = np.where(arrives & (columns.peer >= 0), columns.peer, columns.worker)[here]
        moved = _moved(self.window)[here]
        return np.bincount(mover, weights=moved, minlength=schedule.workers).astype(np.float64)

    def _samples_on_gpu(self, rank: Rank) -> bool:
        """Whether what draws a worker's graphs is on no core of its host."""
        columns = self.window.schedule.columns
        drawing = (columns.worker == rank) & columns.is_kind(OpKind.SAMPLE)
        return not (drawing & columns.is_flow).any()

    def _through_sockets(self) -> bool:
        """Whether messages take of the cores that the workers' samplers run on."""
        columns = self.window.schedule.columns
        first = columns.first_link()[columns.is_kind(OpKind.WIRE)]
        return any(self.window.schedule.link_kinds[link] == "cpu" for link in np.unique(first).tolist() if link >= 0)


WORDS_SHORT: Final = {"nic": "NIC", "pcie": "PCIe", "nvlink": "NVLink", "rack": "uplinks of racks", "memory": "host"}


def link_loads(window: MeasurementWindow) -> FloatArray:
    """Seconds per iteration in which each link is busy at its capacity, float64[links]."""
    return np.asarray(units_moved(window) / np.array(window.schedule.capacity), dtype=np.float64)


def units_moved(window: MeasurementWindow) -> FloatArray:
    """Mean units (bytes; core-seconds for a CPU) per measured iteration over each link, float64[links]."""
    ops, links = window.schedule.columns.crossings
    count = len(window.schedule.capacity)
    return np.bincount(links, weights=_moved(window)[ops], minlength=count).astype(np.float64)


def _moved(window: MeasurementWindow) -> FloatArray:
    """What each op takes of its links per measured iteration, float64[ops]."""
    rows = np.arange(window.first, window.run.iterations) % window.schedule.demand.shape[0]
    return np.asarray(window.schedule.demand[rows].mean(axis=0), dtype=np.float64)
