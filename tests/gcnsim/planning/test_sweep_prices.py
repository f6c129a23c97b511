"""Prices of a sweep: those of what-if, part of the question, written out in its folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import gcnsim
from gcnsim.api import PriceBook
from gcnsim.core.errors import GcnsimError
from gcnsim.planning.sweep_question import read_question
from gcnsim.planning.sweep_run import plan

COSTS = ("usd_per_1000_iterations", "currency", "cost_per_hour", "cost_per_iteration", "cost_per_1000_iterations")
AXES = {"cluster.bandwidth": "5Gbps,10Gbps"}
SMALL = ["cluster.gpus=2", "method.name=pipegcn", "run.iterations=4"]


def own_prices(path: Path, price: str) -> Path:
    row = {"device": "t4", "instance": "ours", "gpus": 4, "price": price, "source": "contract 7", "date": "2026-03"}
    path.write_text(json.dumps([row]), encoding="utf-8")
    return path


def question_with(prices: Any) -> Any:
    return read_question({} if prices is None else {"prices": prices}, SMALL, AXES)


@pytest.mark.parametrize("interval", ["full", "none"])
def test_costs_are_those_of_what_if(interval: str, tmp_path: Path) -> None:
    book = PriceBook.of(price=["t4=0.35USD/h"], currency="EUR", exchange=0.5)
    found = gcnsim.sweep(axes=AXES, overrides=SMALL, out=tmp_path / "out", processes=2, prices=book, interval=interval)
    answered = gcnsim.what_if(gpus=2, bandwidth=["5Gbps", "10Gbps"], method="pipegcn", iterations=4, prices=book)
    names = (*COSTS, "cost_per_epoch", "price")
    rows = [[getattr(row, name) for name in names] for row in found.rows()]
    assert rows == [[getattr(row, name) for name in names] for row in answered.rows]
    assert {row.currency for row in found.rows()} == {"EUR"}
    assert {row.cost_per_hour for row in found.rows()} == {2 * 0.35 * 0.5}


def test_prices_do_not_change_what_is_not_a_cost(tmp_path: Path) -> None:
    usual = gcnsim.sweep(axes=AXES, overrides=SMALL, out=tmp_path / "a", processes=1).to_arrow().to_pylist()
    book = PriceBook.of(price=["t4=0USD/h"])
    free = gcnsim.sweep(axes=AXES, overrides=SMALL, out=tmp_path / "b", processes=1, prices=book).to_arrow().to_pylist()
    changed = {name for one, other in zip(usual, free, strict=True) for name in one if one[name] != other[name]}
    assert changed == {*COSTS, "cost_per_epoch", "price"} - {"currency"}
    assert {row["cost_per_hour"] for row in free} == {0.0}


def test_prices_are_part_of_the_question(tmp_path: Path) -> None:
    file = own_prices(tmp_path / "prices.yaml", "1.4EUR/h")
    chosen = [
        {"price": ["t4=0.35USD/h"]},
        {"price": "t4=0.36USD/h"},
        {"pricing": "spot"},
        {"currency": "eur"},
        {"currency": "EUR", "exchange": 0.5},
        {"file": str(file)},
    ]
    hashes = [question_with(item).hash for item in chosen]
    assert len({*hashes, question_with(None).hash}) == len(chosen) + 1
    for item in chosen:
        question = question_with(item)
        content = json.loads(json.dumps(question.payload()))
        assert read_question(content).prices == question.prices
        assert read_question(content).hash == question.hash
    # What is chosen as it would be anyway is the same question.
    assert question_with({"pricing": "on-demand", "currency": "USD"}).hash == question_with(None).hash
    assert "prices" not in question_with(None).payload()
    own_prices(file, "1.5EUR/h")
    assert question_with({"file": str(file)}).hash != hashes[-1]


def test_a_folder_needs_its_file_of_prices_no_more(tmp_path: Path) -> None:
    file = own_prices(tmp_path / "prices.yaml", "8USD/h")
    question = {"prices": {"file": str(file)}}
    found = gcnsim.sweep(question, axes=AXES, overrides=SMALL, out=tmp_path / "out", processes=1)
    file.unlink()
    again = gcnsim.open_sweep(tmp_path / "out")
    assert [row.cost_per_hour for row in again.rows()] == [4.0, 4.0]
    assert again.question.hash == found.question.hash


def test_a_folder_of_other_prices_is_refused(tmp_path: Path) -> None:
    gcnsim.sweep(axes=AXES, overrides=SMALL, out=tmp_path / "out", processes=1)
    with pytest.raises(GcnsimError, match="holds the results of another question"):
        gcnsim.sweep({"prices": {"pricing": "spot"}}, axes=AXES, overrides=SMALL, out=tmp_path / "out")


def test_prices_are_chosen_in_one_place(tmp_path: Path) -> None:
    with pytest.raises(GcnsimError, match="prices: the question has its own prices"):
        gcnsim.sweep(
            {"prices": {"pricing": "spot"}},
            axes=AXES,
            overrides=SMALL,
            out=tmp_path / "out",
            prices=PriceBook.of(pricing="on-demand"),
        )
    assert not (tmp_path / "out").exists()


def test_a_price_of_what_no_point_has_is_refused() -> None:
    varied = {"cluster.device": "t4,a10g"}
    plan(read_question({"prices": {"price": ["a10g=1USD/h"]}}, SMALL, varied))
    with pytest.raises(GcnsimError, match="--price: no machine of the question has l4; they have a10g, t4"):
        plan(read_question({"prices": {"price": ["l4=1USD/h"]}}, SMALL, varied))


@pytest.mark.parametrize(
    ("prices", "says"),
    [
        ("spot", "prices: 'spot' is not a section; keys: price, file, pricing, currency, exchange"),
        ({"prise": []}, "prices.prise: unknown key; did you mean 'price'?"),
        ({"price": 3}, "prices.price: 3 is not a list of NAME=PRICE"),
        ({"price": ["t4=0.35"]}, "prices.price t4: '0.35' has no unit; write a price per hour with its unit"),
        ({"pricing": "sport"}, "prices.pricing: unknown pricing 'sport'; did you mean 'spot'?"),
        ({"pricing": 1}, "prices.pricing: 1 is not text"),
        ({"currency": "XYZ"}, "prices.currency: no exchange rate of 'XYZ' is known"),
        ({"exchange": 0.9}, "prices.exchange: 0.9 needs"),
        ({"currency": "EUR", "exchange": "much"}, "prices.exchange: 'much' is not a number"),
        ({"file": "no-such.yaml"}, "no-such.yaml: cannot be read"),
        ({"given": [{"device": "t4"}]}, "prices: is not what a sweep writes"),
    ],
)
def test_bad_prices_are_a_line(prices: Any, says: str) -> None:
    with pytest.raises(GcnsimError) as error:
        question_with(prices)
    assert str(error.value).startswith(says)
