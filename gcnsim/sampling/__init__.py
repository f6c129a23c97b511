"""Sampling rules: which edges a drawn graph keeps, with what probability, and what that asks of other workers."""

from gcnsim.sampling.draws import Draws, add_log_missed, draw, draw_edges, inclusion, inclusion_of
from gcnsim.sampling.neighbours import (
    Batch,
    drawn_neighbours,
    layer_batch,
    neighbour_batch,
    subgraph_batch,
    walked_nodes,
)
from gcnsim.sampling.nodes import NODES, checked_share, draw_nodes
from gcnsim.sampling.reach import (
    DEGREE_SPREAD,
    DegreeLaw,
    Expected,
    Groups,
    counted,
    expected_layers,
    expected_neighbours,
    law_of,
    lognormal_law,
)
from gcnsim.sampling.samplers import (
    Full,
    Probabilities,
    Sampler,
    Uniform,
    VarianceReduction,
    checked_rate,
    edge_probabilities,
    row_blocks,
    sampler,
)
from gcnsim.sampling.weights import edge_weights

__all__ = [
    "DEGREE_SPREAD",
    "NODES",
    "Batch",
    "DegreeLaw",
    "Draws",
    "Expected",
    "Full",
    "Groups",
    "Probabilities",
    "Sampler",
    "Uniform",
    "VarianceReduction",
    "add_log_missed",
    "checked_rate",
    "checked_share",
    "counted",
    "draw",
    "draw_edges",
    "draw_nodes",
    "drawn_neighbours",
    "edge_probabilities",
    "edge_weights",
    "expected_layers",
    "expected_neighbours",
    "inclusion",
    "inclusion_of",
    "law_of",
    "layer_batch",
    "lognormal_law",
    "neighbour_batch",
    "row_blocks",
    "sampler",
    "subgraph_batch",
    "walked_nodes",
]
