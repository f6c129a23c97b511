"""GAT in studies: where it is modelled, and in one line where it is not."""

from __future__ import annotations

import pytest

from gcnsim.errors import ScenarioError
from gcnsim.methods import named
from gcnsim.scenario import from_mapping
from gcnsim.simulation import study


def asked(name: str, *, device: str = "t4", overlap: str = "none", **workload: object) -> float:
    mapping = {
        "schema": "gcnsim.scenario/1",
        "cluster": {"gpus": 4, "device": device},
        "workload": {"dataset": "yelp", "model": "gat", "layers": 2, "hidden": 64, **workload},
        "method": {"name": name, "overlap": overlap},
        "run": {"iterations": 3},
    }
    return study(from_mapping(mapping, "test")).metrics.iteration_s


@pytest.mark.parametrize("name", named(lambda kind: kind.attends))
def test_partition_parallel_methods_train_it(name: str) -> None:
    assert asked(name) > 0


def test_heads_cost_time() -> None:
    assert asked("full-graph", heads=1) < asked("full-graph", heads=8)


@pytest.mark.parametrize("name", ["cagnet-1d", "roc", "sancus"])
def test_others_refuse_it(name: str) -> None:
    with pytest.raises(ScenarioError, match=f"workload.model: gat is not modelled with {name}; allowed: full-graph"):
        asked(name)


def test_it_is_for_gpus_and_overlaps_nothing() -> None:
    with pytest.raises(ScenarioError, match=r"gat is modelled for GPUs only; cluster.device is cpu-core"):
        asked("full-graph", device="cpu-core")
    with pytest.raises(ScenarioError, match=r"method.overlap: central is not allowed with gat"):
        asked("full-graph", overlap="central")
    with pytest.raises(ScenarioError, match=r"workload.heads: 4 is not allowed; only gat has heads"):
        asked("full-graph", model="gcn", heads=4)
    with pytest.raises(ScenarioError, match=r"workload.heads: 8 is not allowed; only gat has heads, not gcn"):
        asked("full-graph", model=None, heads=8)
