"""Distributed mini-batches of own nodes (`distdgl`): rows of other parts are requested from their owners.

Source: GraphSAGE, Algorithm 2, over the partitioned store that DistDGL describes. It is like `graphsage`, but batches
contain training nodes of a worker's part, so most of a neighbourhood is local. Interpretation: the graph structure is
local everywhere, so sampling needs no messages; only feature rows are sent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from runtime.methods.method import NeighbourBatches

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context


@dataclass(frozen=True)
class DistDgl(NeighbourBatches):
    """DistDGL; see the module."""

    name: ClassVar[str] = "distdgl"
    draws_ahead: ClassVar[bool] = False
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "own"

    def worker(self, context: Context) -> BatchWorker:
        """The worker that samples, loads and trains batches."""
        from runtime.methods.batches.worker import neighbour_worker

        return neighbour_worker(context, self)
