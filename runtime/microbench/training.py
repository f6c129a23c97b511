"""Whole iterations of one worker, and the parts of them that depend on the weights alone."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from runtime.data import DatasetCache
from runtime.launch import Place
from runtime.microbench.bench import Bench, Call
from runtime.microbench.inputs import saved_graph
from runtime.options import Options
from runtime.train.reduce import LocalSums
from runtime.train.setup import WorkerState, prepare

ALONE = Place(0, 1, 0, 1, True)
CLASSES = 16
FEW = 100
"""Nodes of a graph whose training is next to nothing but calls."""


def measure(bench: Bench) -> None:
    """`iteration`, `optimizer_step` and `gradients`.

    params of iteration: nodes, entries, features, hidden, classes, layers; of few nodes also apart (bytes touched
    between two of them). Of the others: parameters, tensors.
    """
    tiny = [(64, 400, 16, 16, 2)]
    quick = [(64, 400, 16, 16, 2), (2_000, 30_000, 128, 128, 2), (8_000, 200_000, 128, 128, 2)]
    full = [*quick, (64, 400, 16, 16, 4), (2_000, 30_000, 128, 128, 4), (8_000, 200_000, 128, 64, 3)]
    for nodes, entries, features, hidden, layers in bench.budget.of(tiny, quick, full):
        params, call = iterations(bench, nodes, entries, features, hidden, layers)
        bench.time("iteration", params, call)
        if nodes < FEW and bench.device.type == "cpu":
            # Next to nothing but calls: what these take where an iteration has driven their code out of the caches.
            bench.time_cold("iteration", params, call)
    for hidden, layers in bench.budget.of([(16, 2)], [(16, 2), (128, 2), (512, 4)], [
        (16, 2), (64, 2), (128, 2), (128, 4), (256, 2), (512, 2), (512, 4), (1_024, 4),
    ]):  # fmt: skip
        _weights(bench, hidden, layers)


def _weights(bench: Bench, hidden: int, layers: int) -> None:
    worker, _ = _worker(bench, 64, 400, 128, hidden, layers)
    trainer = worker.trainer
    trainer.iteration(0, LocalSums())
    every = list(worker.network.parameters())
    params = {"parameters": sum(weight.numel() for weight in every), "tensors": len(every)}
    loss, correct = torch.zeros((), device=bench.device), torch.zeros((), device=bench.device)

    def gradients(i: int) -> None:
        trainer.gradients.begin(i, loss, correct, LocalSums())
        trainer.gradients.finish()

    bench.time("optimizer_step", params, lambda _: trainer.optimizer.step())
    bench.time("gradients", params, gradients)


def iterations(
    bench: Bench, nodes: int, entries: int, features: int, hidden: int, layers: int
) -> tuple[dict[str, float], Call]:
    """What is trained, and one iteration of it after another: full-graph training, recorded as by default."""
    worker, params = _worker(bench, nodes, entries, features, hidden, layers)

    def call(i: int) -> None:
        worker.trainer.iteration(i, LocalSums())
        worker.recorder.end_iteration()

    return params, call


def _worker(
    bench: Bench, nodes: int, entries: int, features: int, hidden: int, layers: int
) -> tuple[WorkerState, dict[str, float]]:
    with tempfile.TemporaryDirectory(prefix="gcnsim-microbench-") as folder:
        path, graph = saved_graph(Path(folder), nodes, entries)
        options = Options(
            graph=path,
            random_features=features,
            random_classes=CLASSES,
            hidden=hidden,
            layers=layers,
            workers=1,
            device=bench.request.device,
            threads=bench.request.threads,
            aggregator=bench.request.aggregator,
        )
        worker = prepare(options, ALONE, bench.device, DatasetCache())
    sizes = {"nodes": nodes, "entries": graph.entries, "features": features, "hidden": hidden}
    return worker, {**sizes, "classes": CLASSES, "layers": layers}
