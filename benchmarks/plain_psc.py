"""PSC-GCN in a page of plain single-process torch: no partition is split off, no row is sent, no thread is started.

All workers at once: Z = A_in H^(t) + A_x H^(t - tau), where the drawn graph's entries within partitions (and the
self-loops) are A_in and those that cross are A_x; the gradient of A_x's rows reaches the layer below tau iterations
later. It says what accuracy the method itself costs, apart from any fault of the runtime. Derived by hand, no autograd.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from gcnsim.core.ids import AnyArray, FloatArray
from gcnsim.core.streams import stream
from gcnsim.graph import Graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split
from gcnsim.trace import local_norms
from gcnsim.workload.samplers import VarianceReduction
from runtime.data import Dataset


@dataclass(frozen=True)
class Setting:
    """What is trained: layers of one hidden width, Adam's rate, and the method's knobs."""

    epsilon: float
    tau: int
    refresh: int = 20
    workers: int = 3
    layers: int = 3
    hidden: int = 64
    lr: float = 0.01
    iterations: int = 400


class Drawing:
    """Draws A_in and A_x, each with its transpose."""

    def __init__(self, graph: Graph, setting: Setting, seed: int) -> None:
        self.graph, self.epsilon = graph, setting.epsilon
        owners = partition_graph(graph, setting.workers)
        self.parts = split(graph, owners)
        self.row = np.repeat(np.arange(graph.nodes), graph.degrees)
        scale = 1.0 / np.sqrt(graph.degrees + 1.0)
        self.weight = scale[self.row] * scale[graph.indices]
        self.cross = owners.owner[self.row] != owners.owner[graph.indices]
        self.own = 1.0 / (graph.degrees + 1.0)
        self.p: FloatArray = np.full(graph.entries, setting.epsilon)
        self.generator = stream(seed, "plain")

    def weigh(self, norms: AnyArray) -> None:
        """New probabilities from the norms of all nodes."""
        for part in self.parts:
            found = VarianceReduction(part, local_norms(part, norms)).probabilities(self.epsilon).p
            self.p[self._entries(part)] = found

    def draw(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """A_in, its transpose, A_x, its transpose."""
        kept = self.generator.random(self.row.size) < self.p
        inside, across = kept & ~self.cross, kept & self.cross
        diagonal = np.arange(self.graph.nodes)
        first = self._matrix(inside, diagonal, self.own)
        second = self._matrix(across, diagonal[:0], self.own[:0])
        return tensor(first), tensor(first.T.tocsr()), tensor(second), tensor(second.T.tocsr())

    def _matrix(self, mask: AnyArray, diagonal: AnyArray, own: AnyArray) -> csr_array:
        rows = np.concatenate([self.row[mask], diagonal])
        columns = np.concatenate([self.graph.indices[mask], diagonal])
        values = np.concatenate([self.weight[mask] / self.p[mask], own]).astype(np.float32)
        return csr_array((values, (rows, columns)), shape=(self.graph.nodes, self.graph.nodes))

    def _entries(self, part: Part) -> AnyArray:
        """The places of a part's entries among those of the graph."""
        starts = self.graph.indptr[part.inner]
        return np.repeat(starts - part.indptr[:-1], part.inner_degree) + np.arange(part.entries)


def tensor(matrix: csr_array) -> Tensor:
    """As a torch CSR tensor."""
    arrays = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32), matrix.data
    first, second, values = (torch.from_numpy(array) for array in arrays)
    return torch.sparse_csr_tensor(first, second, values, size=matrix.shape)


def accuracy(dataset: Dataset, x: Tensor, setting: Setting, seed: int, every: int = 10) -> float:
    """Test accuracy of the best validation model, looked at every `every` iterations, after `setting.iterations`."""
    drawing = Drawing(dataset.graph, setting, seed)
    labels, train = torch.from_numpy(dataset.labels.copy()).long(), torch.from_numpy(dataset.train.copy())
    widths = [x.shape[1], *[setting.hidden] * (setting.layers - 1), dataset.classes]
    weights = [_first(seed, layer, (b, a), a) for layer, (a, b) in enumerate(pairwise(widths))]
    biases = [_first(seed, layer, (b,), a) for layer, (a, b) in enumerate(pairwise(widths))]
    optimizer = torch.optim.Adam([*weights, *biases], lr=setting.lr)
    whole = _whole(dataset.graph)
    graphs = deque(drawing.draw() for _ in range(setting.tau))
    rows: deque[list[Tensor]] = deque()
    late: deque[list[Tensor]] = deque()
    best = (-1.0, 0.0)
    for t in range(setting.iterations):
        graphs.append(drawing.draw())
        inner, inner_t, across, across_t = graphs.popleft()
        h, inputs, sums = x, [], []
        past = rows.popleft() if t >= setting.tau and setting.tau else None
        for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
            old = h if not setting.tau else past[layer] if past is not None else torch.zeros_like(h)
            inputs.append(h)
            sums.append(inner @ h + across @ old)
            h = sums[-1] @ weight.T + bias
            if layer < setting.layers - 1:
                h = torch.relu(h)
        if setting.tau:
            rows.append(inputs)
        grad = torch.zeros_like(h)
        grad[train] = torch.softmax(h[train], 1)
        grad[torch.nonzero(train)[:, 0], labels[train]] -= 1.0
        grad /= int(train.sum())
        arriving = late.popleft() if t >= setting.tau and setting.tau else None
        leaving = [torch.zeros(0)] * setting.layers
        if t % setting.refresh == 0:
            squares = [(rows_l @ weight.T).square().sum(1) for rows_l, weight in zip(inputs, weights, strict=True)]
            norms = torch.stack(squares).sum(0).sqrt()
        for layer in reversed(range(setting.layers)):
            weights[layer].grad, biases[layer].grad = grad.T @ sums[layer], grad.sum(0)
            if not layer:
                break
            back = grad @ weights[layer]
            leaving[layer] = across_t @ back
            added = leaving[layer] if not setting.tau else arriving[layer] if arriving is not None else 0.0
            grad = (inner_t @ back + added) * (inputs[layer] > 0)
        if setting.tau:
            late.append(leaving)
        optimizer.step()
        if t % setting.refresh == 0:
            drawing.weigh(norms.numpy())
        if (t + 1) % every == 0:
            best = max(best, _scores(dataset, whole, x, weights, biases), key=lambda pair: pair[0])
    return best[1]


def _first(seed: int, layer: int, shape: tuple[int, ...], d_in: int) -> Tensor:
    drawn = stream(seed, "plain weights", layer, len(shape)).uniform(-1.0, 1.0, shape) / np.sqrt(d_in)
    return torch.from_numpy(drawn.astype(np.float32))


def _whole(graph: Graph) -> Tensor:
    scale = 1.0 / np.sqrt(graph.degrees + 1.0)
    row = np.repeat(np.arange(graph.nodes), graph.degrees)
    diagonal = np.arange(graph.nodes)
    rows, columns = np.concatenate([row, diagonal]), np.concatenate([graph.indices, diagonal])
    values = (scale[rows] * scale[columns]).astype(np.float32)
    return tensor(csr_array((values, (rows, columns)), shape=(graph.nodes, graph.nodes)))


def _scores(
    dataset: Dataset, whole: Tensor, x: Tensor, weights: list[Tensor], biases: list[Tensor]
) -> tuple[float, float]:
    """Validation and test accuracy on the full graph."""
    h = x
    for layer, (weight, bias) in enumerate(zip(weights, biases, strict=True)):
        h = (whole @ h) @ weight.T + bias
        h = torch.relu(h) if layer < len(weights) - 1 else h
    right = h.argmax(1).numpy() == dataset.labels
    return float(right[dataset.val].mean()), float(right[dataset.test].mean())
