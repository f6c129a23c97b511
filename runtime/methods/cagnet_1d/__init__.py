"""CAGNET, 1D (`cagnet-1d`): every block of rows is broadcast to every worker, before each layer and each way.

Source: CAGNET, 1D algorithm, as SANCUS (section 5) describes it. Equal to training in one process up to the order of
sums.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from runtime.methods.method import BlockMethod

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class Cagnet1d(BlockMethod):
    """CAGNET 1D; see the module. It has no knobs."""

    name: ClassVar[str] = "cagnet-1d"

    def worker(self, context: Context) -> MethodWorker:
        """The worker that sends all blocks in every iteration."""
        from runtime.methods.block_worker import BlockWorker

        return BlockWorker(context)
