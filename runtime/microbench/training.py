"""Whole iterations of one worker: what processes that train cost one another."""

from __future__ import annotations

import tempfile
from pathlib import Path

from runtime.data import DatasetCache
from runtime.launch import Place
from runtime.microbench.bench import Bench, Call
from runtime.microbench.inputs import saved_graph
from runtime.options import Options
from runtime.train.reduce import LocalSums
from runtime.train.setup import WorkerState, prepare

ALONE = Place(0, 1, 0, 1, True)
CLASSES = 16


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
