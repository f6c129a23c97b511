from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gcnsim.cli import main
from tests.gcnsim.cli.conftest import Refused

COMMAND = ("what-if", "--gpus", "2", "--method", "pipegcn", "--iterations", "3")


def answer(capsys: pytest.CaptureFixture[str], *argv: str) -> dict[str, Any]:
    assert main([*COMMAND, *argv, "--json"]) == 0
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def test_costs_of_an_iteration_an_epoch_and_a_training(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(
        capsys, "--currency", "EUR", "--exchange", "0.5", "--price", "t4=3.6USD/h",
        "--target-accuracy", "90%", "--iterations-needed", "pipegcn=1000",
    )  # fmt: skip
    (row,) = document["results"]
    cost, seconds = row["cost"], row["iteration_s"]
    assert row["usd_per_1000_iterations"] == pytest.approx(2 * seconds)
    assert cost["per_1000_iterations"] == pytest.approx(seconds)
    assert cost["per_iteration"] == cost["per_epoch"] == pytest.approx(seconds / 1000)
    assert (cost["per_hour"], cost["currency"]) == (pytest.approx(3.6), "EUR")
    (target,) = document["target"]["rows"]
    assert (target["usd"], target["cost"]) == (pytest.approx(2 * seconds), pytest.approx(seconds))
    assert document["prices"] == {"pricing": "on-demand", "currency": "EUR", "per_usd": 0.5, "exchange": "as given"}


def test_nothing_is_said_of_prices_that_nobody_chose(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys)
    assert "prices" not in document
    assert document["results"][0]["cost"]["currency"] == "USD"
    assert main([*COMMAND]) == 0
    assert "\n  cost " not in capsys.readouterr().out


def test_the_text_says_cost_and_price(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*COMMAND, "--currency", "EUR", "--exchange", "0.9", "--columns", "cost_per_hour,cost_per_epoch"]) == 0
    text = capsys.readouterr().out
    assert "EUR per" in text
    assert "\n  cost  " in text
    assert "1 USD = 0.9 EUR, as given" in " ".join(text.split())
    assert main([*COMMAND, "--device", "a10g", "--pricing", "spot"]) == 0
    assert "no spot price of a10g is known" in capsys.readouterr().out
    assert main([*COMMAND, "--host", "g4dn.12xlarge", "--pricing", "spot"]) == 0
    assert "no spot price of t4, as g4dn.12xlarge, is known" in " ".join(capsys.readouterr().out.split())


def test_a_whole_instance_is_paid_where_the_host_is_one(capsys: pytest.CaptureFixture[str]) -> None:
    document = answer(capsys, "--host", "g4dn.12xlarge")
    assert document["results"][0]["cost"]["per_hour"] == pytest.approx(3.912)
    assert "g4dn.12xlarge" in document["results"][0]["cost"]["price"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--price", "t4=0.35"), "has no unit"),
        (("--price", "a10g=0.35USD/h"), "--price: no machine of the question has a10g; they have t4"),
        (("--currency", "XYZ"), "--currency: no exchange rate"),
        (("--exchange", "0.9"), "--exchange: 0.9 needs --currency"),
        (("--pricing", "sport"), "did you mean 'spot'"),
        (("--prices", "no-such.yaml"), "no-such.yaml"),
    ],
)
def test_bad_prices_are_one_line(argv: tuple[str, ...], message: str, refused: Refused) -> None:
    assert message in refused(*COMMAND, *argv)


def test_a_file_of_prices_is_never_replaced(tmp_path: Path, refused: Refused) -> None:
    file = tmp_path / "prices.yaml"
    row = {"device": "t4", "instance": "a", "gpus": 1, "price": "1USD/h", "source": "b", "date": "2026"}
    file.write_text(json.dumps([row]), encoding="utf-8")
    assert "is read by this command" in refused(*COMMAND, "--prices", file, "--csv", file)
