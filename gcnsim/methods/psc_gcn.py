"""PSC-GCN (`psc-gcn`): rows tau iterations old, edges sampled at rate epsilon, layer-0 rows cached by inclusion.

Source: PSC-GCN, Algorithms 1 and 2. Readings where the paper is open: tau 0 is the vanilla iteration with a freshly
sampled graph; wanted ids are pulled once per iteration; epsilon 1 draws nothing, so it sends no ids and needs no
sampler; only layer-0 rows can be cached, deeper rows change every iteration.
"""

from __future__ import annotations

from gcnsim.methods.facts import Facts
from gcnsim.methods.partition_parallel import partition_parallel
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule for facts.tau, sampling when facts.sampled."""
    return partition_parallel("psc-gcn", facts)
