"""Vanilla partition-parallel training (`full-graph`): every boundary row and gradient of the same iteration.

Equal to training in one process up to the order of sums. `--overlap none` waits for the rows before it sums anything,
as the published baselines do; `central` sums what needs no other worker during the transfer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from runtime.methods.method import Method

if TYPE_CHECKING:
    from runtime.methods.worker import Context, MethodWorker


@dataclass(frozen=True)
class FullGraph(Method):
    """Full-graph training; see the module. It has no knobs."""

    name: ClassVar[str] = "full-graph"
    waits: ClassVar[bool] = True

    def worker(self, context: Context) -> MethodWorker:
        """The base worker."""
        from runtime.methods.worker import MethodWorker

        return MethodWorker(context)
