"""Where nobody said how rows pass between GPUs, a share of the draws has the other path."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from gcnsim.scenario import Scenario, from_mapping
from gcnsim.scenario.between_gpus import NVLINK_THERE, TRANSPORT
from gcnsim.simulation.assumed import DRAWS, other_paths, path_by_draw
from gcnsim.simulation.open_assumptions import DrawnRuns, estimated_s
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.propagation import best_lower_s, factors
from gcnsim.simulation.source import RangeEnd


def scenario(method: str = "pipegcn", **cluster: object) -> Scenario:
    given = {"gpus": 4, "gpus_per_server": 2, "bandwidth": "10Gbps"} | cluster
    requested = {"schema": "gcnsim.scenario/1", "cluster": given, "method": {"name": method}, "run": {"iterations": 4}}
    return from_mapping(requested, "test")


@pytest.mark.parametrize(
    ("cluster", "names"),
    [
        ({}, [TRANSPORT]),
        ({"device": "a100-40"}, [TRANSPORT, NVLINK_THERE]),
        ({"device": "a100-40", "host": "p4d.24xlarge"}, [TRANSPORT]),
        ({"device": "a100-40", "transport": "direct"}, [NVLINK_THERE]),
        ({"device": "a100-40", "transport": "staged"}, []),
        ({"device": "a100-40", "transport": "direct", "nvlink": "none"}, []),
        ({"device": "cpu-core"}, []),
        ({"implementation": "released"}, []),
    ],
)
def test_what_nobody_said_may_be_otherwise(cluster: dict[str, Any], names: list[str]) -> None:
    assert [path.name for path in other_paths(scenario(**cluster))] == names


def test_a_method_that_sends_nothing_over_them_has_no_other_path() -> None:
    assert other_paths(scenario("roc")) == ()


@pytest.mark.parametrize("seed", [0, 7])
def test_a_quarter_of_the_draws_has_each_other_path(seed: int) -> None:
    paths = other_paths(scenario(device="a100-40"))
    found = path_by_draw(paths, seed)
    assert np.count_nonzero(found == 0) == DRAWS // 4
    assert 0 < np.count_nonzero(found == 1) <= DRAWS // 4, "staged rows pass no NVLink"
    assert found.tolist() == path_by_draw(paths, seed).tolist()


def test_draws_of_the_other_path_are_estimated_with_it_and_all_others_as_before() -> None:
    base = scenario(device="a100-40", gpus=4, gpus_per_server=4, nvlink="300GB/s")
    accesses = open_source(base)
    found = factors(base, accesses, 0)
    direct, staged = (
        factors(replace(base, cluster=replace(base.cluster, transport=text)), accesses, 0)
        for text in ("direct", "staged")
    )
    chosen = path_by_draw(other_paths(base), 0)
    assert found.joint[chosen < 0] == pytest.approx(direct.joint[chosen < 0], rel=1e-12)
    at = staged.nominal_s / direct.nominal_s * staged.joint
    assert found.joint[chosen == 0] == pytest.approx(at[chosen == 0], rel=1e-12)
    assert found.alone[TRANSPORT] == pytest.approx((staged.nominal_s / direct.nominal_s, 1.0))


@pytest.mark.parametrize("method", ["full-graph", "bns-gcn"])
def test_simulated_draws_have_the_path_of_the_draw(method: str) -> None:
    base = scenario(method, device="a100-40", gpus=4, gpus_per_server=4, host="p4d.24xlarge")
    accesses = open_source(base)
    runs = DrawnRuns.of(base, accesses, 0)
    chosen = path_by_draw(other_paths(base), 0)
    by_transport = {
        text: DrawnRuns.of(replace(base, cluster=replace(base.cluster, transport=text)), accesses, 0)
        for text in ("direct", "staged")
    }
    for draw in (int(np.argmax(chosen == 0)), int(np.argmax(chosen < 0)), DRAWS):
        transport = "staged" if draw < DRAWS and chosen[draw] == 0 else "direct"
        assert runs.pace(draw) == by_transport[transport].pace(draw)


def test_no_path_that_may_be_there_is_below_the_bound() -> None:
    base = scenario("full-graph", device="h100", gpus=4, gpus_per_server=4)
    accesses = open_source(base)
    lower = best_lower_s(base, accesses, RangeEnd.LIKELY)
    for item in (base, *(path.scenario for path in other_paths(base))):
        assert lower <= estimated_s(item, accesses)
