"""Sums over neighbours: our compiled kernels against DGL's copy_lhs, drawn graphs against whole ones, and an epoch.

CPU, one thread a process, real graphs (needs GCNSIM_DATA, and DGL beside ours). Products are taken in turn and timed in
processor time of their thread, so other work shows as little as it can. `epochs` on the command line: training alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np
import torch
from torch import Tensor

from benchmarks.measuring import Figure, report
from gcnsim.core.streams import stream
from gcnsim.graph import load_graph
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import split
from gcnsim.workload.draws import Draws
from runtime.aggregate import Matrix, matrix_kind
from runtime.exchange import GraphBuilder

ROUNDS = {"amazon_cs": 11, "coauthor_phy": 11, "acl_papers": 3}
WIDTHS = (32, 128, 512)
EPSILON = 0.1
METHODS = (("full-graph",), ("pipegcn",), ("psc-gcn", "--epsilon", "0.1"))
EPOCHS, RUNS = 10, 2

CPU = torch.device("cpu")
Call = Callable[[], object]


def in_turn(calls: Mapping[str, Call], rounds: int) -> dict[str, float]:
    """Median processor seconds of each call, all of them in turn, once before that to warm up."""
    found: dict[str, list[float]] = {name: [] for name in calls}
    for k in range(rounds + 1):
        for name, call in calls.items():
            start = time.thread_time()
            call()
            if k:
                found[name].append(time.thread_time() - start)
    return {name: median(values) for name, values in found.items()}


def both_ways(matrix: Matrix, x: Tensor) -> Call:
    """The product and its gradient, into buffers that are kept."""
    out, back = x.new_zeros(matrix.rows.indptr.size - 1, x.shape[1]), torch.zeros_like(x)

    def call() -> None:
        matrix.multiply(x, out)
        matrix.multiply_transposed(out, back)

    return call


def copied(matrix: Matrix, x: Tensor) -> Call:
    """DGL's own: copy_lhs and sum, no weight at all, over the graph and its reverse."""
    import dgl

    def of(indptr: object, columns: object, sources: int, targets: int) -> dgl.DGLGraph:
        index = [torch.from_numpy(np.asarray(item).astype(np.int32)) for item in (indptr, columns)]
        number = torch.arange(index[1].numel(), dtype=torch.int32)
        nodes = {"source": sources, "target": targets}
        return dgl.heterograph({("source", "edge", "target"): ("csc", (*index, number))}, num_nodes_dict=nodes)

    rows = matrix.rows
    count = rows.indptr.size - 1
    forward = of(rows.indptr, rows.columns, rows.width, count)
    back = of(*rows.transposed()[:2], count, rows.width)
    out = dgl.ops.gspmm(forward, "copy_lhs", "sum", x, None)

    def call() -> None:
        dgl.ops.gspmm(forward, "copy_lhs", "sum", x, None)
        dgl.ops.gspmm(back, "copy_lhs", "sum", out, None)

    return call


def sums(dataset: str) -> list[Figure]:
    """Whole and drawn sums of GraphSAGE's mean on one part, at each width."""
    graph = load_graph(Path(os.environ["GCNSIM_DATA"]) / f"{dataset}.npz")
    (part,) = split(graph, partition_graph(graph, 1, "block"))
    ours, torchs = (GraphBuilder(part, "mean", matrix_kind(name), torch.float32, CPU) for name in ("numba", "plain"))
    p = np.full(part.entries, EPSILON, np.float32)
    draws, generator = Draws(part, p), stream(0, "kernels")
    kept = draws.edges(generator).copy()
    weights = ours.weights(np.divide(1.0, p, dtype=np.float64))
    figures = []
    for width in WIDTHS:
        x = torch.randn(part.inner_nodes, width, generator=torch.Generator().manual_seed(0))
        whole = ours.whole().inner
        calls: dict[str, Call] = {
            "DGL": copied(whole, x),
            "ours": both_ways(whole, x),
            "torch": both_ways(torchs.whole().inner, x),
            "drawn": both_ways(ours.thinned(0, kept, weights).inner, x),
        }
        took = in_turn(calls, ROUNDS[dataset])
        name = f"{dataset}, width {width}"
        figures += [
            Figure(f"{name}: DGL", 1e3 * took["DGL"], "ms"),
            Figure(f"{name}: torch / DGL", took["torch"] / took["DGL"], ""),
            Figure(f"{name}: ours / DGL", took["ours"] / took["DGL"], "", "<= 1.1"),
            Figure(f"{name}: drawn / whole", took["drawn"] / took["ours"], "", "<= 0.35"),
        ]
    samples: dict[str, Call] = {
        "edges drawn": lambda: draws.edges(generator),
        "drawn graph built": lambda: ours.thinned(0, kept, weights),
    }
    took = in_turn(samples, ROUNDS[dataset])
    return [*figures, *(Figure(f"{dataset}: {name}", 1e3 * seconds, "ms") for name, seconds in took.items())]


def epoch(method: Sequence[str], aggregator: str) -> float:
    """Seconds of an iteration of GraphSAGE, 4 layers of 256, on amazon_cs in 2 parts on loopback, the median."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-W", "ignore", "-m", "runtime.train", "--dataset", "amazon_cs", "--threads", "1"]
        command += ["--model", "graphsage", "--layers", "4", "--hidden", "256", "--iterations", str(EPOCHS)]
        command += ["--eval-every", "0", "--json", "--quiet", "--out", folder, "--aggregator", aggregator, "--method"]
        done = subprocess.run([*command, *method], capture_output=True, text=True, check=True)
    return float(json.loads(done.stdout)["iteration_s"])


def epochs() -> list[Figure]:
    """Training with plain torch's sums and with ours, in turn."""
    figures = []
    for method in METHODS:
        pairs = [(epoch(method, "plain"), epoch(method, "numba")) for _ in range(RUNS)]
        plain, ours = (median(column) for column in zip(*pairs, strict=True))
        figures += [
            Figure(f"epoch, {method[0]}: plain", 1e3 * plain, "ms"),
            Figure(f"epoch, {method[0]}: numba / plain", median(b / a for a, b in pairs), "", "<= 0.7"),
            Figure(f"epoch, {method[0]}: numba", 1e3 * ours, "ms"),
        ]
    return figures


def main(words: Sequence[str]) -> int:
    """Measure and report."""
    torch.set_num_threads(1)
    alone = list(words) == ["epochs"]
    figures = [] if alone else [figure for dataset in ROUNDS for figure in sums(dataset)]
    name = "bench_kernels_epochs" if alone else "bench_kernels"
    return report(name, "how fast are sums over neighbours?", [*figures, *(epochs() if alone else [])])


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
