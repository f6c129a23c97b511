"""GraphSAGE's sampling over several servers (`graphsage`): batches of any nodes, their rows fetched before each.

Source: GraphSAGE, Algorithm 2. As `distdgl`, but training nodes are shuffled over all workers, so that rows belong to
everybody alike, whatever the partition. Reading: PSC-GCN's tables compare with it and say neither rate nor batch; the
knobs are those of `distdgl`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.mini_batch import NeighbourBatches
from gcnsim.methods.method import HOST, IN_TURN, UVA, Loading, Placement


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphSage(NeighbourBatches):
    """Batches of any nodes, rows of others fetched."""

    name: ClassVar[str] = "graphsage"
    about: ClassVar[str] = "mini-batches of any nodes, rows of other servers fetched before each"
    usual: ClassVar[Placement] = IN_TURN
    scripts: ClassVar[Placement] = IN_TURN
    rows_in: ClassVar[tuple[str, ...]] = (HOST, UVA)

    @property
    def loading(self) -> Loading:
        """The loading steps in sequence: sample, request rows from their owners, load, train."""
        return Loading(draws_ahead=False, asks=True)
