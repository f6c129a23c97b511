"""The Plan page: what it asks and shows, without a browser."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gcnsim import api
from gcnsim.core.errors import FileError
from gcnsim.dashboard.answers import Answers
from gcnsim.dashboard.app import found
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.job_results import what_if_address
from gcnsim.dashboard.pages import forms
from gcnsim.dashboard.state import read_address
from tests.dashboards import command_line, json_of
from tests.gcnsim.dashboard.test_pages import done


@pytest.fixture(scope="module")
def answers() -> Iterator[Answers]:
    made = Answers(1)
    yield made
    made.end()


def test_a_host_of_a_form_may_be_a_file_below_the_folder(tmp_path: Path) -> None:
    plan, files = forms.of_path("/plan"), Files(tmp_path, tmp_path)
    assert plan is not None
    (tmp_path / "mine.yaml").write_text("title: x")
    content = plan.options(forms.read(plan, "?host=g5.xlarge,mine.yaml"), files)
    assert content["host"] == ["g5.xlarge", str(tmp_path / "mine.yaml")]
    for path in ("/etc/other.yaml", "../other.yaml", "none.yaml"):
        with pytest.raises(FileError, match=path):
            plan.options(forms.read(plan, f"?host={path}"), files)


def test_plan_shows_the_front_and_what_moves_the_time(tmp_path: Path) -> None:
    form = forms.of_path("/plan")
    assert form is not None
    values = forms.read(form, "?target_iteration=2s&gpus=2&method=pipegcn&host=g4dn.12xlarge")
    job, figures = done(tmp_path, form.kind, form.options(values, Files(tmp_path, tmp_path)))
    assert [figure["title"] for figure in figures] == [
        "Time against cost",
        "Where the time goes",
        "What moves the time",
    ]
    content = json.loads((job.folder / "answer.json").read_text(encoding="utf-8"))
    star = figures[0]["drawn"]["data"][-1]
    assert star["name"] == "recommended"
    with open(job.folder / "options.csv", encoding="utf-8", newline="") as file:
        options = list(csv.DictReader(file))
    (chosen,) = [option for option in options if option["recommended"] == "True"]
    shown = str(found(job, "dark"))
    assert content["verdict"] in shown
    assert "UNCALIBRATED" in shown
    assert "Time of an iteration, and cost" in shown, "the table of the options"
    assert chosen["method"] == "pipegcn"
    assert float(chosen["seconds"]) > 0
    address = re.search(r"href='/(\?[^']*)'", shown)
    assert address is not None, "each option leads to its own answer"
    asked = read_address(address[1])
    assert (asked.gpus, asked.methods, asked.host) == (2, ("pipegcn",), "g4dn.12xlarge")
    (row,) = command_line(*asked.command().split()[2:])["results"]
    assert row["iteration_s"] == pytest.approx(content["choice"]["row"]["iteration_s"])
    again = api.simulate(job.folder / "scenario.yaml").result.metrics.iteration_s
    assert again == pytest.approx(content["choice"]["row"]["iteration_s"])


def test_plan_asks_for_a_whole_training_as_the_command_line_does(tmp_path: Path) -> None:
    form = forms.of_path("/plan")
    assert form is not None
    query = (
        "?target_iteration=&gpus=2&method=pipegcn&device=t4&iterations_needed=pipegcn%3D20000&max_cost=200USD"
        "&pricing=spot&interruptions=0.05&checkpoint=30s&restart=5min"
        "&electricity=0.30USD/kWh&gpu_power=60W"
    )
    values, files = forms.read(form, query), Files(tmp_path, tmp_path)
    job, _ = done(tmp_path, form.kind, form.options(values, files))
    page = json.loads((job.folder / "answer.json").read_text(encoding="utf-8"))
    printed = json_of(*form.command(values))
    assert [page[key] for key in ("training", "energy")] == [printed[key] for key in ("training", "energy")]
    assert page["training"]["currency"] == "USD"
    assert [assumed["name"] for assumed in page["energy"]["assumptions"] if "busy_power" in assumed["name"]] == []
    failing = page["training"]["failures"]
    assert failing["cost"] < 200
    every = round(failing["checkpoint_every_s"] * 20000 / page["training"]["seconds"])
    script = (job.folder / "train.sh").read_text(encoding="utf-8")
    assert script.endswith(f" --out run --checkpoint-every {every}\n")
    shown = " ".join(str(found(job, "light")).split())
    assert all(words in shown for words in ("spot costs less below", "kWh", " USD for the training"))
    opened = forms.layout(form, query, files)
    assert "open=True" in str(opened)
    assert "open=False" in str(forms.layout(form, "", files))
    assert form.wrong("pricing", "spots", files).startswith("--pricing: unknown pricing 'spots'")
    assert form.wrong("electricity", "0.3", files).startswith(
        "--electricity: '0.3' has no unit; write a price of electricity"
    )
    assert form.wrong("gpu_power", "60", files).startswith("--gpu-power: '60' has no unit")
    assert form.wrong("price", "t4", files).startswith("--price: 't4' is not NAME=PRICE")
    assert form.wrong("price", "/etc/host.yaml=1USD/h", files).startswith("price: unknown '/etc/host.yaml'")
    assert form.wrong("iterations_needed", "many", files).startswith("--iterations-needed: 'many' is not ")


def test_what_a_plan_warns_of_is_above_its_figures(tmp_path: Path) -> None:
    form = forms.of_path("/plan")
    assert form is not None
    query = "?target_iteration=9s&gpus=2&method=pipegcn&device=t4,a100-40&gpu_power=200W"
    job, _ = done(tmp_path, form.kind, form.options(forms.read(form, query), Files(tmp_path, tmp_path)))
    shown = str(found(job, "light"))
    assert shown.index("(t4) cannot draw 200W; they keep their own power") < shown.index("Time against cost")


def test_own_prices_are_those_of_the_command_line(tmp_path: Path) -> None:
    form = forms.of_path("/plan")
    assert form is not None
    query = "?target_iteration=&minimise=time&gpus=2&method=pipegcn&device=t4,a10g&price=t4=0.2USD/h,a10g=9USD/h"
    values = forms.read(form, query)
    assert form.command(values)[-4:] == ["--price", "t4=0.2USD/h", "--price", "a10g=9USD/h"]
    given = form.options(values, Files(tmp_path, tmp_path))
    advice = api.recommend(**given | {"prices": api.PriceBook.of(**given["prices"])}).told
    hourly = {point.row.device: 3600 * (point.cost or 0.0) / point.seconds for point in advice.rows}
    assert hourly == pytest.approx({"t4": 0.4, "a10g": 18.0})


def test_every_row_of_a_plan_leads_to_its_own_answer(answers: Answers) -> None:
    hosts = ("g4dn.xlarge", "g4dn.12xlarge", "g5.12xlarge")
    links = {"link": "infiniband-ndr", "pcie": "pcie5-x16", "nvlink": "100GB/s"}
    asked: dict[str, Any] = {
        "target_iteration": "2s",
        "gpus": (2, 4, 8),
        "method": ["pipegcn", "psc-gcn"],
        "host": list(hosts),
        **links,
    }
    advice = api.recommend(**asked).told
    assert len(advice.rows) > 2
    for point in advice.rows:
        address = what_if_address(point, asked)
        assert address is not None, point.name
        question = read_address(address.removeprefix("/"))
        (row,) = answers.rows([question.row_options(None, *question.named)])
        assert row.iteration_s == pytest.approx(point.row.iteration_s), point.name
