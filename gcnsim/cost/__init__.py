"""Cost laws: facts to seconds and bytes."""

from gcnsim.cost.core import (
    CoreCost,
    Kept,
    adding_seconds,
    build_core_seconds,
    core_cost,
    logits_seconds,
    map_bytes,
    norms_seconds,
    socket_core_seconds,
)
from gcnsim.cost.device import VALUE, elementwise_seconds, gemm_seconds, rows_seconds, spmm_seconds
from gcnsim.cost.layers import LayerCost, gradient_bytes, layer_cost, loss_seconds, parameters, step_seconds
from gcnsim.cost.sampling import (
    boundary_core_seconds,
    boundary_seconds,
    draw_core_seconds,
    draw_nodes_core_seconds,
    graph_bytes,
    id_bytes,
    row_bytes,
)

__all__ = [
    "VALUE",
    "CoreCost",
    "Kept",
    "LayerCost",
    "adding_seconds",
    "boundary_core_seconds",
    "boundary_seconds",
    "build_core_seconds",
    "core_cost",
    "draw_core_seconds",
    "draw_nodes_core_seconds",
    "elementwise_seconds",
    "gemm_seconds",
    "gradient_bytes",
    "graph_bytes",
    "id_bytes",
    "layer_cost",
    "logits_seconds",
    "loss_seconds",
    "map_bytes",
    "norms_seconds",
    "parameters",
    "row_bytes",
    "rows_seconds",
    "socket_core_seconds",
    "spmm_seconds",
    "step_seconds",
]
