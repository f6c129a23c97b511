from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from gcnsim.core import units
from gcnsim.core.errors import ScenarioError, UnitError
from gcnsim.core.fields import Choice, Flag, Number, QuantityRange, check_fields, entry, shown
from gcnsim.core.units import FRACTION
from gcnsim.scenario import from_mapping
from gcnsim.workload.caching import CacheSize, parse_cache


def test_cache_sizes() -> None:
    assert parse_cache("30%") == CacheSize(fraction=0.3)
    assert parse_cache("2GiB") == CacheSize(nbytes=2**31)
    assert parse_cache("0%") == parse_cache("0B") == parse_cache("0") == CacheSize.none()
    assert parse_cache("0.3") == parse_cache(0.3) == parse_cache("30 percent") == CacheSize(fraction=0.3)
    assert parse_cache("2gb") == CacheSize(nbytes=2e9)


@pytest.mark.parametrize(("raw", "message"), [("30", "30% or 0.3"), (5, "5% or 0.05"), ("1", "1% or 100%")])
def test_a_bare_number_that_may_be_a_percentage_or_a_share_is_refused_with_both(raw: object, message: str) -> None:
    with pytest.raises(UnitError, match=f"cache: .*{message}"):
        parse_cache(raw)
    with pytest.raises(UnitError, match=message):
        FRACTION.parse(raw)


@pytest.mark.parametrize("raw", [30, "30", "150", None, ["30%"], "-1%"])
def test_a_cache_size_needs_its_unit(raw: object) -> None:
    with pytest.raises(UnitError, match="30%"):
        parse_cache(raw)


def test_a_scenarios_cache_says_what_pagraph_has_besides() -> None:
    mapping = {"schema": "gcnsim.scenario/1", "method": {"name": "pagraph", "cache": "1000%"}}
    with pytest.raises(ScenarioError, match="auto, 0% to 100% of the rows of the worker's part, or bytes"):
        from_mapping(mapping, "test")


def test_a_cache_cannot_exceed_the_boundary() -> None:
    assert parse_cache("100%") == CacheSize(fraction=1.0)
    with pytest.raises(ScenarioError, match="'101%' is not allowed; 0% to 100%"):
        parse_cache("101%")


def test_numbers() -> None:
    rule = Number(whole=False, low=0, high=1, low_open=True)
    assert rule.read(1, "p") == 1.0
    assert rule.allowed == "a number above 0 and at most 1"
    for raw in (0, 1.1, float("nan"), float("inf"), "0.5", True, None):
        with pytest.raises(ScenarioError, match=r"^p: "):
            rule.read(raw, "p")
    with pytest.raises(ScenarioError, match="whole number of at least 1"):
        Number(whole=True, low=1).read(1.0, "p")


def test_yes_or_no_is_a_truth_value_and_nothing_else() -> None:
    rule = Flag()
    assert (rule.read(True, "p"), rule.read(False, "p")) == (True, False)
    assert (rule.write(True), rule.allowed, rule.unit) == (True, "true or false", "")
    for raw in (0, 1, "true", None, [True]):
        with pytest.raises(ScenarioError, match=r"^p: (.* is|is empty,) not true or false$"):
            rule.read(raw, "p")


def test_measures_round_trip_and_keep_their_range() -> None:
    rule = QuantityRange(units.SECONDS, 0.0, 60.0)
    assert rule.write(rule.read("20us", "p")) == "20us"
    assert rule.read("0s", "p") == 0.0
    with pytest.raises(ScenarioError, match=r"p: 61s is not allowed; a time of at least 0s and at most 60s"):
        rule.read("61s", "p")
    with pytest.raises(ScenarioError, match=r"p: nan is not allowed"):
        rule.check(float("nan"), "p")
    with pytest.raises(UnitError, match=r"^p: 20 has no unit"):
        rule.read(20, "p")


def test_words_name_the_nearest() -> None:
    rule = Choice("a device", lambda: ("t4", "cpu-core"))
    assert rule.read("t4", "p") == "t4"
    with pytest.raises(ScenarioError, match="p: unknown device 'cpu'; did you mean 'cpu-core'"):
        rule.read("cpu", "p")
    with pytest.raises(ScenarioError, match="p: is empty, not a file name"):
        Choice("a file name").read(None, "p")


def test_a_file_named_without_its_suffix_is_pointed_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "h10.yaml").touch()
    with pytest.raises(ScenarioError, match=r"unknown device 'h10'; the file h10\.yaml is given as h10\.yaml"):
        Choice("a device", lambda: ("t4", "h100"), own=lambda name: name.endswith(".yaml")).read("h10", "p")
    with pytest.raises(ScenarioError, match="unknown dataset 'h10'; known: h100, t4"):
        Choice("a dataset", lambda: ("t4", "h100")).read("h10", "p")


def test_shown_is_short_and_never_walks_into_a_structure() -> None:
    loop: list[object] = []
    loop.append(loop)
    assert shown(loop) == "a list"
    assert shown({}) == "a mapping"
    assert len(shown("x" * 1000)) < 80


@dataclass
class Spec:
    """Of which a file can set all but `made`."""

    share: float = entry(Number(whole=False, low=0, high=1), "a share", 0.5)
    limit: int | None = entry(Number(whole=True, low=1), "a limit; none", None, optional=True)
    made: int = -7


def test_every_field_with_a_rule_is_held_to_it() -> None:
    check_fields(Spec(), "part")
    check_fields(Spec(share=1.0, limit=1, made=-8), "part")
    with pytest.raises(ScenarioError, match=r"^part\.share: 2 is not allowed"):
        check_fields(Spec(share=2.0), "part")
    with pytest.raises(ScenarioError, match=r"^part\.limit: 0 is not allowed"):
        check_fields(Spec(limit=0), "part")
