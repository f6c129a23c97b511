"""Drawing boundary nodes instead of edges (BNS-GCN, Algorithm 1): a random share of those that a peer may need.

Of n nodes floor(p n) are drawn, and one more with the probability that is left, so that each node is in with
probability p whatever n is. The training runtime draws so too: the same stream gives the same nodes in both.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from gcnsim.errors import ScenarioError
from gcnsim.ids import IntArray

NODES: Final = "bns"
"""What a trace calls this rule; its rate stands where other rules have epsilon."""


def draw_nodes(nodes: int, rate: float, generator: np.random.Generator) -> IntArray:
    """The places drawn among `nodes`, int64[k], ascending."""
    mean = rate * nodes
    count = math.floor(mean)
    count += bool(generator.random() < mean - count)
    return np.sort(generator.choice(nodes, size=count, replace=False)) if nodes else np.zeros(0, np.int64)


def checked_share(rate: float) -> float:
    """`rate` if it is in [0, 1]; raises ScenarioError otherwise."""
    if not 0.0 <= rate <= 1.0:
        raise ScenarioError(f"rate: {rate:g} is outside [0, 1]")
    return rate
