"""Distributed mini-batches of own nodes (`distdgl`): METIS parts, rows of other servers fetched before each batch.

Source: GraphSAGE, Algorithm 2, over the partitioned store that DistDGL describes. Every server holds the nodes of its
workers' parts; a worker's batches are training nodes of its own part, so most of a neighbourhood is near. Drawing, rows
and training follow one another: ids go to the owners, which pick the rows and send them. Readings: neighbours are drawn
`fanout` by number (10) or share (10%) in each layer, or `layer_sizes` nodes per layer; the trainer's process draws each
batch before it trains (`--num_samplers 0` of DGL's distributed example), from host memory. Assumption: the drawn
structure is local, so drawing needs no messages; only feature rows travel.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from gcnsim.methods.families.mini_batch import NeighbourBatches
from gcnsim.methods.method import HOST, IN_TURN, UVA, Loading, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class DistDgl(NeighbourBatches):
    """Batches of own nodes, rows of others fetched."""

    name: ClassVar[str] = "distdgl"
    about: ClassVar[str] = "mini-batches of a server's own nodes, rows of other servers fetched before each"
    trains: ClassVar[Literal["shuffled", "own", "dealt"]] = "own"
    usual: ClassVar[Placement] = IN_TURN
    scripts: ClassVar[Placement] = IN_TURN
    rows_in: ClassVar[tuple[str, ...]] = (HOST, UVA)

    @property
    def loading(self) -> Loading:
        """The loading steps in sequence: sample, request rows from their owners, load, train."""
        return Loading(draws_ahead=False, asks=True)
