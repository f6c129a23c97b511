"""The command that the simulator writes for a setting trains that setting."""

from __future__ import annotations

import shlex
from typing import Any

import pytest

from gcnsim.methods import create_method, every_method
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.scenario.train_command import train_command
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
        {"workload": {"dataset": None, "nodes": 1000, "edges": 5000}},
    ],
)
def test_what_cannot_be_trained_has_no_command(sections: dict[str, Any]) -> None:
    assert train_command(scenario_of(**sections)) is None
