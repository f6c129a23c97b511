"""Lists of what there is, and prices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim import hardware, workload
from gcnsim.cli import main
from gcnsim.methods import methods
from tests.gcnsim.cli.conftest import Refused

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


def test_unknown_kind_names_the_nearest(refused: Refused) -> None:
    assert "did you mean 'devices'?" in refused("catalog", "list", "device")


@pytest.mark.parametrize("name", NAMES)
def test_show_prints_every_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert output(capsys, "show", name).startswith(f"{name} (")
    assert data(capsys, "show", name)["name"] == name


def test_show_gives_figure_source_date_and_range(capsys: pytest.CaptureFixture[str]) -> None:
    text = output(capsys, "show", "t4")
    assert "320GB/s" in text
    assert "65% (45% to 95%)" in text
    assert "a law fitted on other GPUs" in text
    assert "0.526 USD/h per GPU" in text
    assert "2019-03" in text
    figure = data(capsys, "show", "t4")["figures"]["memory_bandwidth"]
    assert (figure["value"], figure["source"]) == (320e9, "datasheet")
    assert "none known" in output(capsys, "show", "rtx-4090")
    assert "1024GB/s" in output(capsys, "show", "mi60"), "memory in bytes, also where bits are shorter"


def test_show_cites_dataset_facts(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Table I" in output(capsys, "show", "reddit")
    shown = data(capsys, "show", "reddit")
    assert [row["partitions"] for row in shown["boundary"]] == [2, 3, 4, 8, 16, 32, 64]
    assert {row["source"] for row in shown["boundary"]} == {shown["citations"]["boundary"]}
    (other,) = shown["elsewhere"]
    assert (other["partitions"], other["inner"], other["boundary"]) == (6, 38800.0, 89400.0)
    assert "Table I" in other["source"]
    assert set(shown["citations"]) >= {"nodes", "boundary"}


def test_show_lists_knobs_and_what_is_fixed(capsys: pytest.CaptureFixture[str]) -> None:
    assert "default 0.1" in output(capsys, "show", "psc-gcn")
    assert "rate  " in output(capsys, "show", "bns-gcn")
    assert "fixed at 0%" in output(capsys, "show", "full-graph")
    assert data(capsys, "show", "pipegcn")["fixed"] == {"tau": 1, "epsilon": 1.0, "cache": 0.0, "rate": 1.0}


def test_compare_puts_figures_side_by_side(capsys: pytest.CaptureFixture[str]) -> None:
    lines = output(capsys, "compare", "A100-80", "h100", "rtx-a6000").splitlines()
    assert lines[:3] == [
        "a100-80 (device): NVIDIA A100 SXM 80 GB",
        "h100 (device): NVIDIA H100 SXM",
        "rtx-a6000 (device): NVIDIA RTX A6000",
    ]
    rows = {line.split()[0]: line.split() for line in lines[4:]}
    assert rows["device"] == ["device", "a100-80", "h100", "ratio", "rtx-a6000", "ratio"]
    assert rows["memory_bandwidth"] == ["memory_bandwidth", "2039GB/s", "3350GB/s", "1.64x", "768GB/s", "0.377x"]
    assert rows["nvlink"] == ["nvlink", "300GB/s", "450GB/s", "1.5x", "none"]
    assert rows["nvlink_generation"] == ["nvlink_generation", "3", "4", "none"], "a generation is no amount"
    assert rows["link"] == ["link", "pcie4-x16", "pcie5-x16", "pcie4-x16"]
    assert rows["spmm_efficiency"][2] == rows["spmm_efficiency"][4] == "(assumed)"


def test_compare_has_all_figures_and_ratios_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    document = data(capsys, "compare", "mi60", "h100")
    assert (document["kind"], [entry["name"] for entry in document["entries"]]) == ("device", ["mi60", "h100"])
    assert document["entries"][1]["figures"] == data(capsys, "show", "h100")["figures"]
    assert document["ratios"]["memory"] == [1.0, 2.5]
    assert document["ratios"]["nvlink"] == [None, None], "the first has none"
    assert [entry["link"] for entry in document["entries"]] == ["pcie4-x16", "pcie5-x16"]


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("t4",), "catalog compare: t4 alone is named; allowed: two or more devices"),
        (("t4", "dgx-a100"), "catalog compare: t4 is a device, dgx-a100 a host; allowed: all of one kind"),
        (("t4", "reddit"), "catalog compare: reddit is a dataset; allowed: devices, links or hosts"),
        (("t4", "rxt-4090"), "catalog: unknown name 'rxt-4090'; did you mean 'rtx-4090'"),
        (("t4", "none.yaml"), "none.yaml: cannot be read"),
    ],
)
def test_what_cannot_be_compared_is_one_line(names: tuple[str, ...], message: str, refused: Refused) -> None:
    assert refused("catalog", "compare", *names).startswith(f"gcnsim: {message}")


COMMAND = ("what-if", "--gpus", "2", "--method", "pipegcn", "--iterations", "3")


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main([*COMMAND, *argv, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_costs_of_an_iteration_an_epoch_and_a_training(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(
        capsys, "--price", "t4=3.6USD/h",
        "--target-accuracy", "90%", "--iterations-needed", "pipegcn=1000",
    )  # fmt: skip
    (row,) = document["results"]
    cost, seconds = row["cost"], row["iteration_s"]
    assert cost["per_1000_iterations"] == pytest.approx(2 * seconds)
    assert cost["per_iteration"] == cost["per_epoch"] == pytest.approx(2 * seconds / 1000)
    assert (cost["per_hour"], cost["currency"]) == (pytest.approx(7.2), "USD")
    (target,) = document["target"]["rows"]
    assert target["cost"] == pytest.approx(2 * seconds)
    assert document["prices"] == {"pricing": "on-demand", "currency": "USD"}


def test_nothing_is_said_of_prices_that_nobody_chose(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys)
    assert "prices" not in document
    assert document["results"][0]["cost"]["currency"] == "USD"
    assert main([*COMMAND]) == 0
    assert "\n  cost: " not in capsys.readouterr().out


def test_the_text_says_cost_and_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--pricing", "on-demand", "--columns", "cost_per_hour,cost_per_epoch"]) == 0
    text = capsys.readouterr().out
    assert "USD per" in text
    assert "\n  cost: " in text
    assert main([*COMMAND, "--device", "a10g", "--pricing", "spot"]) == 0
    assert "no spot price of a10g, as g5.12xlarge, is known" in " ".join(capsys.readouterr().out.split())
    assert main([*COMMAND, "--host", "g4dn.12xlarge", "--pricing", "spot"]) == 0
    assert "no spot price of t4, as g4dn.12xlarge, is known" in " ".join(capsys.readouterr().out.split())


def test_a_whole_instance_is_paid_where_the_host_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys, "--host", "g4dn.12xlarge")
    assert document["results"][0]["cost"]["per_hour"] == pytest.approx(3.912)
    assert "g4dn.12xlarge" in document["results"][0]["cost"]["price"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--price", "a10g=0.35USD/h"), "--price: no machine of the question has a10g; they have t4"),
        (("--pricing", "sport"), "did you mean 'spot'"),
    ],
)
def test_bad_prices_are_one_line(argv: tuple[str, ...], message: str, refused: Refused) -> None:
    assert message in refused(*COMMAND, *argv)


def test_a_file_of_prices_is_never_replaced(tmp_path: Path, refused: Refused) -> None:
    file = tmp_path / "prices.yaml"
    row = {"device": "t4", "instance": "a", "gpus": 1, "price": "1USD/h", "source": "b", "date": "2026"}
    file.write_text(json.dumps([row]), encoding="utf-8")
    assert "is read by this command" in refused(*COMMAND, "--prices", file, "--csv", file)
