"""What no generator draws: more edges than there are pairs, more nodes than ids, more memory than was allowed."""

from __future__ import annotations

from gcnsim.errors import GraphError
from gcnsim.graph.build import MOST_NODES
from gcnsim.units import format_bytes

EDGE_BYTES, NODE_BYTES, FIXED_BYTES = 48, 200, 250_000_000
"""Peak memory per undirected edge and per node, and of the interpreter with its libraries: measured, rounded up."""


def memory_needed(nodes: int, edges: int) -> int:
    """Peak resident bytes of drawing a graph: an estimate from above."""
    return EDGE_BYTES * edges + NODE_BYTES * nodes + FIXED_BYTES


def check_size(name: str, nodes: int, edges: int, max_memory: float | None) -> None:
    """Raises GraphError for sizes that no graph has, and for one that would take more than `max_memory` bytes."""
    if not 2 <= nodes <= MOST_NODES:
        raise GraphError(f"{name}: {nodes:,} nodes; 2 to {MOST_NODES:,} are allowed")
    pairs = nodes * (nodes - 1) // 2
    if not 1 <= edges <= pairs:
        raise GraphError(f"{name}: {edges:,} edges; {nodes:,} nodes allow 1 to {pairs:,}")
    needed = memory_needed(nodes, edges)
    if max_memory is not None and needed > max_memory:
        raise GraphError(
            f"{name}: {nodes:,} nodes and {edges:,} edges need about {format_bytes(needed)} of memory; "
            f"allowed: {format_bytes(max_memory)}"
        )
