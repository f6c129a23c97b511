"""GraphSAGE's sampling over several servers (`graphsage`): batches of any nodes, their rows fetched before each.

Source: GraphSAGE, Algorithm 2. As `distdgl`, but training nodes are shuffled over all workers, so that rows belong to
everybody alike, whatever the partition. Reading: PSC-GCN's tables compare with it and say neither rate nor batch; the
knobs are those of `distdgl`.
"""

from __future__ import annotations

from gcnsim.methods.facts import Facts
from gcnsim.methods.mini_batches import Loading, mini_batches
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: draw, ask, load, train."""
    return mini_batches("graphsage", facts, Loading(draws_ahead=False, asks=True))
