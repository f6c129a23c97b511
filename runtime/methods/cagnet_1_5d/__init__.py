"""CAGNET, 1.5D (`cagnet-1.5d`): as 1D, with `replication` workers that hold the same block and share its broadcasts.

Source: CAGNET, 1.5D algorithm. Who holds and who multiplies what is the simulator's rule (`gcnsim.partition.parts`).
Equal to training in one process up to the order of sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.errors import ScenarioError
from gcnsim.knobs import REPLICATION, knob
from gcnsim.partition import allowed_copies
from runtime.methods.method import BlockMethod
from runtime.options import Options

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class Cagnet15d(BlockMethod):
    """See the module."""

    name: ClassVar[str] = "cagnet-1.5d"
    replication: int = knob(REPLICATION)

    @property
    def copies(self) -> int:
        """As many as `replication` says."""
        return self.replication

    def refuse(self, options: Options) -> None:
        """Blocks that not as many workers hold; a sum of layer 0 that each worker would make of its own part alone."""
        super().refuse(options)
        if options.workers % self.replication:
            raise ScenarioError(
                f"--replication: {self.replication} does not divide the {options.workers} workers; "
                f"allowed: {allowed_copies(options.workers)}"
            )
        if options.preaggregate:
            raise ScenarioError(
                f"--preaggregate: {self.name} cannot sum layer 0 once; allowed where a worker holds its part alone"
            )

    def worker(self, context: Context) -> MethodWorker:
        """All blocks, always, each held by several."""
        from runtime.methods.block_worker import BlockWorker

        return BlockWorker(context, copies=self.replication)
