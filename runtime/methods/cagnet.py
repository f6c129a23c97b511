"""CAGNET: every block of rows is broadcast to every worker, before each layer and each way.

1D (`cagnet-1d`). Source: CAGNET, 1D algorithm, as SANCUS (section 5) describes it.

1.5D (`cagnet-1.5d`): `replication` workers store the same block and share its broadcasts. Source: CAGNET, 1.5D
algorithm. The simulator's rule (`gcnsim.graph.parts`) assigns storage and products.

Both are equal to training in one process up to the order of sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.core.errors import ScenarioError
from gcnsim.graph.parts import allowed_copies
from gcnsim.workload.knobs import REPLICATION, knob
from runtime.methods.method import BlockMethod
from runtime.options import Options

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class Cagnet1d(BlockMethod):
    """CAGNET 1D; see the module. It has no knobs."""

    name: ClassVar[str] = "cagnet-1d"

    def worker(self, context: Context) -> MethodWorker:
        """The worker that sends all blocks in every iteration."""
        from runtime.methods.worker import BlockWorker

        return BlockWorker(context)


@dataclass(frozen=True)
class Cagnet15d(BlockMethod):
    """CAGNET 1.5D; see the module."""

    name: ClassVar[str] = "cagnet-1.5d"
    replication: int = knob(REPLICATION)

    @property
    def copies(self) -> int:
        """The number of copies, `replication`."""
        return self.replication

    def refuse(self, options: Options) -> None:
        """Refuse blocks with a wrong number of workers, and a precomputed layer-0 sum, which needs other parts."""
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
        """The worker that sends all blocks in every iteration; each block is stored by several workers."""
        from runtime.methods.worker import BlockWorker

        return BlockWorker(context, copies=self.replication)
