"""The values of an axis."""

from __future__ import annotations

from typing import Any

import pytest

from gcnsim.core.errors import GcnsimError
from gcnsim.planning.sweep_ranges import Between, read_axis


@pytest.mark.parametrize(
    ("path", "written", "values"),
    [
        ("cluster.bandwidth", "5Gbps,10Gbps", ("5Gbps", "10Gbps")),
        ("cluster.bandwidth", "linear(1Gbps,100Gbps,4)", ("1Gbps", "34Gbps", "67Gbps", "100Gbps")),
        ("cluster.bandwidth", "log(1Gbps, 0.1Tbps, 3)", ("1Gbps", "10Gbps", "100Gbps")),
        ("cluster.bandwidth", "log(1Gbps,4Gbps,2), 25Gbps", ("1Gbps", "4Gbps", "25Gbps")),
        ("method.tau", "0..4", (0, 1, 2, 3, 4)),
        ("method.tau", "0..9/3", (0, 3, 6, 9)),
        ("method.tau", [1, "3..4"], (1, 3, 4)),
        ("cluster.gpus", "linear(2,8,3)", (2, 5, 8)),
        ("cluster.gpus", "log(1,4,9)", (1, 2, 3, 4)),
        ("method.epsilon", "log(0.01,1,3)", (0.01, 0.1, 1.0)),
        ("method.cache", "0%,30%", ("0%", "30%")),
        ("method.cache", "linear(0%,50%,3)", ("0%", "25%", "50%")),
        ("cluster.gpudirect", "true,false", (True, False)),
        ("cluster.nvlink", "null,300GB/s", (None, "300GB/s")),
        ("method.fanout", "25,10", ("25,10",)),
        ("method.fanout", ["25,10", "10,5"], ("25,10", "10,5")),
        ("method.tau", "2,2,1", (2, 1)),
        ("run.seed", 3, (3,)),
    ],
)
def test_what_is_written_of_an_axis_are_its_values(path: str, written: Any, values: tuple[Any, ...]) -> None:
    found = read_axis(path, written, "--axis ").values
    assert found == values
    assert [type(item) for item in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    ("path", "written", "says"),
    [
        ("cluster.bandwith", "1Gbps", "cluster.bandwith: unknown field; did you mean 'cluster.bandwidth'?"),
        ("tau", "1", "tau: unknown field; did you mean 'method.tau'? a field is SECTION.NAME, e.g. cluster.gpus"),
        ("seed", "1", "seed: unknown field; did you mean 'partition.seed' or 'run.seed'? "),
        ("price", "1", "price: unknown field; a field is SECTION.NAME, e.g. cluster.gpus; sections: "),
        ("name", "a,b", "name: unknown field; did you mean 'method.name'? "),
        ("method.tau", "4..0", "method.tau: 4..0 is an empty range"),
        ("method.tau", "0..4/0", "is an empty range"),
        ("method.tau", "0..99999999", "has more than 1,000,000 values"),
        ("method.tau", "1.5", "method.tau: 1.5 is not a whole number of at least 0"),
        ("method.tau", [], "method.tau: an empty list of values"),
        ("method.tau", "1,,2", "has an empty value"),
        ("method.tau", {"a": 1}, "a mapping is not a list of values"),
        ("method.epsilon", "log(0,1,3)", "a logarithmic range starts above 0"),
        ("method.epsilon", "linear(1,0.5,3)", "an empty range"),
        ("method.epsilon", "linear(0.1,0.5,0)", "'0' is not a count"),
        ("method.epsilon", f"linear(0.1,0.5,{'9' * 5000})", "is not a count"),
        ("method.tau", f"0..{'9' * 5000}", "has a number of more than 18 digits"),
        ("method.epsilon", "linear(0.1,0.5,1)", "one value cannot be both ends"),
        ("method.epsilon", "cubic(0.1,0.5,3)", "unknown range 'cubic'"),
        ("method.epsilon", "linear(0.1)", "a range has two ends and a count"),
        ("method.epsilon", "linear(a,1,3)", "'a' is not a number"),
        ("method.epsilon", "linear(0.1,1", "a parenthesis is not closed"),
        ("method.epsilon", "linear(0.1,1),0.5", "mixes a range without a count with other values"),
        ("method.epsilon", "0.5,2", "method.epsilon: 2 is not allowed"),
        ("cluster.bandwidth", "linear(1,100,3)", " has no unit"),
        ("cluster.bandwidth", "10", "cluster.bandwidth: 10 has no unit"),
        ("cluster.device", "t4,rxt-4090", "cluster.device: unknown device 'rxt-4090'; did you mean 'rtx-4090'?"),
        ("cluster.device", "linear(1,2,2)", "only a number or a quantity has a range"),
        ("method.name", "psc-gnc", "method.name: unknown method 'psc-gnc'; did you mean 'psc-gcn'?"),
    ],
)
def test_what_is_no_axis_is_refused_in_a_line(path: str, written: Any, says: str) -> None:
    with pytest.raises(GcnsimError) as caught:
        read_axis(path, written, "--axis ")
    line = str(caught.value)
    assert line.startswith(f"--axis {path}: ")
    assert says in line
    assert "\n" not in line


def test_a_range_without_a_count_is_drawn_from() -> None:
    axis = read_axis("cluster.bandwidth", "log(1Gbps,100Gbps)", "")
    assert [axis.at(share) for share in (0.0, 0.5, 1.0)] == ["1Gbps", "10Gbps", "100Gbps"]
    listed = read_axis("method.tau", "0..3", "")
    assert [listed.at(share) for share in (0.0, 0.24, 0.25, 0.999)] == [0, 0, 1, 3]


def test_every_whole_number_of_a_range_has_an_equal_share() -> None:
    drawn = [Between("linear", 2.0, 4.0, whole=True, unit="").at(index / 900) for index in range(900)]
    assert [drawn.count(number) for number in (2, 3, 4)] == [300, 300, 300]
