"""How far off answers are from others' iterations and epochs: `python -m studies.score_systems FILE`.

FILE has the form `{papers, rows}`. A row names its paper, data set, model with its layers and width, its method, GPU,
how many of them on how many servers, a metric and its value. Prints a line for each (paper, system) and at last the
median errors as JSON. A row of an unknown GPU, graph or method is counted, not an error.

Readings, where a row does not say: heterogeneous graphs are taken as one of their sizes, GIN as GraphSAGE (both sum
inputs first, then multiply twice), the server is any with 16 cores, its network 100 Gbit/s, and no layer is normalised.
Products of papers in `HALF` run at the fp16 rate.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from gcnsim.core.errors import GcnsimError
from gcnsim.evidence.published_answers import TableValues, measured
from gcnsim.evidence.published_facts import FactRow
from gcnsim.evidence.published_systems import REMEASURED, RowScenario, System, scenario_of_row, setting
from gcnsim.hardware import device, devices, hosts
from gcnsim.scenario import from_mapping
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import RangeEnd
from gcnsim.workload import dataset, datasets
from studies.score_operators import InexpressibleError, gpu_of
from studies.scores import UNEXPECTED, Row, ScoredRow, judged, measured_rows, score_lines

NETWORK: Final = "100Gbps"

HALF: Final = ("mlperf-training",)
"""What papers begin with whose setting is automatic mixed precision: products on matrix units."""

MINUTE: Final = 60.0


@dataclass(frozen=True, slots=True)
class GraphSizes:
    """A graph that the catalogue does not have. edges: undirected, each once."""

    nodes: int
    edges: int
    features: int
    classes: int


GRAPHS: Final[Mapping[str, GraphSizes]] = {
    "cora": GraphSizes(2708, 5278, 1433, 7),
    "citeseer": GraphSizes(3327, 4552, 3703, 6),
    "ppi": GraphSizes(1767, 16159, 50, 121),
    "amazon-photo": GraphSizes(7650, 119081, 745, 8),
    "amazon-computers": GraphSizes(13752, 245861, 767, 10),
    "igbh-full": GraphSizes(547306935, 5812005639, 1024, 2983),
}
"""Sizes as the loaders of PyTorch Geometric have them; IGBH-Full by its paper (Khatua et al. 2023)."""

MODELS: Final[Mapping[str, str]] = {"gin": "graphsage", "rgat": "gat", "sage": "graphsage"}
"""Models that are read as another."""

METHODS: Final[Sequence[tuple[str, str]]] = (
    ("full-graph one gpu", "full-graph"), ("sampled (dgl", "dgl"), ("sampled (neighbor)", "dgl"),
    ("graphbolt in memory", "dgl"), ("wholegraph sampled", "dgl"),
)  # fmt: skip
"""Methods by what their name begins with."""

PLACES: Final[Sequence[tuple[str, str]]] = (
    ("host memory, copied by the cpu", "host"), ("host memory (pinned", "uva"), ("unified memory", "uva"),
    ("gpu memory", "gpu"), ("same", "uva"),
)  # fmt: skip
"""Where input rows lie, by what the field begins with."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the score of a file; return the exit code."""
    parser = argparse.ArgumentParser(description="Errors of answers on others' measurements.")
    parser.add_argument("file", help="rows that others measured")
    given = parser.parse_args(arguments)
    try:
        rows = measured_rows(given.file)
    except GcnsimError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write("\n".join([*score_lines([score(row) for row in rows], ("paper", "system")), ""]))
    return 0


def score(row: Row) -> ScoredRow:
    """One row beside its answer."""
    method = str(row.get("method", ""))
    group = (str(row.get("paper", "")), method)
    kind = str(row.get("metric", "none"))
    try:
        if kind not in METRICS:
            raise InexpressibleError(f"no quantity {kind!r}")
        one = scenario_of(row)
        ends = [METRICS[kind](run, row) for run in runs_of(one)]
    except InexpressibleError as error:
        return ScoredRow(group, kind, reason=str(error))
    except GcnsimError as error:
        return ScoredRow(group, kind, reason=str(error))
    except UNEXPECTED as error:
        return ScoredRow(group, kind, reason=f"a field is not as expected ({type(error).__name__}: {error})")
    return judged(group, kind, row.get("value"), ends)


def runs_of(one: RowScenario) -> tuple[TableValues, TableValues, TableValues]:
    """What one setting's run has, and the same at both ends of its range."""
    accesses = open_source(one.scenario)
    every = [measured(one, accesses, bound) for bound in accesses.assumption_bounds]
    likely = measured(one, accesses, RangeEnd.LIKELY)
    return (
        likely,
        _at(likely, min(run.low_s for run in [likely, *every])),
        _at(likely, max(run.high_s for run in [likely, *every])),
    )


def _at(run: TableValues, iteration_s: float) -> TableValues:
    return replace(run, iteration_s=iteration_s)


def scenario_of(row: Row) -> RowScenario:
    """What to simulate for a row. Raises InexpressibleError, or a GcnsimError for what cannot be asked."""
    method = str(row.get("method", "")).lower()
    if method in REMEASURED and setting(f"remeasured-{row.get('platform')}") is not None:
        fact = FactRow(str(row["paper"]), str(row.get("table", "")), {}, "calibrate", (), row, "row")
        found = scenario_of_row(fact, [fact], {}, calibrated=False)
        if isinstance(found, str):
            raise InexpressibleError(found)
        return found
    gpu = gpu_of(row)
    if gpu not in devices():
        raise InexpressibleError(f"GPU {gpu!r} is not in the catalogue")
    name = method if method in REMEASURED else next((ours for begins, ours in METHODS if method.startswith(begins)), "")
    if not name:
        raise InexpressibleError(f"no schedule of {method!r}")
    batches = name in ("dgl", "distdgl", "pagraph")
    mapping = {
        "schema": "gcnsim.scenario/1",
        "name": "row",
        "cluster": cluster_of(row, gpu, batches=batches),
        "workload": workload_of(row),
        "method": method_of(row, name, batches=batches),
    }
    return RowScenario(from_mapping(mapping, "row"), System(name))


def cluster_of(row: Row, gpu: str, *, batches: bool) -> dict[str, Any]:
    """The machine of a row."""
    gpus, servers = int(row.get("gpus", 1)), int(row.get("servers", 1))
    if gpus < 1 or servers < 1 or gpus % servers:
        raise InexpressibleError(f"{gpus} GPUs are not even over {servers} servers")
    cluster: dict[str, Any] = {"gpus": gpus, "gpus_per_server": gpus // servers, "device": gpu}
    cluster["bandwidth"] = str(row.get("network", NETWORK))
    cluster["host"] = host_of(str(row.get("platform", "")))
    half = device(gpu).flops_fp16
    if half is not None and str(row.get("paper", "")).startswith(HALF):
        cluster["figures"] = f"{gpu}.flops_fp32={half.value / 1e12:g}TFLOP/s"
    if batches:
        place = str(row.get("features", "")).lower()
        found = next((ours for begins, ours in PLACES if place.startswith(begins)), None)
        if place and found is None:
            raise InexpressibleError(f"no place of rows {place!r}")
        cluster["features"] = found
        sampler = str(row.get("sampler", "")).lower()
        cluster["sampler_device"] = sampler if sampler in ("cpu", "gpu") else None
    return cluster


def host_of(platform: str) -> str:
    """The instance that a platform's name begins with, of one GPU; else any server."""
    family = re.match(r"(p3|g4dn|g5|g6e|g6)_", platform)
    names = {"p3": "p3.2xlarge", "g4dn": "g4dn.xlarge", "g5": "g5.xlarge", "g6": "g6.xlarge", "g6e": "g6e.xlarge"}
    found = names[family[1]] if family else "generic-16"
    return found if found in hosts() else "generic-16"


def workload_of(row: Row) -> dict[str, Any]:
    """Data set and model of a row."""
    name, model = str(row.get("dataset", "")).lower(), str(row.get("model", "")).lower()
    by_name = {known.lower(): known for known in datasets()}
    nodes, entries = row.get("nodes"), row.get("entries")
    if name in GRAPHS:
        sizes = GRAPHS[name]
    elif name in by_name:
        facts = dataset(by_name[name])
        sizes = GraphSizes(facts.nodes, facts.entries // 2, facts.features, facts.classes)
    else:
        raise InexpressibleError(f"no dataset {name!r}")
    workload: dict[str, Any] = {"dataset": by_name.get(name)}
    given = 0 if nodes is None or entries is None else (int(entries) - (int(nodes) if model == "gcn" else 0)) // 2
    if name in GRAPHS or (given and abs(given / sizes.edges - 1.0) > 0.05):
        workload = {"nodes": nodes or sizes.nodes, "edges": given or sizes.edges}
    workload |= {"features": sizes.features, "classes": sizes.classes, "norm": "none", "dropout": 0}
    workload |= {"model": MODELS.get(model, model), "layers": int(row["layers"]), "hidden": int(row["hidden"])}
    heads = row.get("heads")
    if heads is not None:
        each = int(str(heads).split(",", maxsplit=1)[0])
        # A list of heads has the width of one; the paper's width is of all together otherwise.
        workload |= {"heads": each, "hidden": int(row["hidden"]) * (each if "," in str(heads) else 1)}
    if name == "igbh-full":
        workload["train_fraction"] = 94605581 / sizes.nodes
    return workload


def method_of(row: Row, name: str, *, batches: bool) -> dict[str, Any]:
    """The method of a row with its knobs."""
    method: dict[str, Any] = {"name": name}
    if not batches:
        return method
    batch = row.get("batch", row.get("batch_per_gpu"))
    if batch is None:
        raise InexpressibleError("no size of a batch")
    fanout = row.get("fanout")
    if fanout is None:
        raise InexpressibleError("no fan-out")
    drawn = [int(one) for one in str(fanout).strip("[]").split(",")]
    # One number is of every layer; rows name the seeds' layer last, as ours do.
    return method | {"batch": int(batch), "fanout": drawn * int(row["layers"]) if len(drawn) == 1 else drawn}


def _epoch(run: TableValues, row: Row) -> float:
    return run.iteration_s * run.per_epoch


def _train_minutes(run: TableValues, row: Row) -> float:
    """Epochs to the target, and an evaluation each twentieth of one (MLPerf's rule), as long as printed."""
    epochs = float(row["epochs_to_target"])
    return (epochs * _epoch(run, row) + 20 * epochs * float(row.get("evaluation_s", 0.0))) / MINUTE


METRICS: Final[Mapping[str, Callable[[TableValues, Row], float]]] = {
    "epoch_s": _epoch,
    "iteration_s": lambda run, row: run.iteration_s,
    "per_iteration_s": lambda run, row: run.iteration_s,
    "epochs_per_s": lambda run, row: 1.0 / _epoch(run, row),
    "time_to_train_min": _train_minutes,
    "communication_s": lambda run, row: run.communication_s,
    "reduce_s": lambda run, row: run.reduce_s,
}
"""What a row's metric is of a run."""


if __name__ == "__main__":
    sys.exit(main())
