"""Filters on the points of a sweep: by fields that vary and by columns of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.planning.sweep_ranges import Axis
from gcnsim.planning.sweep_table import read_filters

AXES = (Axis("cluster.bandwidth", ("5Gbps", "25Gbps")), Axis("method.name", ("a",)), Axis("method.tau", (0, 1)))
POINT: dict[str, Any] = {
    "cluster.bandwidth": "10Gbps",
    "method.name": "psc-gcn",
    "method.tau": 1,
    "iteration_s": 0.2,
    "fits": True,
    "cost_per_epoch": None,
    "bottleneck": "compute",
}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("cluster.bandwidth >= 1.25GB/s", True),
        ("cluster.bandwidth < 10Gbps", False),
        ("method.name in psc-gcn,pipegcn", True),
        ("method.name == pipegcn", False),
        ("method.tau == 0 if cluster.bandwidth > 10Gbps", True),
        ("method.tau == 0 if cluster.bandwidth <= 10Gbps", False),
        ("iteration_s < 0.25", True),
        ("iteration_s<0.2", False),
        ("fits == true", True),
        ("bottleneck != compute", False),
        ("bottleneck in compute,nic0", True),
        ("cost_per_epoch < 1", False),
    ],
)
def test_a_filter_keeps_what_it_says(text: str, kept: bool) -> None:
    assert read_filters([text], AXES)(POINT) is kept


def test_a_point_without_a_field_keeps_a_condition_on_it() -> None:
    assert read_filters(["method.tau < 1"], AXES)(POINT | {"method.tau": None})


def test_all_filters_must_be_kept() -> None:
    assert read_filters([], AXES)(POINT)
    assert not read_filters(["iteration_s < 1", "method.tau == 0"], AXES)(POINT)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("iteration_s", "--where: 'iteration_s' is not a comparison"),
        ("iteration < 3", "--where: unknown column 'iteration'; did you mean 'iteration_s'?"),
        ("method.cache == 1", "--where: unknown column 'method.cache'"),
        ("cluster.bandwidth < 3", "--where: "),
        ("method.tau < run.seed", "--where: run.seed does not vary"),
        ("bottleneck < compute", "--where: bottleneck: 'compute' has no order"),
        ("iteration_s < .nan", "--where: iteration_s: '.nan' is not allowed"),
        ("iteration_s < [1]", "--where: iteration_s: '[1]' is not allowed"),
    ],
)
def test_what_is_no_filter_is_a_line(text: str, message: str) -> None:
    with pytest.raises(ScenarioError) as error:
        read_filters([text], AXES)
    assert message in str(error.value)
    assert "\n" not in str(error.value)
