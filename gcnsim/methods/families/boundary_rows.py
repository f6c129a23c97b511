"""The common parts of systems that exchange boundary rows (their iteration: `gpu_workers`, `cpu_workers`)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Final

from gcnsim.core.ids import Rank
from gcnsim.cost import Memory, MemoryCounts, partition_memory
from gcnsim.methods.method import Method
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import LayerShape

if TYPE_CHECKING:
    from gcnsim.methods.method import Facts
    from gcnsim.schedule import Schedule

EVERY_OPTION: Final = frozenset(
    {
        "devices",
        "transfers",
        "payload",
        "sockets",
        "rate_beside_copies",
        "sampler_device",
        "sampler_threads",
        "implementation",
        "nvlink",
        "transport",
        "gpudirect",
        "allreduce",
    }
)
"""The cluster options that these schedules model: all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundaryRows(Method):
    """Partition-parallel training: every worker keeps its partition and exchanges the rows of its boundary nodes."""

    uses: ClassVar[frozenset[str]] = EVERY_OPTION
    supports_gat: ClassVar[bool] = True
    exchanges_rows: ClassVar[bool] = True
    supports_cpu: ClassVar[bool] = True

    def schedule(self, facts: Facts) -> Schedule:
        """Every worker's iteration, on GPUs or on CPU cores."""
        if facts.device.kind == "cpu":
            from gcnsim.methods.families.cpu_workers import CpuWriter

            return CpuWriter(self, facts).write()
        from gcnsim.methods.families.gpu_workers import GpuWriter

        return GpuWriter(self, facts).write()

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """Memory of each worker's GPU; None with attention, for which there is no formula."""
        if any(shape.heads for shape in shapes):
            return None
        held = [self.held(counts, rank) for rank in range(counts.workers)]
        return tuple(partition_memory(shapes, item, norm=norm, averages=self.smooths, payload=payload) for item in held)

    def held(self, counts: AccessCounts, rank: Rank) -> MemoryCounts:
        """The counts for a worker's memory: the whole graph, because nothing is sampled."""
        return self.held_at_most(counts, rank)

    def held_at_most(self, counts: AccessCounts, rank: Rank, *, inner_whole: bool = False) -> MemoryCounts:
        """The same with the most entries and rows of any of the graphs.

        inner_whole: all inner entries are kept and only crossing ones sampled; otherwise the sampled graph keeps the
        ratio of both.
        """
        entries, loops = int(counts.entries[rank]), int(counts.inner_nodes[rank])
        rows, requested = counts.rows[:, rank].sum(axis=1), counts.rows[:, :, rank].sum(axis=1)
        inside, cross = counts.inner_edges[:, rank], counts.boundary_edges[:, rank]
        most_entries = int((inside + cross).max())
        crossing = (
            entries - int(inside.max())
            if inner_whole or not most_entries
            else round(entries * int(cross.max()) / most_entries)
        )
        return MemoryCounts(
            inner=loops,
            entries=entries + loops,
            crossing=max(crossing, int(cross.max())),
            boundary=int(counts.boundary_nodes[rank]),
            rows=int(rows.max()),
            asked=int(requested.max()),
            cached=int(counts.cached_rows[rank]),
            tau=self.tau,
        )


def with_drawn_crossing(held: MemoryCounts, counts: AccessCounts, rank: Rank) -> MemoryCounts:
    """The same, plus the crossing entries of one drawn graph."""
    return replace(held, graphs=1, kept_crossing=int(counts.boundary_edges[:, rank].max()))
