"""BNS-GCN (`bns-gcn`): every iteration a random share of the boundary nodes, synchronously.

Source: BNS-GCN, Algorithm 1. Readings, those of the training runtime: owners draw what they send, once per iteration
for all layers. They send two messages to each peer: how many ids, and which. Receivers then build the matrix of the
entries that cross to drawn nodes. Inner entries are all kept, so their matrix is made once. All of this precedes the
rest of the iteration, on the thread that trains. Rate 1 draws nothing and is full-graph training. Rate 0 exchanges
neither rows nor ids, and only gradients of the weights are shared.

The knob `sample` selects the two baselines of BNS-GCN's section on edge sampling. Both drop as many edges as
boundary-node sampling at the same rate: `boundary-edges` from those that cross, `edges` (DropEdge) from all. Readings:
the worker that sums an entry draws it on its GPU, and asks the owners for the remaining rows. It sorts the kept entries
into a matrix, forward and backward; with `edges` the whole matrix.

With `sampler_device: gpu` owners draw nodes on their GPUs, which read and write one number for each.

Assumption: GPUs hold all crossing entries and select those of drawn nodes themselves; only ids are copied to them.
Workers on CPU cores build where they compute, as the runtime does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.ids import Rank
from gcnsim.cost import MemoryCounts
from gcnsim.methods.families.boundary_rows import BoundaryRows, with_drawn_crossing
from gcnsim.methods.full_graph import FullGraph
from gcnsim.methods.method import RATE_STEPS, WHOLE_NODES, Facts, KnobStep, Method, Sampling
from gcnsim.schedule import Schedule
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload.draws import NODES
from gcnsim.workload.knobs import RATE, choice, knob

SAMPLE: Final = choice(
    "sample",
    WHOLE_NODES,
    (WHOLE_NODES, "boundary-edges", "edges"),
    "what is dropped: boundary nodes; or as many edges as they have, cross edges only or any (DropEdge)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BnsGcn(BoundaryRows):
    """Boundary nodes drawn at a rate, or as many edges dropped."""

    name: ClassVar[str] = "bns-gcn"
    about: ClassVar[str] = "a random share of the boundary rows in every iteration, which waits for them"
    overlaps: ClassVar[bool] = True
    simulated_only: ClassVar[tuple[str, ...]] = ("sample",)
    variants: ClassVar[tuple[Mapping[str, Any], ...]] = ({}, {"sample": "boundary-edges"}, {"sample": "edges"})

    rate: float = knob(RATE)
    sample: str = knob(SAMPLE)

    def sampling(self) -> Sampling:
        """The sampling of nodes, or of as many edges, at the rate; none at 1."""
        return Sampling() if self.rate == 1.0 else Sampling(NODES, self.rate, self.sample)

    @property
    def sampler_devices(self) -> tuple[str, ...]:
        """The GPU that aggregates edges samples them."""
        if self.sampling().whole:
            return ()
        return ("cpu", "gpu") if self.sample == WHOLE_NODES else ("gpu",)

    def samples(self, facts: Facts) -> bool:
        """Whether it samples: a single worker has no boundary."""
        return self.rate < 1.0 and facts.cluster.gpus > 1

    def schedule(self, facts: Facts) -> Schedule:
        """The schedule: every inner edge, with crossing ones sampled first. Raises ScenarioError for edges on CPU
        cores.
        """
        from gcnsim.methods.families.sampled_boundary import EdgesOnGpu, NodesOnCpu, NodesOnGpu

        nodes = self.sample == WHOLE_NODES
        if facts.device.kind != "cpu":
            return (NodesOnGpu if nodes else EdgesOnGpu)(self, facts).write()
        if not nodes:
            raise ScenarioError(
                f"method.sample: {self.sample} is modelled for GPUs only; cluster.device is {facts.device.name}"
            )
        return NodesOnCpu(self, facts).write()

    def held(self, counts: AccessCounts, rank: Rank) -> MemoryCounts:
        """All inner entries, and the sampled crossing entries."""
        if self.rate == 1.0:
            return self.held_at_most(counts, rank)
        return with_drawn_crossing(self.held_at_most(counts, rank, inner_whole=True), counts, rank)

    def canonical(self) -> Method:
        """At rate 1 full-graph training."""
        return self if self.rate < 1.0 else FullGraph(overlap=self.overlap)

    def candidates(self, rates: Sequence[float]) -> Iterator[Method]:
        """Every rate."""
        for rate in rates:
            yield replace(self, rate=rate)

    def steps(self) -> Iterator[KnobStep]:
        """The next lower rate."""
        lower = [step for step in RATE_STEPS if step < self.rate]
        if lower:
            yield KnobStep("rate", self.rate, lower[0], replace(self, rate=lower[0]))
