"""CAGNET, 1.5D (`cagnet-1.5d`): as 1D, with `replication` workers that hold the same block and share its broadcasts.

Source: CAGNET, 1.5D algorithm; PipeGCN, Table 6 (c = 2). With P workers and c replicas there are P / c blocks; each
replica takes a part of the stages, the last one what is left where c does not divide the blocks (released code: of two
workers with c = 2, one computes everything), then all replicas of a block add up their sums and have the dense products
of the whole block each. Assumption: of those that hold the same block, servers hold neighbours.
"""

from __future__ import annotations

from gcnsim.methods.block_rows import block_rows
from gcnsim.methods.facts import Facts
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: facts.replicas workers a block. Raises ScenarioError where they do not divide the workers."""
    return block_rows("cagnet-1.5d", facts, replicas=facts.replicas)
