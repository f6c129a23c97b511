"""Axes, filters, prices, tables and warnings of a sweep."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import gcnsim
from gcnsim import api
from gcnsim.api import PriceBook
from gcnsim.cli import main
from gcnsim.core.errors import FileError, GcnsimError, ScenarioError
from gcnsim.planning.sweep_axes import Axis, Between, read_axis
from gcnsim.planning.sweep_question import read_question
from gcnsim.planning.sweep_run import plan
from gcnsim.planning.sweep_table import LEAD, read_filters, read_table, wrong_rows


@pytest.mark.parametrize(
    ("path", "written", "values"),
    [
        ("cluster.bandwidth", "5Gbps,10Gbps", ("5Gbps", "10Gbps")),
        ("cluster.bandwidth", "linear(1Gbps,100Gbps,4)", ("1Gbps", "34Gbps", "67Gbps", "100Gbps")),
        ("cluster.bandwidth", "log(1Gbps,4Gbps,2), 25Gbps", ("1Gbps", "4Gbps", "25Gbps")),
        ("method.tau", "0..4", (0, 1, 2, 3, 4)),
        ("method.tau", "0..9/3", (0, 3, 6, 9)),
        ("method.tau", [1, "3..4"], (1, 3, 4)),
        ("cluster.gpus", "log(1,4,9)", (1, 2, 3, 4)),
        ("method.epsilon", "log(0.01,1,3)", (0.01, 0.1, 1.0)),
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
        ("name", "a,b", "name: unknown field; did you mean 'method.name'? "),
        ("method.tau", "4..0", "method.tau: 4..0 is an empty range"),
        ("method.tau", "0..99999999", "has more than 1,000,000 values"),
        ("method.tau", "1.5", "method.tau: 1.5 is not a whole number of at least 0"),
        ("method.tau", [], "method.tau: an empty list of values"),
        ("method.tau", "1,,2", "has an empty value"),
        ("method.tau", {"a": 1}, "a mapping is not a list of values"),
        ("method.epsilon", "log(0,1,3)", "a logarithmic range starts above 0"),
        ("method.epsilon", "linear(0.1,0.5,0)", "'0' is not a count"),
        ("method.tau", f"0..{'9' * 5000}", "has a number of more than 18 digits"),
        ("method.epsilon", "linear(0.1,0.5,1)", "one value cannot be both ends"),
        ("method.epsilon", "cubic(0.1,0.5,3)", "unknown range 'cubic'"),
        ("method.epsilon", "linear(0.1)", "a range has two ends and a count"),
        ("method.epsilon", "linear(0.1,1", "a parenthesis is not closed"),
        ("method.epsilon", "linear(0.1,1),0.5", "mixes a range without a count with other values"),
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


COSTS = ("currency", "cost_per_hour", "cost_per_iteration", "cost_per_1000_iterations")
PRICED_AXES = {"cluster.bandwidth": "5Gbps,10Gbps"}
SMALL = ["cluster.gpus=2", "method.name=pipegcn", "run.iterations=4"]


def own_prices(path: Path, price: str) -> Path:
    row = {"device": "t4", "instance": "ours", "gpus": 4, "price": price, "source": "contract 7", "date": "2026-03"}
    path.write_text(json.dumps([row]), encoding="utf-8")
    return path


def question_with(prices: Any) -> Any:
    return read_question({} if prices is None else {"prices": prices}, SMALL, PRICED_AXES)


@pytest.mark.parametrize("interval", ["full"])
def test_costs_are_those_of_what_if(interval: str, tmp_path: Path) -> None:
    book = PriceBook.of(price=["t4=0.35USD/h"])
    found = gcnsim.sweep(
        axes=PRICED_AXES, overrides=SMALL, out=tmp_path / "out", processes=2, prices=book, interval=interval
    )
    answered = gcnsim.what_if(gpus=2, bandwidth=["5Gbps", "10Gbps"], method="pipegcn", iterations=4, prices=book)
    names = (*COSTS, "cost_per_epoch", "price", "price_of")
    rows = [[getattr(row, name) for name in names] for row in found.rows()]
    assert rows == [[getattr(row, name) for name in names] for row in answered.rows]
    assert {row.currency for row in found.rows()} == {"USD"}
    assert {row.cost_per_hour for row in found.rows()} == {2 * 0.35}


def test_prices_do_not_change_what_is_not_a_cost(tmp_path: Path) -> None:
    usual = gcnsim.sweep(axes=PRICED_AXES, overrides=SMALL, out=tmp_path / "a", processes=1).to_arrow().to_pylist()
    book = PriceBook.of(price=["t4=0USD/h"])
    free = (
        gcnsim.sweep(axes=PRICED_AXES, overrides=SMALL, out=tmp_path / "b", processes=1, prices=book)
        .to_arrow()
        .to_pylist()
    )
    changed = {name for one, other in zip(usual, free, strict=True) for name in one if one[name] != other[name]}
    assert changed == {*COSTS, "cost_per_epoch", "price", "price_of"} - {"currency"}
    assert {row["cost_per_hour"] for row in free} == {0.0}


def test_prices_are_part_of_the_question(tmp_path: Path) -> None:
    file = own_prices(tmp_path / "prices.yaml", "1.4USD/h")
    chosen = [
        {"price": ["t4=0.35USD/h"]},
        {"price": "t4=0.36USD/h"},
        {"pricing": "spot"},
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
    assert question_with({"pricing": "on-demand"}).hash == question_with(None).hash
    assert "prices" not in question_with(None).payload()
    own_prices(file, "1.5USD/h")
    assert question_with({"file": str(file)}).hash != hashes[-1]


def test_a_folder_needs_its_file_of_prices_no_more(tmp_path: Path) -> None:
    file = own_prices(tmp_path / "prices.yaml", "8USD/h")
    question = {"prices": {"file": str(file)}}
    found = gcnsim.sweep(question, axes=PRICED_AXES, overrides=SMALL, out=tmp_path / "out", processes=1)
    file.unlink()
    again = gcnsim.open_sweep(tmp_path / "out")
    assert [row.cost_per_hour for row in again.rows()] == [4.0, 4.0]
    assert again.question.hash == found.question.hash


def test_a_folder_of_other_prices_is_refused(tmp_path: Path) -> None:
    gcnsim.sweep(axes=PRICED_AXES, overrides=SMALL, out=tmp_path / "out", processes=1)
    with pytest.raises(GcnsimError, match="holds the results of another question"):
        gcnsim.sweep({"prices": {"pricing": "spot"}}, axes=PRICED_AXES, overrides=SMALL, out=tmp_path / "out")


def test_prices_are_chosen_in_one_place(tmp_path: Path) -> None:
    with pytest.raises(GcnsimError, match="prices: the question has its own prices"):
        gcnsim.sweep(
            {"prices": {"pricing": "spot"}},
            axes=PRICED_AXES,
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
        ("spot", "prices: 'spot' is not a section; keys: price, file, pricing"),
        ({"prise": []}, "prices.prise: unknown key; did you mean 'price'?"),
        ({"price": 3}, "prices.price: 3 is not a list of NAME=PRICE"),
        ({"pricing": "sport"}, "prices.pricing: unknown pricing 'sport'; did you mean 'spot'?"),
        ({"currency": "EUR"}, "prices.currency: unknown key; known: file, price, pricing"),
        ({"file": "no-such.yaml"}, "no-such.yaml: cannot be read"),
        ({"given": [{"device": "t4"}]}, "prices: is not what a sweep writes"),
    ],
)
def test_bad_prices_are_a_line(prices: Any, says: str) -> None:
    with pytest.raises(GcnsimError) as error:
        question_with(prices)
    assert str(error.value).startswith(says)


def test_rows_of_another_sweep_are_told_from_ones_own() -> None:
    schema = pa.schema([("point", pa.int64()), ("id", pa.string()), ("state", pa.string()), ("reason", pa.string())])
    rows = {"point": [0, 1], "id": ["a", "b"], "state": ["done", "lost"], "reason": [None, "x"]}
    own = pa.table(rows, schema=schema)
    assert wrong_rows(own, schema, 2) is None
    assert wrong_rows(own.slice(0, 0), schema, 0) is None
    assert wrong_rows(own, schema, 1) == "points run from 0 to 1; 0 to 0 are allowed"
    assert wrong_rows(own.append_column("tau", own["point"]), schema, 2) == "column 'tau' is missing or unexpected"
    other = own.set_column(0, "point", own["point"].cast(pa.float64()))
    assert wrong_rows(other, schema, 2) == "its columns are of other types or order"
    assert wrong_rows(pa.table(rows | {"state": ["done", None]}, schema=schema), schema, 2) == (
        "a row has no point, id or state"
    )


def test_columns_of_one_name_and_names_that_are_no_text_are_refused(tmp_path: Path) -> None:
    names = [*LEAD, "zzzz"]
    table = pa.table([pa.array(["1"])] * len(names), names)
    pq.write_table(table, tmp_path / "sound")
    assert read_table(tmp_path / "sound").column_names == names
    pq.write_table(table.append_column("id", table["id"]), tmp_path / "double")
    with pytest.raises(FileError, match="double: not a file of a sweep: it has a column more than once"):
        read_table(tmp_path / "double")
    raw = (tmp_path / "sound").read_bytes()
    (tmp_path / "named").write_bytes(raw.replace(b"zzzz", b"\xff\xfe\xff\xfe"))
    with pytest.raises(FileError, match=r"named: not a Parquet file of a sweep: .*utf-8"):
        read_table(tmp_path / "named")
    with pytest.raises(FileError, match=r"none: not a Parquet file of a sweep: .*No such file"):
        read_table(tmp_path / "none")


BASE = {"schema": "gcnsim.scenario/1", "cluster": {"gpus": 2, "device": "h100", "transport": "direct"}}


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"cluster.nvlink": "450GB/s,900GB/s"}, "cluster.nvlink: 900 GB/s is more than h100 has"),
        ({"cluster.bandwidth": "log(10Gbps,6400Gbps,3)"}, "cluster.bandwidth: 6400Gbps is more than"),
        ({"method.tau": "0..2"}, None),
        ({"cluster.nvlink": "null,none,450GB/s"}, None),
    ],
)
def test_each_value_of_an_axis_is_looked_at(axes: dict[str, str], words: str | None) -> None:
    found = api.sweep_warnings(api.ask({"schema": "gcnsim.sweep/1", "base": BASE}, axes))
    assert len(found) == (words is not None)
    assert all(text.startswith(words or "") for text in found)


def test_the_command_says_it_and_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["sweep", "--axis", "cluster.nvlink=900GB/s", "--set", "cluster.device=h100", "--set", "cluster.gpus=2"]
    assert main([*names, "--transport", "direct", "--dry-run", "--out", str(tmp_path / "out")]) == 0
    assert "note: cluster.nvlink: 900 GB/s is more than h100 has in one direction" in capsys.readouterr().err
