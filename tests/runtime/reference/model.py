"""The layers of GCN, GraphSAGE and GAT over lists of edges, and their parameters by name; float64, plain torch.

Local node ids of a worker: its I inner nodes, then its B boundary nodes. One process is the case of no boundary.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from gcnsim.core.ids import AnyArray, BoolArray, FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph.parts import Part

Params: TypeAlias = dict[str, Tensor]

SLOPE = 0.2
"""Of GAT's leaky ReLU."""


@dataclass(frozen=True, slots=True)
class Model:
    """kind: `gcn`, `graphsage` or `gat`. widths: d_0 (features), hidden ones, d_L (classes).

    heads: GAT alone; concatenated in hidden layers, averaged in the last. norm: LayerNorm before each ReLU.
    with_self: GraphSAGE alone; a node counts among its own neighbours. joined: GraphSAGE alone; the first layer is one
    map of a row beside its mean, with one bias. mean: GCN alone; a mean over a node and its neighbours.
    """

    kind: str
    widths: tuple[int, ...]
    heads: int = 1
    norm: bool = False
    with_self: bool = False
    joined: bool = False
    mean: bool = False

    @property
    def layers(self) -> int:
        """L."""
        return len(self.widths) - 1

    def head_width(self, index: int) -> int:
        """Width of one GAT head of layer `index`."""
        width = self.widths[index + 1]
        if index == self.layers - 1:
            return width
        if width % self.heads:
            raise ValueError(f"{self.heads} heads do not divide the width {width}")
        return width // self.heads


@dataclass(frozen=True, slots=True)
class Edges:
    """Entries (row, column) = (inner node i, local node j) with weights w_ij, and the weights of i itself.

    rows, columns: int64[E]. weights: float64[E]. own: float64[I].
    """

    rows: Tensor
    columns: Tensor
    weights: Tensor
    own: Tensor


def shapes(model: Model) -> dict[str, tuple[int, ...]]:
    """The parameters' names and shapes, layer by layer."""
    found: dict[str, tuple[int, ...]] = {}
    for index, (wide, out) in enumerate(zip(model.widths[:-1], model.widths[1:], strict=True)):
        layer = f"layers.{index}"
        if model.kind == "gat":
            head = model.head_width(index)
            found[f"{layer}.linear.weight"] = (model.heads * head, wide)
            found[f"{layer}.attn_target"] = found[f"{layer}.attn_source"] = (model.heads, head)
            found[f"{layer}.bias"] = (out,)
        else:
            for linear in ("linear",) if model.kind == "gcn" else ("linear_self", "linear_neigh"):
                found[f"{layer}.{linear}.weight"] = (out, wide)
                if not (model.joined and index == 0 and linear == "linear_neigh"):
                    found[f"{layer}.{linear}.bias"] = (out,)
        if model.norm and index < model.layers - 1:
            found |= {f"norms.{index}.weight": (out,), f"norms.{index}.bias": (out,)}
    return found


def initial(model: Model, seed: int) -> Params:
    """Random parameters; biases too, so that a forgotten one shows."""
    params = {}
    for name, shape in shapes(model).items():
        values = stream(seed, "reference", name).uniform(-1.0, 1.0, shape) / math.sqrt(shape[-1])
        params[name] = torch.tensor(values + name.startswith("norms"), dtype=torch.float64)
    return params


def edges_of(part: Part, model: Model) -> Edges:
    """All entries of a part with their weights in the aggregation; GAT, which weighs them itself, gets ones."""
    counts = np.diff(part.indptr)
    rows = np.repeat(np.arange(part.inner_nodes), counts)
    columns = part.columns.astype(np.int64)
    degree = np.concatenate([part.inner_degree, part.boundary_degree]).astype(np.float64)
    inner = degree[: part.inner_nodes]
    weights, own = np.ones(rows.size), np.zeros(part.inner_nodes)
    if model.kind == "gcn" and not model.mean:
        weights, own = 1.0 / np.sqrt((degree[rows] + 1.0) * (degree[columns] + 1.0)), 1.0 / (inner + 1.0)
    elif model.mean or (model.kind == "graphsage" and model.with_self):
        weights, own = 1.0 / (degree[rows] + 1.0), 1.0 / (inner + 1.0)
    elif model.kind == "graphsage":
        weights = 1.0 / degree[rows]
    return Edges(indices(rows), indices(columns), torch.tensor(weights), torch.tensor(own))


def kept(edges: Edges, mask: BoolArray, factor: FloatArray) -> Edges:
    """The entries in `mask`, bool[E], their weights multiplied by `factor`, float64[E]; own weights as they are."""
    chosen = torch.tensor(mask)
    weights = edges.weights * torch.tensor(factor)
    return Edges(edges.rows[chosen], edges.columns[chosen], weights[chosen], edges.own)


def indices(array: AnyArray) -> Tensor:
    """A copy of `array` to index tensors with, int64."""
    return torch.tensor(array, dtype=torch.int64)


def of_layer(params: Params, index: int) -> Params:
    """The parameters that layer `index` and the norm after it use."""
    return {name: value for name, value in params.items() if name.split(".")[1] == str(index)}


def layer(model: Model, params: Params, index: int, edges: Edges, inner: Tensor, boundary: Tensor) -> Tensor:
    """H^(index + 1) of the inner nodes, [I, d_(index + 1)], from H^(index) of inner and boundary ones."""
    rows = torch.cat([inner, boundary])
    if model.kind == "gat":
        out = _attention(model, params, index, edges, rows)
    elif model.kind == "gcn":
        out = _linear(params, f"layers.{index}.linear", _aggregate(edges, rows))
    else:
        out = _linear(params, f"layers.{index}.linear_self", inner)
        out = out + _linear(params, f"layers.{index}.linear_neigh", _aggregate(edges, rows))
    if index == model.layers - 1:
        return out
    if model.norm:
        weight, bias = params[f"norms.{index}.weight"], params[f"norms.{index}.bias"]
        out = functional.layer_norm(out, (out.shape[1],), weight, bias, eps=1e-5)
    return torch.relu(out)


def _linear(params: Params, name: str, rows: Tensor) -> Tensor:
    mapped = rows @ params[f"{name}.weight"].T
    return mapped + params[f"{name}.bias"] if f"{name}.bias" in params else mapped


def _aggregate(edges: Edges, rows: Tensor) -> Tensor:
    """For each i: w_ii h_i + sum over its entries of w_ij h_j."""
    own = edges.own[:, None] * rows[: edges.own.shape[0]]
    return own.index_add(0, edges.rows, edges.weights[:, None] * rows[edges.columns])


def _attention(model: Model, params: Params, index: int, edges: Edges, rows: Tensor) -> Tensor:
    """GAT over the entries present and the node itself."""
    name, inner = f"layers.{index}", edges.own.shape[0]
    values = (rows @ params[f"{name}.linear.weight"].T).view(-1, model.heads, model.head_width(index))
    target = (values * params[f"{name}.attn_target"]).sum(2)
    source = (values * params[f"{name}.attn_source"]).sum(2)
    i = torch.cat([edges.rows, torch.arange(inner)])
    j = torch.cat([edges.columns, torch.arange(inner)])
    score = functional.leaky_relu(target[i] + source[j], SLOPE)
    # One shift for all rows changes no quotient; it only keeps exp in range.
    power = torch.exp(score - score.detach().max())
    share = power / torch.zeros(inner, model.heads, dtype=rows.dtype).index_add(0, i, power)[i]
    empty = torch.zeros(inner, *values.shape[1:], dtype=rows.dtype)
    heads = empty.index_add(0, i, share[:, :, None] * values[j])
    out = heads.mean(1) if index == model.layers - 1 else heads.flatten(1)
    return out + params[f"{name}.bias"]
