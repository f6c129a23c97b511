"""Cost laws: facts to seconds and bytes."""

from gcnsim.cost.attention import attention_cost
from gcnsim.cost.batches import batch_layer_cost, batch_loss_seconds, batch_memory
from gcnsim.cost.block_memory import Block, block_memory, swapped_host_bytes, swapped_memory
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
from gcnsim.cost.device import VALUE, columns_seconds, elementwise_seconds, gemm_seconds, rows_seconds, spmm_seconds
from gcnsim.cost.layers import (
    LayerCost,
    average_seconds,
    gradient_bytes,
    layer_cost,
    loss_seconds,
    parameters,
    step_seconds,
)
from gcnsim.cost.memory import (
    RESERVED,
    Memory,
    MemoryCounts,
    partition_memory,
)
from gcnsim.cost.payload import pack_seconds, payload_bytes, payload_width, unpack_seconds
from gcnsim.cost.sampling import (
    boundary_core_seconds,
    boundary_seconds,
    draw_core_seconds,
    draw_nodes_core_seconds,
    edges_seconds,
    graph_bytes,
    id_bytes,
    row_bytes,
    sampler_seconds,
)

__all__ = [
    "RESERVED",
    "VALUE",
    "Block",
    "CoreCost",
    "Kept",
    "LayerCost",
    "Memory",
    "MemoryCounts",
    "adding_seconds",
    "attention_cost",
    "average_seconds",
    "batch_layer_cost",
    "batch_loss_seconds",
    "batch_memory",
    "block_memory",
    "boundary_core_seconds",
    "boundary_seconds",
    "build_core_seconds",
    "columns_seconds",
    "core_cost",
    "draw_core_seconds",
    "draw_nodes_core_seconds",
    "edges_seconds",
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
    "pack_seconds",
    "parameters",
    "partition_memory",
    "payload_bytes",
    "payload_width",
    "row_bytes",
    "rows_seconds",
    "sampler_seconds",
    "socket_core_seconds",
    "spmm_seconds",
    "step_seconds",
    "swapped_host_bytes",
    "swapped_memory",
    "unpack_seconds",
]
