"""PaGraph (`pagraph`): mini-batches loaded while the one before is trained, input rows of high degree on the GPU.

Source: PaGraph, sections on caching, partitioning, pipelining and resource isolation. The training nodes are dealt to
workers so that a part holds their neighbourhoods (`gcnsim.partition.training_nodes`); a worker draws within its part
alone. Its cache holds the part's rows of highest degree, filled once: as many as the GPU's memory leaves, less 1 GB
(`cache: auto`), or as asked. Loading and training are two stages joined by a queue of `queue` batches, so that an
iteration takes the longer of the two; drawing is a third, ahead of both. `preprocess` sums the input's neighbours once,
before training: then a batch loads only the rows that the first layer makes, for GraphSAGE its own beside the sums.

Readings: the peak before the cache is sized is computed, not measured; a batch is put together on the GPU from cached
and loaded rows; resource isolation means that loaders and samplers have cores of their own, as all have here; the
lookup's table (under 50 MB) is left out. Assumption: without a graph, a part is no better than a random one.
"""

from __future__ import annotations

from gcnsim.methods.facts import Facts
from gcnsim.methods.mini_batches import Loading, mini_batches
from gcnsim.schedule import Schedule


def build(facts: Facts) -> Schedule:
    """The schedule: load batch t + queue while batch t is trained."""
    return mini_batches("pagraph", facts, Loading(ahead=facts.queue))
