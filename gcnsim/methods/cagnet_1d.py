"""CAGNET, 1D (`cagnet-1d`): every block of rows is broadcast to every worker, before each layer and each way.

Source: CAGNET, 1D algorithm, as SANCUS (section 5) and PipeGCN (Table 6, c = 1) compare with it. Assumptions and
readings are those of `gcnsim.methods.block_rows`; block rows, not columns of the features, are broadcast. Rows sent do
not depend on the boundary: (workers - 1) / workers of all rows reach each worker, per layer and direction.
"""

from __future__ import annotations

from gcnsim.methods.block_rows import block_rows
from gcnsim.methods.facts import Facts
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: one block a worker, all of them sent."""
    return block_rows("cagnet-1d", facts)
