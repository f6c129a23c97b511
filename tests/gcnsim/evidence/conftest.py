"""Run folders as the training runtime writes them, each beside an access trace of a small graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from gcnsim import __version__
from gcnsim.evidence.recorded_run import scenario_of
from gcnsim.graph import Graph, build_csr
from gcnsim.graph.assign import partition_graph
from gcnsim.graph.parts import Part, split
from gcnsim.records.compute_reading import measured_compute
from gcnsim.records.recorded_run import RecordedRun, read_recorded_run
from gcnsim.records.run_files import Shares
from gcnsim.simulation import simulate_scenario
from gcnsim.simulation.open_source import open_source
from gcnsim.trace import record_nodes, record_trace, write_trace
from runtime.options import Options
from tests.gcnsim.evidence.made_calibration import MACHINE
from tests.measured_files import header, rows, write, write_graph

WIDTHS = (32, 32, 8)
EMULATED: Final[dict[str, Any]] = {
    "hosts": 2,
    "workers_per_host": 1,
    "bandwidth": 2.5e7,
    "measured": 2.35e7,
    "burst": 65_536,
    "latency_s": 0.0,
    "latency_by": "none",
    "limiter": "netns",
    "cores": 2,
    "congestion": "cubic",
    "one_session": True,
}
"""The `emulation` of a run.json."""

WriteRun = Callable[..., Path]


@cache
def small_graph() -> Graph:
    """3,000 nodes with some 30,000 edges, mostly between near ones."""
    rng = np.random.default_rng(5)
    one = rng.integers(0, 3000, 30_000)
    other = (one + np.rint(rng.normal(0, 400, one.size)).astype(np.int64)) % 3000
    return build_csr(one, other, 3000, "small")


@cache
def _parts(workers: int) -> Sequence[Part]:
    return split(small_graph(), partition_graph(small_graph(), workers, "block"))


def save_trace(path: Path, workers: int = 2, sampler: str = "full", epsilon: float = 1.0, seed: int = 0) -> Path:
    """The accesses of `small_graph` in blocks, as `--save-trace` writes them."""
    owners = partition_graph(small_graph(), workers, "block")
    graphs = 1 if epsilon == 1.0 else 12
    parts = _parts(workers)
    if sampler == "bns":
        trace = record_nodes(parts, owners, rate=epsilon, iterations=graphs, seed=seed)
    else:
        trace = record_trace(parts, owners, sampler=sampler, epsilon=epsilon, iterations=graphs, seed=seed)
    write_trace(path, trace)
    return path


def run_document(
    options: Options,
    *,
    widths: Sequence[int] = WIDTHS,
    iterations: int = 10,
    emulation: Mapping[str, Any] | None = EMULATED,
    shares: Sequence[Mapping[str, float]] | None = None,
    slowest: int = 0,
    warmup: int = 5,
) -> dict[str, Any]:
    """A whole run.json. shares: of each worker, what differs from nothing."""
    workers = options.workers
    none = [[0] * workers for _ in range(workers)]
    content = [
        dict.fromkeys(Shares.__slots__, 0.0) | {"worker": rank} | dict(shares[rank] if shares else {})
        for rank in range(workers)
    ]
    return {
        "schema": "gcnsim.run/1",
        "versions": {"gcnsim": __version__, "python": "3.11.7", "torch": "2.13.0", "numpy": "2.4.6"},
        "hardware": dict(MACHINE),
        "emulation": None if emulation is None else dict(emulation),
        "backend": "gloo",
        "options": options.asdict(),
        "seed": options.seed,
        "workers": workers,
        "graph": {"name": "small", "hash": small_graph().content_hash()},
        "partition": {"method": "block", "hash": "cd34"},
        "inner": [part.inner_nodes for part in _parts(workers)],
        "boundary": [part.boundary_nodes for part in _parts(workers)],
        "widths": list(widths),
        "parameters": 1000,
        "iterations": iterations,
        "finished": True,
        "bytes": dict.fromkeys(("rows", "gradients", "ids", "norms", "cache"), none),
        "hit_rate": None,
        "peak_memory": [{"host_bytes": 2**28, "device_bytes": None}] * workers,
        "accuracy": {"train": 0.9, "val": 0.8, "test": None},
        "norms": [],
        "summary": {
            "measured": max(1, iterations - warmup),
            "warmup": warmup,
            "iteration_s": 0.1,
            "iteration_s_p10": 0.1,
            "iteration_s_p90": 0.1,
            "slowest": slowest,
            "workers": content,
        },
    }


def write_folder(folder: Path, document: Mapping[str, Any], seconds: Sequence[float]) -> Path:
    """run.json and iterations.csv in `folder`."""
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_text(json.dumps(document))
    rows = [f"{index},{value!r},0.5,,,1000,,0.01" for index, value in enumerate(seconds)]
    head = "iteration,seconds,loss,train_accuracy,val_accuracy,bytes_sent,hit_rate,wait_s"
    (folder / "iterations.csv").write_text("\n".join([head, *rows, ""]))
    return folder


@pytest.fixture
def write_run(tmp_path: Path) -> WriteRun:
    """A finished run in a folder of its own, by name; the trace is beside its files."""
    return runs_in(tmp_path)


def runs_in(place: Path) -> WriteRun:
    """Writes finished runs below `place`, as `write_run` does."""

    def write(
        name: str,
        *,
        seconds: Sequence[float] = (0.1,) * 10,
        shares: Sequence[Mapping[str, float]] | None = None,
        emulation: Mapping[str, Any] | None = EMULATED,
        widths: Sequence[int] = WIDTHS,
        **options: Any,
    ) -> Path:
        requested = Options(**{"threads": 1, "layers": len(widths) - 1, "hidden": widths[1]} | options)
        folder = place / name
        document = run_document(requested, widths=widths, iterations=len(seconds), emulation=emulation, shares=shares)
        write_folder(folder, document, seconds)
        knobs = requested.knobs
        epsilon = float(str(knobs.get("rate", knobs.get("epsilon", 1.0))))
        sampler = "full" if epsilon == 1.0 else str(knobs.get("sampler", "bns"))
        save_trace(folder / "access.trace", requested.workers, sampler, epsilon, requested.seed)
        return folder

    return write


def evaluated(folder: Path, accuracies: list[str]) -> None:
    """Give a written run an accuracy in some of its iterations."""
    path = folder / "iterations.csv"
    head, *rows = path.read_text().splitlines()
    place = head.split(",").index("val_accuracy")
    changed = []
    for row, accuracy in zip(rows, accuracies, strict=False):
        cells = row.split(",")
        cells[place] = accuracy
        changed.append(",".join(cells))
    path.write_text("\n".join([head, *changed, *rows[len(changed) :]]) + "\n")


def parts_measured(place: Path, *folders: Path, seconds: float = 1e-3, **device: int) -> list[Path]:
    """Files of measured times of the parts of the runs in `folders`, each operation of so many seconds.

    device: more that is known of the cores.
    """
    groups: dict[tuple[int, tuple[int, ...]], list[RecordedRun]] = {}
    for folder in folders:
        run = read_recorded_run(folder)
        groups.setdefault((run.workers, tuple(run.widths)), []).append(run)
    return [_measured(place, runs, seconds, device) for runs in groups.values()]


def _measured(place: Path, runs: Sequence[RecordedRun], seconds: float, device: Mapping[str, int]) -> Path:
    first = runs[0]
    widths, layers = list(first.widths), range(len(first.widths) - 1)
    settings = {json.dumps([run.options["method"], run.options["knobs"]]): run.options for run in runs}
    about = header(
        write_graph(place),
        first.workers,
        [(options["method"], options["knobs"]) for options in settings.values()],
        device={"kind": "cpu", "name": "a core", "threads": first.threads, **device},
        graph={"name": "small", "hash": first.graph["hash"], "features": widths[0], "classes": widths[-1]},
        partition={"hash": first.partition["hash"], "algorithm": "block"},
        model={
            "model": first.options["model"],
            "layers": len(layers),
            "hidden": widths[1],
            "widths": widths,
            "preaggregate": first.options["preaggregate"],
        },
        training={"aggregator": first.options["aggregator"]},
    )
    ways = [(kind, layer, way) for kind in ("aggregate", "update") for layer in layers
            for way in ("forward", "backward") if kind == "update" or way == "forward" or layer]  # fmt: skip
    sent = [("pack", layer, "forward") for layer in layers] if first.workers > 1 else []
    ops = [*ways, *sent, ("loss", -1, "forward"), ("step", -1, "")]
    name = f"{first.workers}-{'-'.join(map(str, widths))}-{seconds}.parquet"
    return write(place / name, about, rows(about, lambda *_: seconds, ops))


def simulated(folder: Path, calibration: Path, factor: float = 1.0, measured: Sequence[Path] = ()) -> RecordedRun:
    """The run in `folder` with the times that the simulator predicts for it, times `factor`, written there too."""
    run = read_recorded_run(folder)
    scenario = scenario_of(run, str(calibration), [measured_compute(str(path)) for path in measured])
    metrics = simulate_scenario(scenario, open_source(scenario)).metrics
    document = json.loads((folder / "run.json").read_text())
    for content in document["summary"]["workers"]:
        content["compute_s"] = metrics.compute_s * factor
        content["wait_s"] = metrics.exposed_comm_s * factor
    write_folder(folder, document, [metrics.iteration_s * factor] * 10)
    return read_recorded_run(folder)
