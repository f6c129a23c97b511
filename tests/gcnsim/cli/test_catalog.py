from __future__ import annotations

import json
from typing import Any

import pytest

from gcnsim import hardware, workload
from gcnsim.cli import main
from gcnsim.methods import methods

NAMES = [*hardware.devices(), *hardware.links(), *hardware.hosts(), *workload.datasets(), *methods()]


def output(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert main(["catalog", *argv]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def data(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(output(capsys, *argv, "--json"))
    assert loaded["schema"] == "gcnsim.catalog/1"
    return loaded


def test_list_has_every_name(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "list")
    assert all(f"  {name} " in text for name in NAMES)
    listed = data(capsys, "list")
    kinds = ("devices", "links", "hosts", "datasets", "methods")
    assert [row["name"] for kind in kinds for row in listed[kind]] == NAMES
    assert all(row["title"] for kind in kinds for row in listed[kind])


def test_list_of_one_kind(capsys: pytest.CaptureFixture[str]) -> None:
    assert "reddit" not in output(capsys, "list", "devices")
    assert {row["device"] for row in data(capsys, "list", "prices")["prices"]} >= {"t4", "h100"}


def test_unknown_kind_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "list", "device"]) == 2
    assert "did you mean 'devices'?" in capsys.readouterr().err


def test_names_are_unique_across_kinds() -> None:
    assert len(NAMES) == len(set(NAMES))


@pytest.mark.parametrize("name", NAMES)
def test_show_prints_every_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "show", name).startswith(f"{name} (")
    assert data(capsys, "show", name)["name"] == name


def test_show_gives_figure_source_date_and_range(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "show", "t4")
    assert "320GB/s" in text
    assert "60% (40% to 80%)" in text
    assert "0.526 USD/h per GPU" in text
    assert "2019-03" in text
    figure = data(capsys, "show", "t4")["figures"]["memory_bandwidth"]
    assert (figure["value"], figure["source"]) == (320e9, "datasheet")
    assert "none known" in output(capsys, "show", "rtx-4090")
    assert "1024GB/s" in output(capsys, "show", "mi60"), "memory in bytes, also where bits are shorter"


def test_show_cites_dataset_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Table I" in output(capsys, "show", "reddit")
    shown = data(capsys, "show", "reddit")
    assert shown["boundary"][0] == {"partitions": 4, "inner": 58200.0, "boundary": 94900.0}
    assert set(shown["citations"]) >= {"nodes", "boundary"}


def test_show_lists_knobs_and_what_is_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "default 0.1" in output(capsys, "show", "psc-gcn")
    assert "rate  " in output(capsys, "show", "bns-gcn")
    assert "fixed at 0%" in output(capsys, "show", "full-graph")
    assert data(capsys, "show", "pipegcn")["fixed"] == {"tau": 1, "epsilon": 1.0, "cache": 0.0, "rate": 1.0}
