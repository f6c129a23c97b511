"""BNS-GCN (`bns-gcn`): every iteration a random share of the boundary nodes, synchronously, scaled up to be unbiased.

Source: BNS-GCN, Algorithm 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.workload.knobs import BOUNDARY_SCALE, RATE, knob
from runtime.methods.method import Method

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class BnsGcn(Method):
    """BNS-GCN; see the module."""

    name: ClassVar[str] = "bns-gcn"
    waits: ClassVar[bool] = True
    rate: float = knob(RATE)
    boundary_scale: str = knob(BOUNDARY_SCALE)

    def worker(self, context: Context) -> MethodWorker:
        """The worker with a synchronous exchange of sampled boundary nodes."""
        from runtime.methods.bns_gcn.worker import BnsGcnWorker

        return BnsGcnWorker(context, self.rate, self.boundary_scale)
