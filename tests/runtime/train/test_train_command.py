"""The command that the simulator writes for a setting trains that setting."""

from __future__ import annotations

import shlex
import subprocess
from typing import Any

import pytest

from gcnsim.methods import create_method, every_method
from gcnsim.scenario import SCHEMA, ClusterSpec, Scenario, from_mapping
from gcnsim.scenario.specs import WorkloadSpec
from gcnsim.scenario.train_command import UNTRAINED, train_command, train_script
from runtime.methods import METHODS
from runtime.options import Options
from runtime.train.tasks import tasks_of


def scenario_of(name: str = "psc-gcn", **sections: Any) -> Scenario:
    workload = {"dataset": "reddit"} | sections.pop("workload", {})
    return from_mapping({"schema": SCHEMA, "workload": workload, "method": {"name": name}} | sections, "test")


def trained(scenario: Scenario) -> Options:
    command = train_command(scenario)
    assert command is not None
    words = shlex.split(command)
    tasks = tasks_of(words[words.index("runtime.train") + 1 :])
    assert tasks is not None
    return tasks[0].options


def test_what_the_simulator_says_can_be_trained_is_what_training_has() -> None:
    assert {name for name, kind in every_method().items() if kind.trained} == METHODS.keys()


@pytest.mark.parametrize("method", METHODS)
def test_each_method_is_trained_with_the_knobs_of_its_setting(method: str) -> None:
    cluster = {"gpus": 4, "gpus_per_server": 2}
    found = trained(scenario_of(method, cluster=cluster))
    assert found.method == method
    made = create_method(method)
    setting = {name: value for name, value in made.values().items() if name not in made.simulated_only}
    assert {name: value for name, value in found.knobs.items() if name in setting} == {
        name: value for name, value in setting.items() if name in found.knobs
    }
    assert set(setting) <= set(found.knobs), "training has every knob"


def test_the_model_machine_and_partition_are_those_of_the_setting() -> None:
    found = trained(
        scenario_of(
            workload={"hidden": 64, "dropout": "50%", "norm": "none"},
            cluster={"gpus": 6, "gpus_per_server": 2, "transport": "staged"},
            partition={"objective": "cut", "seed": 3},
            run={"seed": 7},
        )
    )
    # Reddit's published model has four layers of GCN... of which the width is replaced.
    assert (found.dataset, found.device, found.backend) == ("reddit", "cuda", "gloo")
    assert (found.hidden, found.dropout, found.norm) == (64, 0.5, "none")
    assert (found.objective, found.partition_seed, found.seed) == ("cut", 3, 7)
    assert found.overlap == "none"


def test_servers_and_their_gpus_are_torchruns() -> None:
    several = train_command(scenario_of(cluster={"gpus": 6, "gpus_per_server": 2}))
    assert several is not None
    assert several.startswith("torchrun --nnodes 3 --nproc-per-node 2 --rdzv-backend c10d ")
    one = train_command(scenario_of(cluster={"gpus": 2, "gpus_per_server": 2}))
    assert one is not None
    assert one.startswith("torchrun --standalone --nproc-per-node 2 -m runtime.train ")


@pytest.mark.parametrize(
    "sections",
    [
        {"cluster": {"gpus": 5, "gpus_per_server": 2}},
        {"cluster": {"gpus": 4, "payload": "int8"}},
        {"workload": {"dense_layers": 1}},
        {"method": {"name": "bns-gcn", "rate": 0.1, "sample": "edges"}},
        {"method": {"name": "roc"}},
        {"workload": {"features": 16}},
        {"workload": {"classes": 7}},
        {"workload": {"train_fraction": 0.1}},
        {"workload": {"dataset": None, "graph": "g.txt", "ids": "names"}},
        {"faults": [{"kind": "slow-gpu", "worker": 0}]},
        {"workload": {"dataset": None, "nodes": 1000, "edges": 5000}},
    ],
)
def test_what_cannot_be_trained_has_no_command(sections: dict[str, Any]) -> None:
    assert train_command(scenario_of(**sections)) is None


WRITTEN: dict[str, dict[str, Any]] = {
    "workload": {
        "dataset": "yelp", "graph": "g.npz", "model": "graphsage", "layers": 3, "hidden": 64, "heads": 2,
        "norm": "none", "dropout": 0.5, "dropout_order": "dropout-first", "preaggregate": True,
    },
    "cluster": {
        "gpus": 4, "gpus_per_server": 3, "device": "cpu-core", "transport": "staged", "aggregator": "plain",
        "threads": 2,
    },
}  # fmt: skip
"""Values that change the command."""
WITH: dict[str, dict[str, Any]] = {
    "graph": {"dataset": None}, "heads": {"model": "gat"}, "dropout_order": {"dropout": 0.5},
}  # fmt: skip
"""What such a field needs beside it."""
UNNEEDED = {
    "workload": {"trace", "profile", "nodes", "edges", "cross_fraction", "imbalance"},
    "cluster": {
        *("bandwidth", "latency", "pcie", "link", "host", "shared_cores", "calibration", "platform", "nvlink"),
        *("nvlink_gpus", "gpudirect", "transfers", "pcie_sharing", "gpus_per_switch", "servers_per_rack"),
        *("oversubscription", "host_memory", "allreduce", "sockets", "rate_beside_copies", "sampler_device"),
        *("sampler_threads", "features", "implementation", "figures", "measured_compute"),
    },
}
"""Sources of sizes alone, and what the machine that trains is or decides itself."""


@pytest.mark.parametrize(("section", "spec"), [("workload", WorkloadSpec), ("cluster", ClusterSpec)])
def test_every_field_is_written_refused_or_not_needed(section: str, spec: Any) -> None:
    written, refused, unneeded = set(WRITTEN[section]), set(UNTRAINED[section]), UNNEEDED[section]
    assert set(spec.__dataclass_fields__) == written | refused | unneeded
    assert len(written) + len(refused) + len(unneeded) == len(spec.__dataclass_fields__), "each once"


@pytest.mark.parametrize(("section", "name"), [(section, name) for section in WRITTEN for name in WRITTEN[section]])
def test_a_written_field_changes_the_command(section: str, name: str) -> None:
    beside = WITH.get(name, {})
    cores = {"device": "cpu-core"} if name in ("aggregator", "threads") else {}
    plain = {} if name == "graph" else beside
    gpus = {"gpus": 2} if name == "gpus" else {"gpus": 6}
    sections: dict[str, dict[str, Any]] = {"workload": {}, "cluster": {**gpus, "gpus_per_server": 2, **cores}}
    before = train_command(scenario_of("full-graph", **sections | {section: sections[section] | plain}))
    changed = sections[section] | beside | {name: WRITTEN[section][name]}
    after = train_command(scenario_of("full-graph", **sections | {section: changed}))
    assert None not in (before, after)
    assert before != after


def test_the_script_says_what_to_edit() -> None:
    cluster = {"gpus": 4, "gpus_per_server": 2}
    own: dict[str, Any] = {"workload": {"dataset": None, "graph": "g.npz"}, "cluster": cluster}
    text = train_script(scenario_of(**own), None, 50)
    assert text is not None
    assert "# - Replace GRAPH by the path of the graph file." in text
    assert "# - Replace the 200 of --iterations by how many the training needs." in text
    assert "--resume run" in text
    assert text.endswith("--out run --checkpoint-every 50")
    assert ': "${HOST:?' in text
    assert ': "${ID:?' in text
    one = train_script(scenario_of(cluster={"gpus": 2, "gpus_per_server": 2}), 500)
    assert one is not None
    assert "GCNSIM_DATA" in one
    assert "--iterations 500" in one
    assert not any(word in one for word in ("HOST", "GRAPH", "resume", "checkpoint", "Replace the"))
    shell = subprocess.run(["sh", "-n"], input=text, text=True, check=False)
    assert shell.returncode == 0
