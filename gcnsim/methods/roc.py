"""ROC (`roc`): the whole graph lives in the servers' memory, and each layer's piece is swapped to a GPU and back.

Source: ROC, as PipeGCN (Table 6) compares with it; what its tables print as communication is that swapping, and they
print no time for an all-reduce, so there is none: compared with the others, its iteration lacks it. In the released
code the replicas' gradients are copied to one GPU, added and stepped there; that would be as many times the weights'
bytes over PCIe as there are workers, below a millisecond at the sizes of Table 6. Readings:
- rows meet the weights before they are summed, as in the released code: sums go at a layer's output width, backward in
  the first layer too;
- forward, a worker's inner rows come in and go out transformed; when all workers' have, those of inner and boundary
  nodes come in with the entries of its rows (column and value), are summed, and its inner rows go out;
- backward, the gradients of inner and boundary rows come in with the entries and are summed, the layer's input comes in
  for the weights' gradient, and the input's gradient goes out;
- nothing overlaps: a worker copies, computes, copies. Entries travel with each sum: a released memory manager keeps
  what fits, which would be nothing of a graph of Reddit's size beside the activations. Chosen by the fit of Table 6;
- rows of boundary nodes that another server owns come over the network.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.core.ids import Bytes
from gcnsim.cost import Memory, swapped_host_bytes, swapped_memory
from gcnsim.methods.method import Facts, Method
from gcnsim.schedule import Schedule
from gcnsim.trace.counts import AccessCounts
from gcnsim.workload import LayerShape


@dataclass(frozen=True, slots=True, kw_only=True)
class Roc(Method):
    """Every edge, synchronous, swapped."""

    name: ClassVar[str] = "roc"
    about: ClassVar[str] = "graph and rows in host memory, swapped to the GPU layer by layer"
    random_partition: ClassVar[bool] = True
    trained: ClassVar[bool] = False

    def schedule(self, facts: Facts) -> Schedule:
        """Copy in, compute, copy out."""
        from gcnsim.methods.families.swap_workers import SwapWriter

        return SwapWriter(self.name, facts).write()

    def memory(
        self, counts: AccessCounts, shapes: tuple[LayerShape, ...], *, norm: bool, payload: str
    ) -> tuple[Memory, ...] | None:
        """The memory of each worker: the largest step of a layer; None with attention."""
        if any(shape.heads for shape in shapes):
            return None
        inner, rows, entries = _part(counts)
        return tuple(swapped_memory(shapes, *one) for one in zip(inner, rows, entries, strict=True))

    def host_bytes(self, counts: AccessCounts, shapes: tuple[LayerShape, ...], per_server: int) -> Bytes:
        """Bytes of swapped data in the fullest server's memory."""
        inner, _, entries = _part(counts)
        parts = [swapped_host_bytes(shapes, *one) for one in zip(inner, entries, strict=True)]
        return max(sum(parts[first : first + per_server]) for first in range(0, len(parts), per_server))


def _part(counts: AccessCounts) -> tuple[list[int], list[int], list[int]]:
    """Per worker: inner nodes, boundary rows that its sums read, stored entries of its rows with self-loops."""
    rows = counts.rows.mean(axis=0).sum(axis=1).round().astype(int)
    return counts.inner_nodes.tolist(), rows.tolist(), (counts.entries + counts.inner_nodes).tolist()
