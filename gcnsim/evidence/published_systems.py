"""From a published row to the scenario that asks for it: its system (a method of ours), its setting, its layout.

A system without a prediction says why. A new one is one line here once its schedule is in `gcnsim.methods`.

Settings are scenario files (gcnsim/data/reproduction, also in scenarios/), one for each paper, dataset and platform; a
row says how many workers, on how many servers, and where the method's knobs stand.

Rows to which the figures of a platform were fitted show how well a fit holds, the others how well it carries over.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import FileError, ScenarioError, nearest
from gcnsim.evidence.published_facts import FactRow
from gcnsim.methods import COMPARED, Method, create_method
from gcnsim.scenario import DIRECT, LEAN, Scenario, WorkloadSpec, load_scenario
from gcnsim.workload import dataset, datasets


@dataclass(frozen=True, slots=True)
class System:
    """One system. method: ours. knobs: by our name, the row's field that sets it. fixed: knobs that no field sets.

    setting: what its setting's name ends in, where it is not that of its paper and dataset. at_random: whether parts
    are alike, as where nodes are dealt in their order and not by METIS. base: ours that ratios compare with.
    """

    method: str
    knobs: tuple[tuple[str, str], ...] = ()
    fixed: tuple[tuple[str, int | float | str | tuple[int, ...]], ...] = ()
    setting: str = ""
    at_random: bool = False
    base: str = "full-graph"


REMEASURED: Final[Mapping[str, System]] = {
    "full-graph": System("full-graph"),
    "pipegcn": System("pipegcn"),
    "bns-gcn": System("bns-gcn", (("rate", "rate"),)),
    "dgl": System("dgl", (("batch", "batch_per_gpu"),), base="dgl"),
    "distdgl": System("distdgl", (("batch", "batch_per_gpu"),), base="dgl"),
    "pagraph": System("pagraph", (("batch", "batch_per_gpu"),), base="dgl"),
}
"""By the names of rows that others measured."""

KEEPS_INPUTS: Final = frozenset({"bns-gcn"})
"""Of these, whose scripts exchange and sum the inputs of the first layer once, before training, whatever the model."""

CAGNET: Final = "cagnet"
"""The name that stands for several methods, by the row's replication."""

WARMED: Final = (("warmup", 50 / 300),)
"""Of SANCUS' 300 epochs on Reddit the first 50 send everything; its times are read as means over all of them."""

SYSTEMS: Final[Mapping[str, System]] = {
    "full_graph": System("full-graph"),
    "gcn": System("full-graph"),
    "pipegcn": System("pipegcn"),
    "pipegcn_g": System("pipegcn-g"),
    "pipegcn_f": System("pipegcn-f"),
    "pipegcn_gf": System("pipegcn-gf"),
    "psc_gcn": System("psc-gcn", (("tau", "tau"), ("epsilon", "epsilon"))),
    "bns_gcn": System("bns-gcn", (("rate", "p"),)),
    "bns_gcn_gat": System("bns-gcn", (("rate", "p"),), setting="-gat"),
    "dropedge": System("bns-gcn", fixed=(("rate", 0.1), ("sample", "edges"))),
    "boundary_edge_sampling": System("bns-gcn", fixed=(("rate", 0.1), ("sample", "boundary-edges"))),
    "roc": System("roc", setting="-full", at_random=True),
    "scs_a1": System("sancus", fixed=(("stale_test", "adaptive"), *WARMED), at_random=True, base="cagnet-1d"),
    "scs_e": System("sancus", fixed=(("stale_test", "fixed"), *WARMED), at_random=True, base="cagnet-1d"),
    "scs_h": System(
        "sancus", fixed=(("stale_test", "gap"), ("threshold", 0.02), *WARMED), at_random=True, base="cagnet-1d"
    ),
}
"""Edge sampling drops as many edges as sampling nodes at p = 0.1 does (BNS-GCN, text beside Table 9).
SANCUS' thresholds are not printed with its table. scs_a1: 1, by its name. Assumed: 1 for scs_e (range 1 to 5), 0.02
for scs_h (range 0.01 to 0.05), whose rows move 0.01 an epoch (range 0.005 to 0.02)."""

UNMODELLED: Final[Mapping[str, str]] = {
    "graphsage": "its batches and fan-outs are not given",
    "graphsaint": "its batches and fan-outs are not given",
    "clustergcn": "its batches and fan-outs are not given",
    "fastgcn": "its batches and fan-outs are not given",
    "vr_gcn": "its batches and fan-outs are not given",
    "random_partition_bns": "no partition at random is shipped",
}

WHOLE_PAPERS: Final[Mapping[str, System]] = {
    "pagraph": System("pagraph", fixed=(("batch", 6000), ("fanout", (2, 2))), base="dgl"),
}
"""Papers whose tables name no method, nor how many GPUs: their settings say."""


def system_of(row: FactRow) -> System | str:
    """The system of a row, or why it is not predicted. Raises FileError for a method that no list above has."""
    if row.paper in WHOLE_PAPERS:
        return WHOLE_PAPERS[row.paper]
    name = str(row.fields.get("method"))
    if name == CAGNET:
        return cagnet_of(row)
    if name in SYSTEMS:
        return SYSTEMS[name]
    if name in UNMODELLED:
        return UNMODELLED[name]
    raise FileError(f"{row.place}: unknown method {name!r}; {nearest(name, [*SYSTEMS, *UNMODELLED, CAGNET])}")


def cagnet_of(row: FactRow) -> System:
    """CAGNET by the replication of a row; on SANCUS' own settings where that paper compares with it."""
    copies = row.fields.get("replication_c", 1)
    own = row.paper == "sancus"
    setting, base = ("", "cagnet-1d") if own else ("-full", "full-graph")
    if copies == 1:
        return System("cagnet-1d", setting=setting, at_random=True, base=base)
    return System("cagnet-1.5d", (("replication", "replication_c"),), setting=setting, at_random=True, base=base)


def method_of(row: FactRow, system: System) -> Method:
    """Our method with its knobs where the row has them. Raises FileError for a knob out of range, or missing."""
    knobs: dict[str, Any] = dict(system.fixed)
    for knob, field in system.knobs:
        value = row.fields.get(field)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise FileError(f"{row.place}: {field} is {value!r}; allowed: a number")
        knobs[knob] = value if knob in ("tau", "replication", "batch") else float(value)
    try:
        return create_method(system.method, **knobs)
    except ScenarioError as error:
        raise FileError(f"{row.place}: {error}") from None


FOLDER: Final = Path(__file__).resolve().parent.parent / "data" / "reproduction"
"""The settings: PAPER-DATASET.yaml, with the name of the platform behind it where a paper has two for a dataset."""

SUFFIX: Final[Mapping[tuple[str, str], str]] = {("pipegcn", "table8"): "-mi60", ("bns_gcn", "table11"): "-inputs"}
"""Tables on the second platform of their paper, or whose one row that may be fitted asks for another reading."""

ONE_A_SERVER: Final = frozenset({"bajaj-logs2023"})
"""Papers that do not print on how many servers their GPUs were. On four, of 1 Gbit/s, a worker's rows take as long as
is printed; within one they would take a tenth of it."""

BNS_RATE: Final = 0.1
"""The sampling rate of BNS-GCN's scripts."""

ONE_BY_ONE: Final = 128
"""Tables' workers that are simulated one by one: of more, a few stand for all."""

REPRESENTATIVE_WORKERS: Final = 24
"""Workers that stand for all others where there are more: servers are alike."""


@dataclass(frozen=True, slots=True)
class RowScenario:
    """What to simulate for a row. boundary: mean boundary nodes per partition, where its partitions are not METIS'.

    parts: of which the scenario's workers are some, where there are more than `ONE_BY_ONE`.
    """

    scenario: Scenario
    system: System
    boundary: float | None = None
    parts: int | None = None

    def by(self, method: Method) -> RowScenario:
        """The same setting under another method."""
        system = System(method.name, base=self.system.base)
        return replace(self, scenario=replace(self.scenario, method=method), system=system)


def scenario_of_row(
    row: FactRow, rows: Sequence[FactRow], platforms: Mapping[str, str], *, calibrated: bool = True
) -> RowScenario | str:
    """What to simulate for `row`, or why nothing is. rows: of all facts, which may say more about its setting.

    platforms: files to take fitted figures from, by the name of the platform; the shipped ones for all others.
    calibrated: whether fitted figures are used at all. Raises FileError for a row that cannot be.
    """
    scenario = _scenario_of_row(row, rows, platforms)
    if calibrated or isinstance(scenario, str):
        return scenario
    return replace(
        scenario, scenario=replace(scenario.scenario, cluster=replace(scenario.scenario.cluster, platform=None))
    )


def _scenario_of_row(row: FactRow, rows: Sequence[FactRow], platforms: Mapping[str, str]) -> RowScenario | str:
    """As `scenario_of_row`, with fitted figures."""
    if "platform" in row.fields:
        return _remeasured(row)
    system = system_of(row)
    if isinstance(system, str):
        return system

    what = row.fields["config"] if "config" in row.fields else row.fields.get("dataset")
    base = setting(f"{row.paper}-{what}{system.setting}{SUFFIX.get((row.paper, row.table), '')}")
    if base is None:
        own = [name.removeprefix(f"{row.paper}-") for name in settings() if name.startswith(f"{row.paper}-")]
        known = f"there are {', '.join(own)}" if own else f"papers: {', '.join(dict.fromkeys(map(_paper, settings())))}"
        raise FileError(f"{row.place}: no setting of {row.paper!r} for {what!r}; {known}")
    workers, per_server = layout(row, base)
    parts = workers if workers > ONE_BY_ONE else None
    workers = REPRESENTATIVE_WORKERS if parts else workers
    name = base.cluster.platform
    try:
        cluster = replace(
            base.cluster, gpus=workers, gpus_per_server=per_server, platform=platforms.get(name or "", name)
        )
        scenario = replace(base, cluster=cluster, method=method_of(row, system))
        if system.at_random:
            return RowScenario(scenario, system, dataset(base.workload.dataset or "").nodes * (1.0 - 1.0 / workers))
        if row.fields.get("partitioner", "metis") == "metis":
            return RowScenario(scenario, system, parts=parts)
    except ScenarioError as error:
        raise FileError(f"{row.place}: {error}") from None
    return RowScenario(scenario, system, boundary_of(row, rows) / workers)


def _remeasured(row: FactRow) -> RowScenario | str:
    """What to simulate for a row that names its own platform."""
    fields = row.fields
    base = setting(f"remeasured-{fields['platform']}")
    if base is None:
        return f"no setting of the platform {fields['platform']!r}"
    name = f"{fields['dataset']}-train" if fields.get("inductive") else fields["dataset"]
    if name not in datasets():
        return f"no dataset {name!r}"
    system = REMEASURED.get(fields["method"])
    if system is None:
        return f"no schedule of {fields['method']!r}"
    if fields["gpus"] % fields["servers"]:
        return f"{fields['gpus']} GPUs are not even over {fields['servers']} servers"
    method = method_of(replace(row, fields={"rate": BNS_RATE, **fields}), system)
    per_server = 1 if row.paper in ONE_A_SERVER else fields["gpus"] // fields["servers"]
    cluster = replace(base.cluster, gpus=fields["gpus"], gpus_per_server=per_server)
    if method.mini_batches:
        cluster = replace(cluster, implementation=LEAN, transport=DIRECT)
    try:
        if method.mini_batches and "fanout" in fields:
            fanout = fields["fanout"] if isinstance(fields["fanout"], list) else [fields["fanout"]] * fields["layers"]
            method = create_method(method.name, batch=fields["batch_per_gpu"], fanout=tuple(fanout))
        workload = _workload(row, base, name, method)
        return RowScenario(replace(base, workload=workload, cluster=cluster, method=method), system)
    except ScenarioError as error:
        raise FileError(f"{row.place}: {error}") from None


def _workload(row: FactRow, base: Scenario, name: str, method: Method) -> WorkloadSpec:
    """Dataset and model of the row; heads are averaged, as the released code has it."""
    fields = row.fields
    attends, heads, dense = fields["model"] == "gat", fields.get("heads", 1), fields.get("linear_layers", 0)
    summed = _precomputed(row, attends=attends, method=method)
    return replace(
        base.workload,
        dataset=name,
        model=fields["model"],
        layers=fields["layers"] + dense,
        dense_layers=dense,
        hidden=fields["hidden"],
        heads=heads,
        heads_joined="averaged" if heads > 1 else base.workload.heads_joined,
        keep_inputs=attends and summed,
        preaggregate=not attends and summed,
    )


def _precomputed(row: FactRow, *, attends: bool, method: Method) -> bool:
    """Whether the first layer's inputs are exchanged and summed once, before training: as the row says, else as the
    scripts do, those of BNS-GCN and of attention with, PipeGCN's of GraphSAGE without."""
    if "use_pp" in row.fields:
        return bool(row.fields["use_pp"])
    return not method.mini_batches and (attends or method.name in KEEPS_INPUTS)


@cache
def setting(name: str) -> Scenario | None:
    """The scenario file of a setting; None when there is none."""
    path = FOLDER / f"{name}.yaml"
    return load_scenario(path) if path.is_file() else None


def settings() -> tuple[str, ...]:
    """Names of all settings, sorted."""
    return tuple(sorted(path.stem for path in FOLDER.glob("*.yaml")))


def _paper(name: str) -> str:
    return name.partition("-")[0]


def layout(row: FactRow, base: Scenario) -> tuple[int, int]:
    """Workers, and workers per server. Raises FileError where a row says neither."""
    if "config" in row.fields or row.paper in WHOLE_PAPERS:
        return base.cluster.gpus, base.cluster.gpus_per_server
    printed = row.fields.get("nodes_x_gpus")
    if printed is not None:
        match = re.fullmatch(r"(\d+)x(\d+)", str(printed))
        if match is None:
            raise FileError(f"{row.place}: nodes_x_gpus is {printed!r}; allowed: servers x GPUs, as 2x3")
        workers = int(match[1]) * int(match[2])
        if row.fields.get("partitions", workers) != workers:
            raise FileError(
                f"{row.place}: nodes_x_gpus is {printed!r}, which is not {row.fields['partitions']} partitions"
            )
        return workers, int(match[2])
    workers = row.fields.get("partitions", row.fields.get("gpus"))
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise FileError(f"{row.place}: has no number of workers; allowed: partitions or gpus, a whole number")
    return workers, workers if base.cluster.servers == 1 else base.cluster.gpus_per_server


def boundary_of(row: FactRow, rows: Sequence[FactRow]) -> float:
    """Boundary nodes of all partitions together: of the row, or of an input row of its table with the same parts."""
    names = ("dataset", "partitions", "partitioner")
    for other in (row, *rows):
        same = (other.paper, other.table) == (row.paper, row.table)
        if same and all(other.fields.get(name) == row.fields.get(name) for name in names):
            total = other.fields.get("boundary_total_k")
            if isinstance(total, int | float):
                return 1000.0 * total
    raise FileError(f"{row.place}: no row says how many boundary nodes these partitions have")


MOST_WORKERS: Final = 24
"""Larger settings are judged, not fitted: what they compute is not explained by any efficiency (docs/reproduce.md)."""


def is_fitted(row: FactRow, one: RowScenario) -> bool:
    """Whether a figure follows from this row, of its platform or of its device.

    Sampled edges, attention and other systems that a paper compares with are judged by figures fitted to the rest, and
    so is the sampling of an iteration, of which no figure is.
    """
    method, model = one.scenario.method, one.scenario.workload.model
    if one.scenario.cluster.gpus > MOST_WORKERS:
        return False
    known = row.fields.get("method") == CAGNET or (
        method.name in COMPARED and not method.sampling().drops_edges and model != "gat"
    )
    return row.use == "calibrate" and known and row.metrics != ("overhead_pct",)
