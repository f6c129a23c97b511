"""Sampling rules: which edges a drawn graph keeps, with what probability, and what that asks of other workers."""

from gcnsim.sampling.drawing import add_log_missed, draw, draw_edges, inclusion, inclusion_of
from gcnsim.sampling.nodes import NODES, checked_share, draw_nodes
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
    "NODES",
    "Full",
    "Probabilities",
    "Sampler",
    "Uniform",
    "VarianceReduction",
    "add_log_missed",
    "checked_rate",
    "checked_share",
    "draw",
    "draw_edges",
    "draw_nodes",
    "edge_probabilities",
    "edge_weights",
    "inclusion",
    "inclusion_of",
    "row_blocks",
    "sampler",
]
