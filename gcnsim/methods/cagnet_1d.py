"""CAGNET, 1D (`cagnet-1d`): every block of rows is broadcast to every worker, before each layer and each way.

Source: CAGNET, 1D algorithm, as SANCUS (section 5) and PipeGCN (Table 6, c = 1) compare with it. Assumptions and
readings are those of `gcnsim.methods.families.block_broadcast`; block rows, not columns of the features, are broadcast.
Rows sent do not depend on the boundary: (workers - 1) / workers of all rows reach each worker, per layer and direction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from gcnsim.methods.families.block_broadcast import BlockBroadcast


@dataclass(frozen=True, slots=True, kw_only=True)
class Cagnet1d(BlockBroadcast):
    """CAGNET's 1D algorithm."""

    name: ClassVar[str] = "cagnet-1d"
    about: ClassVar[str] = "whole blocks of rows broadcast, one after the other"
