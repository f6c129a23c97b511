"""Training nodes in one part: an epoch of a system whose workers train their own is as long as the fullest part's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import GraphError, ScenarioError
from gcnsim.core.streams import stream
from gcnsim.graph import build_csr
from gcnsim.planning.recommend import Rule
from gcnsim.planning.steps import next_steps
from gcnsim.planning.study import Studies
from gcnsim.scenario import Scenario, from_mapping
from gcnsim.simulation.graph_source import GraphSource


@pytest.fixture(scope="module")
def one_sided(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two communities of 100 nodes, 10 edges between them; 80 nodes of the first train."""
    draw = stream(5, "one-sided")
    ends = [draw.integers(low, high, (2, 600)) for low, high in ((0, 100), (100, 200))]
    ends.append(np.stack([draw.integers(0, 100, 10), draw.integers(100, 200, 10)]))
    rows, columns = np.concatenate(ends, axis=1)
    graph, nodes = build_csr(rows, columns, 200, "one-sided"), np.arange(200)
    path = tmp_path_factory.mktemp("graph") / "one_sided.npz"
    masks = {"train_mask": nodes < 80, "val_mask": (nodes >= 80) & (nodes < 90), "test_mask": nodes >= 100}
    np.savez(path, allow_pickle=False, indptr=graph.indptr, indices=graph.indices, labels=nodes % 3, **masks)
    return str(path)


def make_scenario(graph: str, method: str = "distdgl", batch: int | None = 10, **partition: object) -> Scenario:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 2, "gpus_per_server": 1},
        "workload": {"graph": graph, "features": 8, "classes": 3},
        "method": {"name": method} | ({} if batch is None else {"batch": batch}),
        "partition": partition,
        "run": {"iterations": 4},
    }
    return from_mapping(mapping, "test")


@pytest.mark.parametrize(
    ("batch", "makes"),
    [
        (10, "an epoch takes 8 iterations, 4 if they were even"),
        (40, "an epoch takes 2 iterations, 1 if they were even"),
        (100, "its batch holds 80, 40 if they were even"),
    ],
)
def test_what_training_nodes_in_one_part_make_of_an_epoch_is_said(one_sided: str, batch: int, makes: str) -> None:
    scenario = make_scenario(one_sided, batch=batch)
    (line,) = (warning for warning in GraphSource(one_sided).warnings([scenario]) if "training" in warning)
    fullest = line.split("worker ")[1][0]
    assert line == (
        f"distdgl, batch {batch}: worker {fullest} has all 80 training nodes: {makes}; "
        "partition.balance: training-nodes evens them out"
    )


def test_where_they_are_even_or_dealt_to_all_nothing_is_said(one_sided: str) -> None:
    for scenario in (
        make_scenario(one_sided, balance="training-nodes"),
        make_scenario(one_sided, "graphsage"),
        make_scenario(one_sided, "full-graph", None),
        make_scenario(one_sided, "pagraph"),
    ):
        assert not [line for line in GraphSource(one_sided).warnings([scenario]) if "training" in line]


def test_of_a_partition_that_somebody_made_no_option_of_ours_is_named(one_sided: str, tmp_path: Path) -> None:
    np.save(tmp_path / "owner.npy", np.arange(200) // 100)
    scenario = make_scenario(one_sided, file=str(tmp_path / "owner.npy"))
    line = "distdgl, batch 10: worker 0 has all 80 training nodes: an epoch takes 8 iterations, 4 if they were even"
    assert line in GraphSource(one_sided).warnings([scenario])


def test_even_training_nodes_are_a_step_whose_gain_is_of_an_epoch(one_sided: str) -> None:
    base = make_scenario(one_sided)
    studies = Studies(base)
    steps, _ = next_steps(studies, base, Rule(("distdgl",), named=True))
    (step,) = (item for item in steps if item.knob == "training nodes")
    assert (step.start, step.end) == ("metis-vol", "metis-vol-by-training-nodes")
    even = replace(base, partition=replace(base.partition, balance="training-nodes"))
    now, then = studies.result(base), studies.result(even)
    assert (now.per_epoch, then.per_epoch) == (8, 5)  # METIS leaves 3 % of imbalance: 41 of the 80 nodes
    assert step.epoch_s is not None
    assert step.epoch_s == pytest.approx(then.per_epoch * then.metrics.iteration_s)
    assert step.gain == pytest.approx(1.0 - step.epoch_s / (8 * now.metrics.iteration_s))
    assert step.gain > 0.2
    assert step.payload()["epoch_s"] == step.epoch_s


def test_a_step_to_more_gpus_is_judged_by_the_epoch(one_sided: str) -> None:
    base = make_scenario(one_sided, "graphsage", 10)
    studies = Studies(base)
    steps, idle = next_steps(studies, base, Rule(("graphsage",), named=True))
    (step,) = (item for item in steps if item.knob == "gpus")
    assert "gpus" not in {no_effect.knob for no_effect in idle}
    assert step.epoch_s is not None
    assert step.gain == pytest.approx(1.0 - step.epoch_s / (4 * studies.result(base).metrics.iteration_s))


def test_without_a_split_a_full_graph_has_no_training_nodes_to_balance(tmp_path: Path) -> None:
    (tmp_path / "ring.txt").write_text("".join(f"{node} {(node + 1) % 60}\n" for node in range(60)))
    ring = str(tmp_path / "ring.txt")
    with pytest.raises(GraphError, match="ring does not say who trains"):
        GraphSource(ring).partition(make_scenario(ring, "full-graph", None, balance="training-nodes"))
    # Mini-batches without a split train an assumed share of the nodes: these are balanced.
    source, scenario = GraphSource(ring), make_scenario(ring, balance="training-nodes")
    shares = source.training_shares(scenario)
    assert shares is not None
    assert shares.most - (shares.total - shares.most) <= 3


def test_a_balance_beside_a_file_is_refused(one_sided: str) -> None:
    with pytest.raises(ScenarioError, match=r"partition.balance: only valid with METIS, not with partition.file a.npy"):
        make_scenario(one_sided, file="a.npy", balance="training-nodes")
