"""Sampling rules: which edges a drawn graph keeps, with what probability, and what that asks of other workers."""

from gcnsim.sampling.drawing import draw, draw_edges, inclusion
from gcnsim.sampling.samplers import (
    Full,
    Probabilities,
    Sampler,
    Uniform,
    VarianceReduction,
    checked_rate,
    edge_probabilities,
    sampler,
)
from gcnsim.sampling.weights import edge_weights

__all__ = [
    "Full",
    "Probabilities",
    "Sampler",
    "Uniform",
    "VarianceReduction",
    "checked_rate",
    "draw",
    "draw_edges",
    "edge_probabilities",
    "edge_weights",
    "inclusion",
    "sampler",
]
