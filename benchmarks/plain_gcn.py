"""The baseline of the runtime's speed: the same GCN in a page of plain single-process torch, no partition, no record.

`python -m benchmarks.plain_gcn DATASET ITERATIONS` prints the median seconds of an iteration and the last loss as JSON.
Two sums over neighbours, and the quicker one counts: torch's own gradient of a CSR product, and its row-wise kernel.
"""

from __future__ import annotations

import json
import sys
import time
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from gcnsim.core.ids import AnyArray
from gcnsim.core.processes import cores
from runtime.data import load_dataset
from runtime.options import Options

LAYERS, HIDDEN, WIDTH = 3, 128, 128


def propagation(indptr: AnyArray, indices: AnyArray) -> Tensor:
    """D~^(-1/2) (A + I) D~^(-1/2) as a CSR tensor."""
    from scipy.sparse import csr_array, diags_array, eye_array

    count = indptr.size - 1
    adjacency = csr_array((np.ones(indices.size, np.float32), indices, indptr), shape=(count, count))
    scale = diags_array(1.0 / np.sqrt(np.diff(indptr) + 1.0))
    matrix = (scale @ (adjacency + eye_array(count)) @ scale).tocsr()
    first, second = (torch.from_numpy(array.astype(np.int64)) for array in (matrix.indptr, matrix.indices))
    values = torch.from_numpy(matrix.data.astype(np.float32))
    return torch.sparse_csr_tensor(first, second, values, size=(count, count))


def seconds(
    matrix: Tensor, x: Tensor, labels: Tensor, train: Tensor, iterations: int, reduce: bool
) -> tuple[float, float]:
    """Median seconds of an iteration, and the last loss."""
    torch.manual_seed(0)
    widths = [WIDTH, *[HIDDEN] * (LAYERS - 1), int(labels.max()) + 1]
    maps = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
    optimizer = torch.optim.Adam(maps.parameters(), lr=0.01)
    took, loss = [], torch.zeros(())
    for _ in range(iterations):
        start = time.perf_counter()
        h = x
        for index, linear in enumerate(maps):
            z = torch.sparse.mm(matrix, h, reduce="sum") if reduce else matrix @ h
            h = linear(z)
            if index < LAYERS - 1:
                h = torch.relu(h)
        loss = nn.functional.cross_entropy(h[train], labels[train])
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        took.append(time.perf_counter() - start)
    return float(np.median(took[2:])), float(loss.detach())


def main(dataset: str, iterations: int) -> None:
    """Measure both ways and print the quicker."""
    torch.set_num_threads(cores())
    found = load_dataset(Options(dataset=dataset, feature_dim=WIDTH, workers=1))
    x = torch.from_numpy(found.features.rows(np.arange(found.graph.nodes)))
    labels, train = torch.from_numpy(found.labels.copy()).long(), torch.from_numpy(found.train.copy())
    matrix = propagation(found.graph.indptr, found.graph.indices)
    ways = {way: seconds(matrix, x, labels, train, iterations, reduce=way == "row-wise") for way in ("csr", "row-wise")}
    best = min(ways, key=lambda way: ways[way][0])
    sys.stdout.write(json.dumps({"way": best, "iteration_s": ways[best][0], "loss": ways[best][1], "all": ways}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
