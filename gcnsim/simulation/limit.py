"""The bottleneck of an iteration: the resource whose removal shortens it most.

All answers use one definition. Removing a resource means that its work takes no time and everything else stays the same
(`gcnsim.simulation.removal`). The bottleneck is the kind of resource whose removal shortens the iteration most. Kinds
within one percent of the iteration are named together.

If the work of a kind is uneven, the owner with most work is named alone under two conditions: its removal alone
shortens the iteration by more than one percent, and no other kind's removal shortens it more. If no removal shortens
the iteration by more than one percent, there is no single bottleneck: several resources take equally long in parallel.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from gcnsim.core.ids import FloatArray, Rank, Seconds, Server
from gcnsim.engine import Run
from gcnsim.hardware.link_specs import LinkName
from gcnsim.simulation.removal import (
    ALLREDUCE,
    COMPUTE,
    CPU,
    LATENCY,
    OPTIMIZER,
    PACKING,
    PAUSE,
    SAMPLING,
    Removals,
    Resource,
)
from gcnsim.timeline import PHASE, OpKind, Phase

WORDS: Final = {
    COMPUTE: "GPU compute",
    SAMPLING: "sampling on the GPU",
    PACKING: "packing on the GPU",
    "nic": "network (NIC)",
    "pcie": "PCIe copies",
    "nvlink": "NVLink",
    "rack": "uplinks of racks",
    "memory": "host memory copies",
    CPU: "sampling on the CPU",
    OPTIMIZER: "optimizer and bookkeeping",
    PAUSE: "paused",
}
"""Kinds of bottlenecks, in words."""

SHORT: Final = {"nic": "NIC", "pcie": "PCIe", "nvlink": "NVLink", "rack": "uplinks of racks", "memory": "host"}

EVERY: Final = {
    "nic": "NICs of all servers",
    "pcie": "PCIe of all workers",
    "pcie-switch": "PCIe switches of all servers",
    "nvlink": "NVLink of all workers",
    "rack": "uplinks of all racks",
    "memory": "host memory copies of all servers",
    "dram": "host memory of all servers",
    "staging": "host memory copies of all workers",
}
"""All links of a family (`gcnsim.hardware.link_specs.LinkName`), in words."""

SLIGHT: Final = 0.01
"""The share of an iteration that a simulation of a few iterations cannot resolve: 1 %."""

UNEVEN: Final = 1.05
"""The least ratio of the largest owner's work to the mean for which the owner may be named alone."""

SATURATED: Final = 0.95
"""The share of the iteration from which on cores are the bottleneck, and not a single thread: 95 %."""

NO_SINGLE: Final = "no single resource"
"""The start of the text if no removal shortens the iteration noticeably."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The bottleneck of an iteration and the gain from removing it.

    text: the resource by name, e.g. "NIC of server 2". kind: one of `WORDS`; word: the kind in words. share: the
    reduction of the iteration without it, at most 0.01 without a single bottleneck. kind_share: the reduction without
    all resources of its kind. worker: the owner with most work, or the worker that moves most over a link, or None.
    server, link: the server and its busier direction, if the bottleneck is a server's link. most: the owner with most
    work by name, empty if all have the same; busy: the share of the iteration in which it is busy; others: the least
    and largest such share of the other owners, None if there are none. only: for cores, whether removing any other kind
    gains at most one percent.
    """

    text: str
    kind: str
    word: str
    share: float
    kind_share: float
    worker: Rank | None = None
    server: Server | None = None
    link: str | None = None
    most: str = ""
    busy: float = 0.0
    others: tuple[float, float] | None = None
    only: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """One resource of a kind. busy: share of the iteration; text: its name; family: the family of its links, "" if it
    is not a link.
    """

    resource: Resource
    busy: float
    text: str
    family: str = ""


@dataclass
class _Kind:
    """A kind of resource. parts: its resources, the one with most work first."""

    whole: Resource
    text: str
    parts: Sequence[_Part] = field(default_factory=tuple)

    @property
    def loads(self) -> list[float]:
        """The busy shares of the busiest resource and of its peers, largest first."""
        return [part.busy for part in self.parts if part.family == self.parts[0].family]

    @property
    def uneven(self) -> bool:
        """Whether one has noticeably more work than the mean of its peers."""
        return len(self.loads) > 1 and self.loads[0] >= UNEVEN * float(np.mean(self.loads))


def find_limit(run: Run, first: int, iteration_s: Seconds, measured: int | None = None) -> Limit:
    """The bottleneck of the iterations of `run` from `first` on, whose mean is `iteration_s`. measured: as in
    `Removals`.
    """
    return _Limits(Removals(run, first, iteration_s, measured)).limit()


def gain_at_most(run: Run, first: int, iteration_s: Seconds, kinds: Collection[str]) -> float:
    """An upper bound on the reduction of the iteration with infinitely fast resources of `kinds`. Proven, not
    simulated.
    """
    removals = Removals(run, first, iteration_s)
    return removals.at_most_without([value for kind, value in removals.kinds.items() if kind in kinds])


class _Limits:
    """Finds and names the bottleneck."""

    def __init__(self, removals: Removals) -> None:
        self.removals = removals
        self.schedule = removals.schedule
        self.columns = removals.schedule.columns
        self.cores = bool(self.columns.is_flow[self.schedule.ends[0]])
        """Whether workers compute on CPU cores."""
        self.loads = bool(self.columns.is_kind(OpKind.GATHER).any())

    def limit(self) -> Limit:
        """The bottleneck with its name."""
        removals, kinds = self.removals, self.removals.kinds
        order = sorted(kinds, key=lambda kind: -removals.at_most(kinds[kind]))
        saved: dict[str, float] = {}
        for kind in order:
            # The remaining kinds can neither be the bottleneck nor be named with it.
            least = max(SLIGHT, max(saved.values(), default=0.0) - SLIGHT)
            if removals.at_most(kinds[kind]) <= least:
                break
            if not saved or (removals.at_most(kinds[kind], chains=True) > least and kind not in removals.minor(least)):
                saved[kind] = removals.saved(kinds[kind])
        best = max(saved, key=lambda kind: saved[kind], default="")
        if not best or saved[best] <= SLIGHT:
            return self._balanced(max(saved.values(), default=0.0))
        tied = _distinct([kind for kind in saved if saved[kind] >= saved[best] - SLIGHT], best)
        found = self._kind(tied[0])
        share = saved[found.whole.kind]
        if len(tied) == 1 and found.uneven and self._stands_out(found):
            own = found.parts[0]
            return self._named(own.text, found, removals.saved(own.resource), share)
        return self._named(_listed([self._kind(kind).text for kind in tied]), found, share, share)

    def _stands_out(self, kind: _Kind) -> bool:
        """Whether removing the largest owner alone gains at least as much as removing any other kind."""
        own = self.removals.saved(kind.parts[0].resource)
        return own > SLIGHT and self._none_beyond(own, kind)

    def _none_beyond(self, share: float, kind: _Kind) -> bool:
        """Whether removing any other kind shortens the iteration by at most `share`."""
        removals = self.removals
        return all(
            removals.at_most(other) <= share
            or removals.at_most(other, chains=True) <= share
            or name in removals.minor(share)
            or removals.saved(other) <= share
            for name, other in removals.kinds.items()
            if name != kind.whole.kind
        )

    def _balanced(self, share: float) -> Limit:
        """No single bottleneck: the two busiest kinds are named."""
        kinds = {kind: self._kind(kind) for kind in self.removals.kinds}
        busiest = sorted((kind for kind in kinds if kinds[kind].parts), key=lambda kind: -kinds[kind].parts[0].busy)[:2]
        if not busiest:
            return Limit("nothing", OPTIMIZER, WORDS[OPTIMIZER], 0.0, 0.0)
        names = " and ".join(kinds[kind].parts[0].text for kind in busiest)
        text = f"{NO_SINGLE}: {names} overlap" if len(busiest) > 1 else names
        return self._named(text, kinds[busiest[0]], max(0.0, share), max(0.0, share))

    def _named(self, text: str, kind: _Kind, share: float, kind_share: float) -> Limit:
        link = self._link_kind(kind.whole)
        word = self._word(link)
        if not kind.parts:
            return Limit(text, link, word, share, kind_share)
        most = kind.parts[0]
        facts = self._owner(most.resource)
        busy = [min(1.0, load) for load in kind.loads]
        others = (min(busy[1:]), max(busy[1:])) if busy[1:] else None
        uneven = most.text if kind.uneven else ""
        only = kind.whole.kind == CPU and kind_share > SLIGHT and self._none_beyond(SLIGHT, kind)
        return Limit(text, link, word, share, kind_share, *facts, uneven, busy[0], others, only)

    def _owner(self, most: Resource) -> tuple[Rank | None, Server | None, str | None]:
        """Worker, server and link of the owner with most work."""
        links = most.links
        if not links and isinstance(most.owner, int):
            return most.owner, None, None
        if not links:
            links = tuple(np.unique(self.columns.first_link(most.ops)).tolist())
        link = max(links, key=lambda item: float(self.removals.link_loads[item]))
        name = self.schedule.link_names[link]
        link_name = LinkName.of(name)
        if link_name is None:
            return self.heaviest(link), None, name
        return self.heaviest(link) if link_name.of_worker is None else link_name.of_worker, link_name.of_server, name

    def _kind(self, kind: str) -> _Kind:
        """A kind with its name and its resources."""
        whole = self.removals.kinds[kind]
        shared = kind == CPU and (self.cores or self._core_load() >= SATURATED)
        parts = [
            _Part(resource, busy, self._text(kind, owner, whole, shared), self._family(resource))
            for owner, (resource, busy) in self.removals.single(whole, shared).items()
        ]
        parts.sort(key=lambda part: -part.busy)
        found = _Kind(whole, self._text(kind, None, whole, shared), parts)
        if parts:
            found.text = parts[0].text if len(found.loads) == 1 else EVERY.get(parts[0].family, found.text)
        return found

    def _family(self, resource: Resource) -> str:
        """The family of a resource's links; "" if it is not a link."""
        found = LinkName.of(self.schedule.link_names[resource.links[0]]) if resource.links else None
        return "" if found is None else found.family

    def _text(self, kind: str, owner: object, whole: Resource, shared: bool) -> str:
        """A resource in words; owner: None for all of its kind."""
        if kind in (LATENCY, ALLREDUCE):
            link = self._link_kind(whole)
            what = "all-reduce" if kind == ALLREDUCE else "latency of messages"
            return f"{what} ({SHORT.get(link, link)})"
        if whole.links:
            return str(owner) if owner is not None else WORDS.get(kind, kind)
        if shared:
            cores = "CPU cores of all servers" if owner is None else str(owner)
            return cores if self.cores else f"{cores} ({self._drawing(whole, many=True)})"
        whose = "all workers" if owner is None else f"worker {owner}"
        if kind == CPU:
            return f"{self._drawing(whole, many=owner is None)} of {whose} (host CPU)"
        return f"{'pause' if kind == PAUSE else WORDS[kind]} of {whose}"

    def _drawing(self, whole: Resource, *, many: bool) -> str:
        """The work of hosts on their cores for workers on GPUs, in words."""
        if self.loads:
            return "drawing and loading"
        sampled = self._sampling(whole)
        sampler = "samplers" if many else "sampler"
        if sampled > 1.0 - SLIGHT:
            return sampler
        return f"{sampler} and sockets" if sampled > SLIGHT else "sockets"

    def _sampling(self, whole: Resource) -> float:
        """The share of a resource's work that is sampling."""
        sampling = self.columns.is_kind(*(kind for kind, phase in PHASE.items() if phase is Phase.SAMPLING))[whole.ops]
        work = self.removals.work[whole.ops]
        return float(work[sampling].sum() / max(float(work.sum()), 1e-300))

    def _core_load(self) -> float:
        """The share of the iteration in which all cores of the busiest server are busy."""
        loads = self.removals.link_loads
        return max(
            (float(loads[link]) for link, kind in enumerate(self.schedule.link_kinds) if kind == CPU), default=0.0
        )

    def _word(self, kind: str) -> str:
        """A kind in words."""
        if self.cores and kind in (COMPUTE, CPU):
            return "CPU cores"
        if kind == CPU and self.loads:
            return "drawing and loading on the CPU"
        if kind == CPU and self._sampling(self.removals.kinds[CPU]) <= 1.0 - SLIGHT:
            return "CPU cores: sampling and sockets"
        return WORDS.get(kind, kind)

    def _link_kind(self, whole: Resource) -> str:
        """The kind itself; for latency and an all-reduce, the kind of the links on which its messages take longest."""
        if whole.kind not in (LATENCY, ALLREDUCE):
            return whole.kind
        run, first = self.removals.run, self.removals.first
        lasted = (run.ends[first:, whole.ops] - run.starts[first:, whole.ops]).sum(axis=0)
        spent: dict[str, float] = {}
        for way, seconds in zip(self.columns.way[whole.ops].tolist(), lasted.tolist(), strict=True):
            route = self.removals.routes[way] if way >= 0 else ()
            if route:
                tightest = max(route, key=lambda link: float(self.removals.link_loads[link]))
                kind = self.schedule.link_kinds[tightest]
                spent[kind] = spent.get(kind, 0.0) + seconds
        return max(spent, key=lambda kind: spent[kind], default="nic")

    def heaviest(self, link: int) -> Rank | None:
        """The worker that moves most over a link: the sender for outgoing links, the receiver for incoming ones."""
        moved = self.by_worker(link)
        return int(moved.argmax()) if moved.any() else None

    def by_worker(self, link: int) -> FloatArray:
        """Units per iteration that each worker moves over a link, float64[P].

        Empty for mini-batches: the worker that requests rows differs from the one that sends them.
        """
        workers, columns = self.schedule.workers, self.columns
        if self.loads:
            return np.zeros(workers)
        arrives = self.schedule.link_names[link].endswith((".rx", ".down"))
        ops, links = columns.crossings
        here = ops[links == link]
        mover = np.where(arrives & (columns.peer >= 0), columns.peer, columns.worker)[here]
        return np.bincount(mover, weights=self.removals.work[here], minlength=workers).astype(np.float64)


def _listed(texts: Sequence[str]) -> str:
    return " or ".join([", ".join(texts[:-1]), texts[-1]]) if len(texts) > 1 else texts[0]


def _distinct(tied: Sequence[str], best: str) -> list[str]:
    """The kinds that gain about as much as the best, which is first. An all-reduce replaces its links and latency."""
    order = [best, *(kind for kind in tied if kind != best)]
    if ALLREDUCE not in order:
        return order
    own = (COMPUTE, SAMPLING, PACKING, OPTIMIZER, PAUSE, CPU)
    return [ALLREDUCE, *(kind for kind in order if kind in own)]
