"""Dense counterparts of what a part's graphs hold."""

from __future__ import annotations

import numpy as np
import torch

from gcnsim.core.ids import BoolArray, FloatArray
from gcnsim.graph import Graph
from gcnsim.graph.parts import Part
from runtime.aggregate import Matrix, PlainMatrix
from runtime.exchange import GraphBuilder, SampledGraph

WEIGHTS = ("symmetric", "mean", "mean-with-self")


def adjacency(graph: Graph) -> FloatArray:
    """A, [N, N]."""
    found = np.zeros((graph.nodes, graph.nodes))
    found[np.repeat(np.arange(graph.nodes), np.diff(graph.indptr)), graph.indices] = 1.0
    return found


def propagation(graph: Graph, weights: str) -> FloatArray:
    """P of the whole graph, [N, N]."""
    plain = adjacency(graph)
    degree = plain.sum(1, keepdims=True)
    looped = plain + np.eye(graph.nodes)
    if weights == "symmetric":
        found: FloatArray = looped / np.sqrt((degree + 1.0) * (degree.T + 1.0))
    elif weights == "mean":
        found = plain / np.maximum(degree, 1.0)
    else:
        found = looped / (degree + 1.0)
    return found


def local(whole: FloatArray, part: Part) -> FloatArray:
    """The rows of a part's inner nodes, columns by local id, [I, I + B]."""
    found: FloatArray = whole[part.inner][:, np.concatenate([part.inner, part.boundary])]
    return found


def spread(part: Part, values: FloatArray | BoolArray) -> FloatArray:
    """Values of the part's entries at their places, [I, I + B]; elsewhere zero."""
    found = np.zeros((part.inner_nodes, part.inner_nodes + part.boundary_nodes))
    found[np.repeat(np.arange(part.inner_nodes), np.diff(part.indptr)), part.columns] = values
    return found


def loops(part: Part) -> BoolArray:
    """Where inner nodes meet themselves, [I, I + B]."""
    return np.eye(part.inner_nodes, part.inner_nodes + part.boundary_nodes, dtype=np.bool_)


def builder(part: Part, weights: str, kind: type[Matrix] = PlainMatrix) -> GraphBuilder:
    """A builder of float64 graphs."""
    return GraphBuilder(part, weights, kind, torch.float64, torch.device("cpu"))


def dense(matrix: Matrix) -> FloatArray:
    """What a matrix does to unit vectors: its entries, [n, m]."""
    rows = matrix.rows
    out = torch.empty(rows.indptr.size - 1, rows.width, dtype=matrix.dtype)
    matrix.multiply(torch.eye(rows.width, dtype=matrix.dtype), out)
    found: FloatArray = out.double().numpy()
    return found


def of_drawn(part: Part, drawn: SampledGraph) -> FloatArray:
    """The matrix that a drawn graph multiplies by, columns by local id, [I, I + B]."""
    found = np.zeros((part.inner_nodes, part.inner_nodes + part.boundary_nodes))
    found[:, : part.inner_nodes] = dense(drawn.inner)
    if drawn.boundary is not None:
        found[:, part.inner_nodes + drawn.needed] = dense(drawn.boundary)
    return found
