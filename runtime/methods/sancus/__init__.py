"""SANCUS (`sancus`): blocks of rows are broadcast as in CAGNET 1D, except those that a stale test skips.

Source: SANCUS, Algorithms 1 to 4. The tests are the simulator's (`gcnsim.workload.staleness`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gcnsim.workload.knobs import CLIP, DETECTION, SKIP_BACKWARD, STALE_TEST, THRESHOLD, WARM_ITERATIONS, knob
from gcnsim.workload.staleness import BlockRule
from runtime.methods.method import BlockMethod

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class Sancus(BlockMethod):
    """SANCUS; see the module."""

    name: ClassVar[str] = "sancus"
    stale_test: str = knob(STALE_TEST)
    threshold: float = knob(THRESHOLD)
    warm_iterations: int = knob(WARM_ITERATIONS)
    detection: str = knob(DETECTION)
    skip_backward: str = knob(SKIP_BACKWARD)
    clip: float = knob(CLIP)

    @property
    def block_rule(self) -> BlockRule:
        """The rule set by its knobs."""
        return BlockRule(
            test=self.stale_test,
            threshold=float(self.threshold),
            delayed=self.detection == "delayed",
            skips_backward=self.skip_backward == "yes",
        )

    def worker(self, context: Context) -> MethodWorker:
        """The worker with stored and tested blocks."""
        from runtime.methods.sancus.worker import SancusWorker

        return SancusWorker(context, self.block_rule, warm=int(self.warm_iterations), clip=float(self.clip))
