"""Distributed mini-batches of own nodes (`distdgl`): rows of other parts are pulled from the workers that own them.

Source: GraphSAGE, Algorithm 2, over the partitioned store that DistDGL describes. As `graphsage`, but batches are of
training nodes of a worker's own part, so most of a neighbourhood is near. Reading: the structure is near everywhere, so
that drawing needs no messages; only feature rows travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from runtime.methods.batches.method import NeighbourBatches


@dataclass(frozen=True)
class DistDgl(NeighbourBatches):
    """See the module."""

    name: ClassVar[str] = "distdgl"
    draws_ahead: ClassVar[bool] = False
    usual_fanout: ClassVar[int] = 10
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "own"
