"""CAGNET: every block of rows is broadcast to every worker, before each layer and each way.

1D (`cagnet-1d`). Source: CAGNET, 1D algorithm, as SANCUS (section 5) and PipeGCN (Table 6, c = 1) compare with it.
Assumptions and readings are those of `gcnsim.methods.families.block_broadcast`; block rows, not columns of the
features, are broadcast. Rows sent do not depend on the boundary: (workers - 1) / workers of all rows reach each worker,
per layer and direction.

1.5D (`cagnet-1.5d`): `replication` workers hold the same block and share its broadcasts. Source: CAGNET, 1.5D
algorithm; PipeGCN, Table 6 (c = 2). With P workers and c replicas there are P / c blocks; each replica takes a part of
the stages, the last one what is left where c does not divide the blocks (released code: of two workers with c = 2, one
computes everything), then all replicas of a block add up their sums and have the dense products of the whole block
each. Assumption: of those that hold the same block, servers hold neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.block_broadcast import BlockBroadcast
from gcnsim.workload.knobs import REPLICATION, knob


@dataclass(frozen=True, slots=True, kw_only=True)
class Cagnet1d(BlockBroadcast):
    """CAGNET's 1D algorithm."""

    name: ClassVar[str] = "cagnet-1d"
    about: ClassVar[str] = "whole blocks of rows broadcast, one after the other"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cagnet15d(BlockBroadcast):
    """CAGNET's 1.5D algorithm."""

    name: ClassVar[str] = "cagnet-1.5d"
    about: ClassVar[str] = "like cagnet-1d, with each block held by several workers"

    replication: int = knob(REPLICATION)

    @property
    def worker_multiple(self) -> int:
        """The number of workers is a multiple of the replicas of a block."""
        return self.replication

    @property
    def replicas(self) -> int:
        """The number of replicas, `replication`."""
        return self.replication
