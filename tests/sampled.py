"""Probabilities, weights and degrees of real graphs, from their definitions: what sampling is tested against."""

from __future__ import annotations

import numpy as np

from gcnsim.core.ids import BoolArray, Float32Array, FloatArray, IntArray
from gcnsim.graph.parts import Part
from gcnsim.workload.reach import DegreeLaw
from gcnsim.workload.samplers import sampler


def edge_probabilities(name: str, part: Part, epsilon: float, norms: Float32Array | None = None) -> Float32Array:
    """p of the rule `name` at one rate, float32[nnz]."""
    return sampler(name)(part, norms).probabilities(epsilon).p


def edge_weights(part: Part) -> FloatArray:
    """|P_ij| of every stored entry of `part`: 1 / sqrt((deg_i + 1)(deg_j + 1)), float64[nnz]."""
    degrees = np.concatenate([part.inner_degree, part.boundary_degree])[part.columns]
    rows = np.repeat(part.inner_degree, np.diff(part.indptr))
    weights: FloatArray = 1.0 / np.sqrt((rows + 1.0) * (degrees + 1.0))
    return weights


def draw_edges(part: Part, p: Float32Array, generator: np.random.Generator) -> BoolArray:
    """One sampled graph as the mask of its kept entries: a uniform is below its p, bool[nnz]."""
    kept: BoolArray = generator.random(part.entries, dtype=np.float32) < p
    return kept


def law_of(degrees: IntArray) -> DegreeLaw:
    """The degrees of a real graph."""
    degree, count = np.unique(degrees, return_counts=True)
    return DegreeLaw(float(degrees.size), degree.astype(np.float64), count / degrees.size)
