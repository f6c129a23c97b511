"""GraphSAINT (`graphsaint`): the subgraph of nodes on random walks is the mini-batch of all layers.

Source: GraphSAINT, its random-walk sampler and normalisation. A batch has about the share `subgraph` of all nodes, on
walks of two steps from random roots, and all entries between them. Before training, subgraphs are sampled until they
contain each node `coverage` times on average. They count how often a node v, C_v, and an entry from u to v, C_uv,
occur. The entry then weighs C_v / C_uv times its weight in the whole graph, and a training node counts as S / C_v in
the loss, with S the number of these subgraphs. So sums and loss are unbiased, as far as the counts are exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.workload.knobs import WALKED, Knob, knob
from runtime.methods.method import MiniBatch
from runtime.options import Options

if TYPE_CHECKING:
    from runtime.methods.batches.worker import BatchWorker
    from runtime.methods.worker import Context

COVERAGE: Final = Knob(
    "coverage",
    "",
    "int",
    1,
    1_000_000,
    False,
    50,
    (),
    "mean number of times a node is drawn before training, to estimate how often batches contain each node and edge",
)


@dataclass(frozen=True)
class GraphSaint(MiniBatch):
    """GraphSAINT; see the module."""

    name: ClassVar[str] = "graphsaint"
    everywhere: ClassVar[bool] = True
    subgraph: float = knob(WALKED)
    coverage: int = knob(COVERAGE)

    def worker(self, context: Context) -> BatchWorker:
        """The worker with subgraphs of walks."""
        from runtime.methods.batches.worker import walk_worker

        return walk_worker(context, self, self.subgraph, self.coverage)
