"""Times that others measured of published systems: one file for several papers, a setting in every row.

`papers: {id: {...}}`, `platforms: {name: {...}}`, `rows: [...]`. A row names its paper, table and platform, the data
set, the model with its layers and width, the method, how many GPUs on how many servers, a metric with its value, and a
class: `calibrate` rows may be fitted, `predict` rows are to be predicted blind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from gcnsim.core.errors import FileError, ScenarioError
from gcnsim.core.fields import Number, shown
from gcnsim.evidence.published_facts import MAY_BE_ZERO, PREDICTED, FactRow
from gcnsim.evidence.published_systems import KEEPS_INPUTS, REMEASURED, System, method_of
from gcnsim.methods import Method, create_method
from gcnsim.scenario import DIRECT, LEAN, Scenario, WorkloadSpec
from gcnsim.workload import datasets

KEYS: Final = frozenset({"papers", "platforms", "rows"})
"""What tells such a file from one of a paper's own tables."""

OF_KEY: Final = (
    "platform", "dataset", "model", "layers", "hidden", "heads", "linear_layers", "inductive", "use_pp", "method",
    "rate", "fanout", "batch_per_gpu", "gpus", "servers",
)  # fmt: skip
"""Fields of a row that say what was run."""

ONE_A_SERVER: Final = frozenset({"bajaj-logs2023"})
"""Papers that do not print on how many servers their GPUs were. On four, of 1 Gbit/s, a worker's rows take as long as
is printed; within one they would take a tenth of it."""

BNS_RATE: Final = 0.1
"""The sampling rate of BNS-GCN's scripts."""


def remeasured_rows(path: str, raw: Mapping[str, Any]) -> Iterator[FactRow]:
    """The rows of one file. Raises FileError for one of an unknown paper, class or platform, without a method, a
    metric or, of class `calibrate`, its value, or given twice."""
    if not isinstance(raw["rows"], list) or not raw["rows"]:
        raise FileError(f"{path}: rows: is {shown(raw['rows'])}; a list of rows")
    seen: set[tuple[str, str, str, str]] = set()
    for number, one in enumerate(raw["rows"], start=1):
        row = _row(path, raw, f"{path}: row {number}", one)
        key = (row.paper, row.table, row.label, row.metrics[0])
        if key in seen:
            raise FileError(f"{path}: row {number}: is given twice")
        seen.add(key)
        yield row


def _row(path: str, raw: Mapping[str, Any], place: str, one: Any) -> FactRow:
    if not isinstance(one, dict):
        raise FileError(f"{place}: is not a row; it has a paper, a platform, a method and a metric")
    for name, known in (("paper", raw["papers"]), ("platform", raw["platforms"])):
        if not isinstance(known, dict) or not isinstance(one.get(name), str) or one[name] not in known:
            raise FileError(f"{place}: {name} {shown(one.get(name))} is not one of the file's {name}s")
    if not isinstance(one.get("class"), str) or one["class"] not in PREDICTED:
        raise FileError(f"{place}: unknown class {shown(one.get('class'))}; allowed: {', '.join(PREDICTED)}")
    for name in ("dataset", "model", "method", "metric", "table"):
        if not isinstance(one.get(name), str):
            raise FileError(f"{place}: {name} is {shown(one.get(name))}; allowed: a text")
    needed = ("layers", "hidden", "gpus", "servers")
    for name in (*needed, *(text for text in ("heads", "batch_per_gpu") if text in one)):
        if wrong := Number(True, 1).wrong(one.get(name)):
            raise FileError(f"{place}: {name}: {wrong}")
    if wrong := Number(True, 0).wrong(one.get("linear_layers", 0)):
        raise FileError(f"{place}: linear_layers: {wrong}")
    metric = one["metric"]
    if one["class"] == "calibrate" and (
        wrong := Number(False, 0, low_open=metric not in MAY_BE_ZERO).wrong(one.get("value"))
    ):
        raise FileError(f"{place}: value: {wrong}, as the row is to calibrate")
    return FactRow(
        paper=one["paper"],
        table=one["table"],
        key={name: one[name] for name in OF_KEY if name in one},
        use=one["class"],
        metrics=(metric,),
        fields={**one, metric: one.get("value")},
        source=path,
    )


def is_remeasured(row: FactRow) -> bool:
    """Whether the row names its own platform, and so its own setting."""
    return "platform" in row.fields


def scenario_of(row: FactRow, base: Scenario) -> tuple[Scenario, System] | str:
    """The row on its platform, or why it is not predicted. base: the scenario of the platform.

    Raises FileError for a knob that the row lacks or that is out of range.
    """
    fields = row.fields
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
        return replace(base, workload=_workload(row, base, name, method), cluster=cluster, method=method), system
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
