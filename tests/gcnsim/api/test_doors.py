"""One answer by every door: a random question has the same setting, time and range wherever it is asked."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

import gcnsim
from gcnsim import api
from gcnsim.cli import main
from gcnsim.core.units import format_seconds, range_text
from gcnsim.dashboard.files import Files
from gcnsim.dashboard.state import PageQuestion
from gcnsim.dashboard.work import _rows, _what_if
from gcnsim.methods import has_knob
from gcnsim.report.answer.rows import plain
from gcnsim.results import Row
from gcnsim.scenario.option import words

KNOBS = ("tau", "epsilon", "rate")


def question(seed: int) -> dict[str, Any]:
    """A question of one machine that is answered in a second."""
    random = Random(seed)
    methods = random.choice([None, ["pipegcn", "bns-gcn"], ["full-graph", "psc-gcn"], ["psc-gcn"]])
    return {
        "dataset": random.choice(["reddit", "yelp", "ogbn-products"]),
        "device": random.choice(["t4", "a10g", "l4"]),
        "gpus": random.choice([2, 3, 4]),
        "gpus_per_server": random.choice([1, 2]),
        "bandwidth": random.choice(["5Gbps", "15Gbps", "50Gbps"]),
        **({} if methods is None else {"method": methods}),
    }


def told(row: Row | dict[str, Any]) -> list[Any]:
    """Setting, time and range."""
    names = ("method", *KNOBS, "cache_fraction", "iteration_s", "iteration_s_low", "iteration_s_high")
    return [row[name] if isinstance(row, dict) else getattr(row, name) for name in names]


def knobs_of(row: Row) -> dict[str, Any]:
    """The options that ask for the setting of a row alone."""
    found = {name: getattr(row, name) for name in KNOBS if has_knob(row.method, name)}
    return found | ({"cache": f"{100 * row.cache_fraction:g}%"} if has_knob(row.method, "cache") else {})


WARM = api.RowCache()


class InProcess:
    """The dashboard's answers without its processes, through the same plain data."""

    def rows(self, requests: list[dict[str, Any]], turn: None = None) -> list[Row]:
        answers = [_rows(WARM, json.loads(json.dumps(request))) for request in requests]
        return [Row(**row) for answer in json.loads(json.dumps(answers)) for row in answer["rows"]]


def page_of(asked: dict[str, Any]) -> PageQuestion:
    """The question on the dashboard's first page."""
    return PageQuestion(
        **{name: asked[name] for name in ("dataset", "device", "gpus")},
        gpus_per_server=str(asked["gpus_per_server"]),
        methods=tuple(asked.get("method", ())),
        bandwidth=float(asked["bandwidth"].removesuffix("Gbps")),
    )


SEEDS = [pytest.param(seed, marks=[pytest.mark.slow] * (seed >= 6)) for seed in range(30)]


headline_page = pytest.importorskip(
    "gcnsim.dashboard.pages.what_if", reason="the dashboard's packages are not installed"
)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_question_has_one_answer(seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = question(seed)
    answer = gcnsim.what_if(**asked, processes=1)
    best = answer.told.recommendation.row
    wanted = told(best)

    assert main(["what-if", *words(asked), "--json", "--processes", "1"]) == 0
    assert told(json.loads(capsys.readouterr().out)["recommendation"]["row"]) == wanted, "command line"

    found = gcnsim.recommend(**asked, minimise="time", processes=1)
    assert told(found.told.choice.row) == wanted, "recommend with this machine alone"

    rows = headline_page.rows_of(page_of(asked), InProcess(), Files(tmp_path, tmp_path))
    assert [told(row) for row in rows if row.recommended] == [wanted], "the starred row of the dashboard"
    assert rows[0].recommended
    setting = f"{best.method} with {', '.join(best.knobs)}" if best.knobs else best.method
    time = f"{format_seconds(best.iteration_s)} per iteration{range_text(best.iteration_s_low, best.iteration_s_high)}"
    headline = headline_page.headline(page_of(asked), rows)
    assert headline.startswith(f"Use {setting} at {page_of(asked).bandwidth:g} Gbps: {time}"), (
        "the dashboard's headline"
    )

    machine = {name: value for name, value in asked.items() if name != "method"}
    (row,) = WARM.rows(**machine, method=best.method, **knobs_of(best))
    assert told(row) == wanted, "a row of the dashboard"

    fields = {"workload": ("dataset",), "cluster": ("device", "gpus_per_server", "bandwidth")}
    paths = [f"{section}.{name}={asked[name]}" for section, names in fields.items() for name in names]
    paths += [f"method.{name}={value}" for name, value in {"name": best.method, **knobs_of(best)}.items()]
    axes = {"cluster.gpus": str(asked["gpus"])}
    (point,) = gcnsim.sweep(axes=axes, overrides=paths, out=tmp_path / "sweep", processes=1).rows()
    assert told(point) == wanted, "a sweep"

    if seed % 3 == 0:
        (tmp_path / "job").mkdir()
        _what_if({**asked, "processes": 1}, tmp_path / "job", lambda _: None)
        written = json.loads((tmp_path / "job" / "answer.json").read_text(encoding="utf-8"))
        assert told(written["recommendation"]["row"]) == wanted, "a job of the dashboard"
        texts = json.loads((tmp_path / "job" / "texts.json").read_text(encoding="utf-8"))
        page = (tmp_path / "job" / "answer.html").read_text(encoding="utf-8")
        for text in (texts["heading"], page):
            assert f"{best.method} " in text
            assert plain(format_seconds(best.iteration_s)) in text, "its page"
