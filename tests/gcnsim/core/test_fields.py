"""Rules of fields, names that users may write, and errors that suggest the nearest one."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from pathlib import Path

import pytest

from gcnsim.core import units
from gcnsim.core.errors import LONGEST, FileError, GcnsimError, GraphError, ScenarioError, UnitError
from gcnsim.core.fields import Choice, Flag, Number, QuantityRange, check_fields, entry, shown
from gcnsim.core.spellings import known_name, meant_names
from gcnsim.core.units import FRACTION
from gcnsim.hardware import devices, hosts, known_device
from gcnsim.methods import methods
from gcnsim.scenario import from_mapping
from gcnsim.workload import datasets
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


@pytest.mark.parametrize(
    ("typed", "known"),
    [("H100", "h100"), ("RTX4090", "rtx-4090"), ("rtx 4090", "rtx-4090"), ("RTX_2080_Ti", "rtx-2080-ti"), ("t4", "t4")],
)
def test_case_hyphens_underscores_and_spaces_make_no_other_name(typed: str, known: str) -> None:
    assert known_name(typed, devices()) == known


def test_a_name_of_two_is_of_neither() -> None:
    assert known_name("A-B", ["ab", "a-b"]) is None
    assert known_name("a-b", ["ab", "a-b"]) == "a-b"
    assert known_name("cagnet-15d", methods()) is None, "a dot is no hyphen"


@pytest.mark.parametrize(
    ("typed", "known"),
    [
        ("Tesla T4", "t4"),
        ("H100 80GB", "h100"),
        ("Tesla P100", "p100"),
        ("NVIDIA H100 80GB HBM3", "h100"),
        ("A100-SXM4-80GB", "a100-80"),
        ("a100-pcie-40gb", "a100-pcie-40"),
    ],
)
def test_a_device_may_be_named_as_its_driver_does(typed: str, known: str) -> None:
    assert known_device(typed) == known


@pytest.mark.parametrize("typed", ["A100 80GB", "Tesla V100 32GB", "v100-16gb", "NVIDIA A100 40 GB"])
def test_a_memory_that_two_boards_have_names_neither(typed: str) -> None:
    assert known_device(typed) is None


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("A100", ["a100-40", "a100-80", "a100-pcie-40", "a100-pcie-80"]),
        ("A100 80GB", ["a100-80", "a100-pcie-80"]),
        ("GeForce 4090", ["rtx-4090"]),
        ("4090", ["rtx-4090"]),
        ("rxt-4090", ["rtx-4090"]),
        ("rtx-a", ["rtx-a4000", "rtx-a5000", "rtx-a6000"]),
        ("rtx", []),
        ("a100-pcie", ["a100-pcie-40", "a100-pcie-80"]),
        ("rtx-2080", ["rtx-2080-ti"]),
    ],
)
def test_a_family_has_its_members_and_a_slip_its_name(typed: str, meant: list[str]) -> None:
    assert meant_names(typed, devices()) == meant


@pytest.mark.parametrize(
    "typed",
    ["mi325x", "t5", "h30", "h1000", "rtx-4091"],
)
def test_no_other_model_number_is_suggested(typed: str) -> None:
    assert meant_names(typed, devices()) == []


@pytest.mark.parametrize("typed", ["ogbn-mag", "ogbl-collab", "flickr", "ogbn-papers10M"])
def test_no_other_data_set_is_suggested(typed: str) -> None:
    assert meant_names(typed, datasets()) == []


@pytest.mark.parametrize(
    ("typed", "known", "meant"),
    [
        ("redit", datasets(), ["reddit"]),
        ("ogbn-papers", datasets(), ["ogbn-papers100M", "ogbn-papers100M-2hop"]),
        ("products", datasets(), ["ogbn-products"]),
        ("cagnet", methods(), ["cagnet-1.5d", "cagnet-1d"]),
        ("dgx", hosts(), []),
        ("dgx-a", hosts(), ["dgx-a100", "dgx-a100-320"]),
        ("p4d.24xl", hosts(), ["p4d.24xlarge"]),
        ("g5", hosts(), ["g5.12xlarge", "g5.48xlarge", "g5.xlarge"]),
        ("g4dn-12xlarge", hosts(), ["g4dn.12xlarge"]),
        ("bandw", ["bandwidth", "gpus"], ["bandwidth"]),
        ("x", ["y"], []),
    ],
)
def test_what_else_may_be_meant(typed: str, known: list[str], meant: list[str]) -> None:
    assert meant_names(typed, known) == meant


@pytest.mark.parametrize("kind", [UnitError, ScenarioError, FileError, GraphError])
def test_every_user_error_is_caught_at_the_doors(kind: type[Exception]) -> None:
    assert issubclass(kind, GcnsimError)


def test_a_message_is_one_printable_line_whatever_value_it_names() -> None:
    assert str(FileError("x.yaml: key 'a\nb' \x1b[2J \u2028 é is wrong")) == r"x.yaml: key 'a b' \x1b[2J é is wrong"
    assert str(FileError("\udcff.npz: cannot be read")) == r"\udcff.npz: cannot be read"
    assert pickle.loads(pickle.dumps(FileError("a\nb"))).args == ("a b",)  # noqa: S301 - as processes hand it over


def test_a_message_that_is_too_long_loses_its_middle() -> None:
    content = str(FileError(f"x.yaml: {'9' * 5000} is not allowed; 1 or more"))
    assert len(content) < LONGEST + 10
    assert content.startswith("x.yaml: 999")
    assert content.endswith("999 is not allowed; 1 or more")
