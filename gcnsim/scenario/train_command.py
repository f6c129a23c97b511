"""The command that trains a setting for real: `torchrun ... -m runtime.train`, the same on every server."""

from __future__ import annotations

import shlex
from typing import Any, Final

from gcnsim.core.ids import Iteration
from gcnsim.hardware import CORE
from gcnsim.records.compute_facts import written
from gcnsim.scenario.method_section import written_knobs
from gcnsim.scenario.partition import PartitionSpec
from gcnsim.scenario.specs import STAGED, Scenario
from gcnsim.workload import dataset, datasets

GRAPH: Final = "GRAPH"
"""In place of the path of a graph file, which lies elsewhere where it is trained."""

UNTRAINED: Final = {
    "cluster": ("payload", "devices"),
    "workload": (
        *("heads_joined", "keep_inputs", "dense_layers", "training_subgraph"),
        *("features", "classes", "train_fraction", "ids", "ends"),
    ),
    "partition": ("algorithm", "imbalance", "parts"),
}
"""Fields of a scenario that training has no option for."""

OF_MODEL: Final = ("norm", "preaggregate", "dropout")


USUAL_ITERATIONS: Final = 200
"""Iterations where nothing says how many are needed."""


OUT: Final = "run"
"""The folder of a run that writes checkpoints."""


def train_command(
    scenario: Scenario, iterations: Iteration = USUAL_ITERATIONS, checkpoint_every: Iteration | None = None
) -> str | None:
    """The command line; None for what cannot be trained: no graph, a method, fault or field of the simulator alone, or
    a last server with fewer GPUs. A published dataset is read from the folder GCNSIM_DATA. checkpoint_every:
    iterations between checkpoints; None: none."""
    cluster, workload, method = scenario.cluster, scenario.workload, scenario.method
    named = workload.dataset if workload.dataset in datasets() else None
    each = min(cluster.gpus, cluster.gpus_per_server)
    if (named is None and workload.graph is None) or not method.trained or cluster.gpus % each:
        return None
    if scenario.faults:
        return None
    for section, names in UNTRAINED.items():
        spec = getattr(scenario, section)
        if any(getattr(spec, name) != type(spec).__dataclass_fields__[name].default for name in names):
            return None
    source: dict[str, Any] = {"graph": GRAPH} if named is None else {"dataset": named}
    facts = None if named is None else dataset(named)
    usual = {"model": "gcn", "layers": 4, "hidden": 256}
    model = {name: getattr(workload, name) or getattr(facts, name, value) for name, value in usual.items()}
    options = source | {"device": "cpu" if cluster.device == CORE else "cuda", "iterations": iterations} | model
    options |= {name: value for name in OF_MODEL if (value := getattr(workload, name)) is not None}
    if workload.dropout:
        options["dropout_order"] = workload.dropout_order
    if workload.heads != 1:
        options["heads"] = workload.heads
    if cluster.transport is not None:
        options["backend"] = "gloo" if cluster.transport == STAGED else "nccl"
    options |= {name: value for name in ("aggregator", "threads") if (value := getattr(cluster, name)) is not None}
    knobs = {name: value for name, value in written_knobs(method).items() if value is not None}
    for knob in method.knobs():
        if knob.name in method.simulated_only:
            knobs.pop(knob.name, None)
            if method.values()[knob.name] != knob.standard:
                return None
    options |= (
        cut_options(scenario.partition)
        | {"seed": scenario.run.seed, "method": method.name, "overlap": method.overlap}
        | knobs
    )
    if checkpoint_every is not None:
        options |= {"out": OUT, "checkpoint_every": checkpoint_every}
    return f"{_torchrun(cluster.servers, each)} -m runtime.train {shlex.join(written(options))}"


def train_script(
    scenario: Scenario, iterations: Iteration | None = None, checkpoint_every: Iteration | None = None
) -> str | None:
    """The same command as a shell script that says what to edit; None for what cannot be trained."""
    command = train_command(scenario, iterations or USUAL_ITERATIONS, checkpoint_every)
    if command is None:
        return None
    lines = ["#!/bin/sh", "# Trains this setting for real. Before it runs:"]
    if scenario.workload.dataset in datasets():
        lines += ["# - GCNSIM_DATA is the folder of the datasets."]
    else:
        lines += [f"# - Replace {GRAPH} by the path of the graph file."]
    if iterations is None:
        lines += [f"# - Replace the {USUAL_ITERATIONS} of --iterations by how many the training needs."]
    if checkpoint_every is not None:
        lines += [f"# After a failure, replace --out {OUT} by --resume {OUT}: it resumes from the last checkpoint."]
    if scenario.cluster.servers > 1:
        lines += [
            "# Run it on each server, in the same network and with the same files at the same paths:",
            "#   HOST=one-of-the-servers ID=the-same-on-each sh train.sh",
            "# It opens ports: for trusted networks only.",
            *([f"# Checkpoints need --out {OUT} on storage that all servers share."] if checkpoint_every else []),
            ': "${HOST:?is one of the servers}"',
            ': "${ID:?is any text, the same on each server}"',
        ]
    return "\n".join([*lines, command])


def _torchrun(servers: int, each: int) -> str:
    if servers == 1:
        return f"torchrun --standalone --nproc-per-node {each}"
    there = '--rdzv-backend c10d --rdzv-id "$ID" --rdzv-endpoint "$HOST:29500"'
    return f"torchrun --nnodes {servers} --nproc-per-node {each} {there}"


def cut_options(spec: PartitionSpec) -> dict[str, Any]:
    """What cuts the graph, as options of training, where it is not the default."""
    if spec.file is not None:
        return {"partition": spec.file}
    content = {"method": "partition_method", "objective": "objective", "balance": "balance", "seed": "partition_seed"}
    plain = PartitionSpec()
    return {
        option: getattr(spec, name) for name, option in content.items() if getattr(spec, name) != getattr(plain, name)
    }
