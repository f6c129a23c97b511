"""The memory of a server: what the workers of today's systems keep in it beside their GPUs, in bytes by component.

Sources: DGL keeps the matrix that it samples from in 8-byte ids and rows in fp32, one copy shared by the processes of a
server (examples/multigpu); DistDGL and the releases of PipeGCN and BNS-GCN read a part per server
or worker, and with it the partition book, the part and the local id of every node. Not compared with the memory of a
real server.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

from gcnsim.core.ids import Bytes
from gcnsim.cost.device import VALUE
from gcnsim.cost.memory import ID

BOOK: Final = 2 * ID
"""Bytes of a node in a partition book: its part and its id there."""

PROCESS: Final = 2e9
"""Bytes of a worker's process besides its data: framework, CUDA context and pinned pool. Assumed (1 to 4 GB)."""

SYSTEM: Final = 1e9
"""Bytes that the operating system needs. Assumed."""


@dataclass(frozen=True, slots=True)
class ServerMemory:
    """The memory of one server in bytes. rows: input rows and labels. graph: stored entries and offsets. book: the
    partition book. buffers: batches that loaders hold, or copies of boundary rows. processes: what workers need besides
    their data."""

    rows: Bytes
    graph: Bytes
    book: Bytes
    buffers: Bytes
    processes: Bytes

    @property
    def total(self) -> Bytes:
        """The sum of all components."""
        return float(sum(getattr(self, field.name) for field in fields(self)))

    def fits(self, capacity: Bytes) -> bool:
        """Whether it fits in a server of `capacity` bytes, besides SYSTEM."""
        return self.total + SYSTEM <= capacity


def server_memory(
    *, nodes: float, entries: float, width: int, booked: float, buffered: float, workers: int
) -> ServerMemory:
    """The memory of a server that stores `nodes` nodes with `entries` entries and input rows of `width` values.

    booked: nodes in its partition books. buffered: bytes of its loaders' batches, or of copies in host memory. workers:
    processes, one for each GPU in use.
    """
    return ServerMemory(
        rows=nodes * (VALUE * width + ID),
        graph=ID * (entries + nodes),
        book=BOOK * booked,
        buffers=buffered,
        processes=PROCESS * workers,
    )
