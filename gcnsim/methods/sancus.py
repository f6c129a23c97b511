"""SANCUS (`sancus`): block rows as in CAGNET 1D, but a block that has hardly changed is not broadcast.

Source: SANCUS, Algorithm 1, with its three stale tests (`stale_test`): by age (SCS-E), by age as readers see it
(SCS-A), by how far a block has moved (SCS-H). Who stops sending still receives. Readings (`gcnsim.staleness.blocks`,
`gcnsim.methods.block_rows`): one flag per layer and worker; a worker always has its own block fresh; the backward pass
sends every gradient (Algorithm 1), unless `skip_backward`; kept blocks are multiplied before anything is waited for.
The mean iteration is that of a training, in whose first iterations, a share `warmup`, all blocks are sent: a cycle in
which each block is sent as often as that asks for (`sent_blocks`). Without a skipped block it is `cagnet-1d`.

Assumptions: how far a block moves in an iteration (`drift`), in the same unit as `threshold`; testing it reads the
block and the copy last sent once; other tests cost nothing; blocks are received into the cache: storing them is free.
"""

from __future__ import annotations

from gcnsim.methods.block_rows import block_rows
from gcnsim.methods.facts import Facts
from gcnsim.schedule import Schedule
from gcnsim.staleness import sent_blocks


def build(facts: Facts) -> Schedule:
    """The schedule of one cycle of flags."""
    sent = sent_blocks(facts.block_rule, len(facts.shapes), facts.cluster.gpus, facts.seed)
    return block_rows("sancus", facts, sent=sent)
