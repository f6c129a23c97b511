"""Fields of a question: declared once, and found again as keywords, options, help and sections of a scenario."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import click
import pytest

import gcnsim
from gcnsim.api.question import settings
from gcnsim.cli.questions import question_options
from gcnsim.core.errors import GcnsimError, ScenarioError
from gcnsim.core.units import FRACTION
from gcnsim.hardware import NETWORK, PriceBook
from gcnsim.planning.capacity_goal import CONFIDENCE, COST
from gcnsim.planning.capacity_settings import LIMIT
from gcnsim.planning.recommend import MAX_STALENESS, MIN_SAMPLING_RATE
from gcnsim.scenario.load import default_at, describe_schema
from gcnsim.scenario.option import option, words
from gcnsim.scenario.question import Question, field_value, given_options, options
from gcnsim.scenario.recommend import Recommend
from gcnsim.scenario.what_if import WhatIf

KINDS = pytest.mark.parametrize("kind", [WhatIf, Recommend])


def keywords_of(kind: type[Question], *arguments: str) -> dict[str, Any]:
    """The keywords that a command line of a question says."""
    found: dict[str, Any] = {}

    @click.command()
    @question_options(kind)
    def command(**values: Any) -> None:
        found.update(given_options(kind, values))

    command.main([*arguments], standalone_mode=False)
    return found


@KINDS
def test_every_path_is_a_field_of_a_scenario_and_its_default_is_the_fields(kind: type[Question]) -> None:
    defaults = {path: default for path, _, _, default, _ in describe_schema()}
    for name, value in options(kind).items():
        if value.path:
            assert (default_at(value.path) or "null") == defaults[value.path], name
        for part in value.parts.values():
            assert not part.path or part.path in defaults


@pytest.mark.parametrize(("function", "kind"), [(gcnsim.what_if, WhatIf), (gcnsim.recommend, Recommend)])
def test_keywords_of_python_are_the_fields_with_their_help(function: Any, kind: type[Question]) -> None:
    assert {*inspect.signature(function).parameters} == {field.name for field in fields(kind)}
    for name, value in options(kind).items():
        assert f"- {name}: {value.line}" in function.__doc__
    with pytest.raises(ScenarioError, match=r"^bandwith: unknown keyword; did you mean 'bandwidth'"):
        function(bandwith="1Gbps")


def test_parts_of_a_field_are_keywords_as_they_are_options() -> None:
    sizes: dict[str, Any] = {"nodes": 2000, "edges": 20000, "features": 8, "classes": 2}
    asked: dict[str, Any] = {"gpus": 2, "method": "full-graph", "iterations": 2, "processes": 1}
    apart = gcnsim.what_if(**(asked | sizes | {"price": "t4=0.5USD/h"}))
    whole = gcnsim.what_if(**asked, sizes=sizes, prices=PriceBook.of(["t4=0.5USD/h"]))
    assert apart.rows == whole.rows
    assert apart.rows[0].cost_per_hour == 1.0
    with pytest.raises(gcnsim.Error, match=r"^features: is a part of sizes, which is given too"):
        gcnsim.what_if(**(asked | {"sizes": sizes, "features": 8}))


def test_defaults_are_those_of_the_layers_that_use_them() -> None:
    assert (Recommend().minimise, Recommend().limit) == (COST, LIMIT)
    assert options(Recommend)["confidence"].default == FRACTION.exact(CONFIDENCE)
    found = options(WhatIf)
    assert found["min_sampling_rate"].default == str(MIN_SAMPLING_RATE)
    assert found["max_staleness"].default == str(MAX_STALENESS)


def test_a_command_line_says_the_same_as_keywords() -> None:
    assert keywords_of(WhatIf) == {"prices": gcnsim.PriceBook.of()}
    found = keywords_of(
        WhatIf, "--gpus", "2, 4", "--bandwidth", "5Gbps,10Gbps", "--cache", "30%", "--nodes", "3M", "--layers", "3",
        "--norms", "n.norms", "--measured", "pipegcn=1s", "--measured", "2s",
        "--iterations-needed", "pipegcn=5,psc-gcn=6", "--iterations-needed", "7",
        "--set", "run.seed=3", "--price", "t4=1USD/h",
    )  # fmt: skip
    assert found.pop("prices") == gcnsim.PriceBook.of(["t4=1USD/h"])
    assert found == {
        "gpus": [2, 4],
        "bandwidth": ["5Gbps", "10Gbps"],
        "cache": ["30%"],
        "sizes": {"nodes": "3M"},
        "layers": 3,
        "norms": "n.norms",
        "measured": ("pipegcn=1s", "2s"),
        "iterations_needed": {"pipegcn": 5, "psc-gcn": 6, "all": 7},
        "overrides": ("run.seed=3",),
    }


def test_one_field_more_is_an_option_a_line_of_help_and_a_value_of_the_scenario() -> None:
    @dataclass(frozen=True, slots=True, kw_only=True)
    class Wider(WhatIf):
        latency: str | None = option("Latency of the network", "cluster.latency", after="host")

    names = [*options(Wider)]
    assert names.index("latency") == names.index("host") + 1
    assert options(Wider)["latency"].line == "Latency of the network."
    found = keywords_of(Wider, "--latency", "20us")
    assert Wider(**found).sections()["cluster"] == {"latency": "20us"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--gpus", "2,x"), "--gpus: 'x' is not a whole number"),
        (("--tau", "1.5"), "--tau: '1.5' is not a whole number of iterations"),
        (("--device", ""), "--device: '' is not a device"),
        (("--method", "pipegcn,"), "--method: '' is not a method"),
        (("--cache", ""), r"--cache: '' is not a share \(30% or 0.3\) or bytes \(2GiB\)"),
        (
            ("--iterations-needed", "pipegcn=x"),
            r"--iterations-needed: 'pipegcn=x' is not \[METHOD=\]N, N a whole number",
        ),
        (("--iterations-needed", "3,4"), r"--iterations-needed: a number for all methods is given twice \(3 and 4\)"),
        (("--iterations-needed", "pipegcn=3,pipegcn=3"), "--iterations-needed: pipegcn is given twice"),
    ],
)
def test_what_cannot_be_read_is_refused_by_the_option(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(ScenarioError, match=message):
        keywords_of(WhatIf, *arguments)


def test_sections_hold_what_was_given_of_a_scenario() -> None:
    what_if = WhatIf(dataset="yelp", payload="int8", norms=Path("n.norms"), seed=0, gpus=4, sizes={"train": "10%"})
    assert what_if.sections() == {
        "cluster": {"payload": "int8"},
        "workload": {"dataset": "yelp", "train_fraction": "10%"},
        "partition": {},
        "method": {"norms": "n.norms"},
        "run": {"seed": 0},
    }
    with pytest.raises(ScenarioError, match="sizes: unknown 'node'; did you mean 'nodes'"):
        WhatIf(sizes={"node": 3}).sections()


def test_values_are_read_by_the_rule_of_their_field_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    original = type(NETWORK).read

    def counted(self: Any, raw: object, path: str) -> Any:
        read.append(raw)
        return original(self, raw, path)

    monkeypatch.setattr(type(NETWORK), "read", counted)
    every = settings(gpus=2, bandwidth=["5Gbps", "10GbE", "ethernet-25g"], method="pipegcn")
    assert [item.cluster.bandwidth for item in every] == [6.25e8, 1.25e9, 3.125e9]
    assert read == ["5Gbps", "10GbE", "ethernet-25g"]
    read.clear()
    assert Recommend(bandwidth=["5Gbps", "10GbE"]).values("bandwidth") == (6.25e8, 1.25e9)
    assert read == ["5Gbps", "10GbE"]


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"bandwidth": "15"}, "--bandwidth: '15' has no unit; write a bandwidth with its unit"),
        ({"gpus": 0}, "--gpus: 0 is not allowed; a whole number of at least 1 and at most 1024"),
        ({"tau": "x"}, "method.tau: 'x' is not a whole number"),
        ({"limit": 0}, "--limit: 0 is not allowed; a whole number of at least 1"),
        ({"target_epoch": "0s"}, "--target-epoch: '0s' is not allowed; a time above 0"),
    ],
)
def test_what_a_recommendation_refuses(question: dict[str, Any], message: str) -> None:
    with pytest.raises(GcnsimError, match=message):
        gcnsim.recommend(**question)


def test_texts_of_a_form_are_keywords_and_keywords_are_options() -> None:
    assert field_value(Recommend, "gpus", "2, 4") == [2, 4]
    assert field_value(Recommend, "hours_per_day", "8") == 8.0
    assert field_value(Recommend, "limit", "5") == 5
    assert field_value(Recommend, "budget", "5USD/h") == "5USD/h"
    with pytest.raises(ScenarioError, match="--hours-per-day: 'x' is not a number"):
        field_value(Recommend, "hours_per_day", "x")
    given = {"gpus": [2, 4], "cache_policy": "degree", "tau": 1}
    assert words(given) == ["--gpus", "2,4", "--cache-policy", "degree", "--tau", "1"]
