"""What a method draws of its graph in each iteration."""

from __future__ import annotations

from dataclasses import dataclass

from gcnsim.sampling import NODES

FULL = "full"
"""The rule that keeps every edge."""

WHOLE_NODES = "nodes"


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a graph is drawn.

    rule: `full`, `vr` or `uniform` (edges, PSC-GCN), or `nodes` (boundary nodes, BNS-GCN). rate: the expected share of
    each node's edges, or of the boundary nodes, that is drawn; 1 where nothing is. sample: what `nodes` draws (its
    edge-sampling baselines draw `boundary-edges` or `edges`). norms: a file of node norms that `vr` draws by.
    """

    rule: str = FULL
    rate: float = 1.0
    sample: str = WHOLE_NODES
    norms: str | None = None

    @property
    def whole(self) -> bool:
        """Whether nothing is drawn: every edge of every graph is kept."""
        return self.rule == FULL

    @property
    def drawn_by(self) -> tuple[str, float]:
        """The rule and the rate, as an access trace keeps them."""
        return self.rule, self.rate

    @property
    def by_edge(self) -> bool:
        """Whether a node's edges are drawn, each for itself, by PSC-GCN's rules."""
        return self.rule not in (FULL, NODES)

    @property
    def drops_edges(self) -> bool:
        """Whether edges are dropped at the rate that BNS-GCN draws nodes at."""
        return self.rule == NODES and self.sample != WHOLE_NODES
