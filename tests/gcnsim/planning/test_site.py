"""The power that an asker gives, and figures that change nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest

import gcnsim
from gcnsim.cli import main
from gcnsim.core.errors import GcnsimError
from gcnsim.hardware import PriceBook
from gcnsim.planning.sweep_question import read_question
from gcnsim.planning.sweep_run import plan

SMALL: Final[dict[str, Any]] = {"gpus": 4, "method": "pipegcn", "processes": 1}


def test_a_given_power_is_that_power_in_every_draw() -> None:
    given = "cluster.figures=a10g.waiting_power=80%,g5.12xlarge.host_power=0.0001,g5.12xlarge.host_floor=10W"
    with pytest.raises(GcnsimError, match=r"--gpu-power: 150W .*; a10g\.waiting_power is given as 80% of 225W"):
        gcnsim.what_if(**SMALL, device="a10g", gpu_power="150W", overrides=[given])
    answer = gcnsim.what_if(
        **SMALL,
        device="a10g",
        gpu_power="100W",
        overrides=[given.replace("waiting_power=80%", "waiting_power=44%")],
    )
    (row,) = answer.payload["energy"]["rows"]
    assert 4 * 99 + 10 <= row["watts"] <= 4 * 100 + 10, "one server of four GPUs"
    # A waiting GPU draws at least 44 % of the smallest board; a computing one no more than was given.
    times = [answer.payload["results"][0][f"iteration_s_{end}"] for end in ("low", "high")]
    assert row["joules_high"] <= 410 * times[1] * (1 + 1e-6)
    busy = answer.rows[0].gpu_utilization
    assert row["joules_low"] >= (4 * (100 * busy + 66 * (1 - busy)) + 10) * times[0] * (1 - 1e-6)


@pytest.mark.parametrize(
    ("device", "power", "most"), [(["gh200", "t4"], "300W", "t4; at most its board power (70W)"),
                                  ("a10g", "301W", "a10g; at most its board power (300W)")]
)  # fmt: skip
def test_a_power_above_the_board_is_refused(device: Any, power: str, most: str) -> None:
    with pytest.raises(GcnsimError, match=re.escape(f"--gpu-power: {power} is not allowed for {most}")):
        gcnsim.what_if(**SMALL, device=device, gpu_power=power)


def test_recommend_refuses_a_power_above_a_board_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["recommend", "--host", "g4dn.xlarge", "--gpus", "2", "--method", "pipegcn", "--gpu-power", "71W"]
    assert main(words) == 2
    assert capsys.readouterr().err == "gcnsim: --gpu-power: 71W is not allowed for t4; at most its board power (70W)\n"


def test_recommend_gives_a_power_to_the_gpus_that_can_draw_it() -> None:
    said: list[str] = []
    watts: dict[tuple[str, str | None], float] = {}
    for minimise, power in (("cost", "200W"), ("cost", None), ("time", "200W"), ("time", None)):
        found = gcnsim.recommend(
            gpus=2, method="pipegcn", device=["t4", "a100-40"], target_iteration="9s", minimise=minimise,
            electricity="0", gpu_power=power, prices=gcnsim.PriceBook.of(["t4=0.01USD/h"]),
        )  # fmt: skip
        said += found.payload["provenance"]["warnings"]
        watts[found.told.choice.row.device, power] = found.payload["energy"]["rows"][0]["watts"]
    assert said == ["--gpu-power: 1 of 2 kinds of GPU (t4) cannot draw 200W; they keep their own power"] * 2
    assert watts["t4", "200W"] == watts["t4", None]
    assert watts["a100-40", "200W"] != watts["a100-40", None]


def test_a_power_that_a_device_file_gives_too_is_said_of_the_file(tmp_path: Path) -> None:
    own = tmp_path / "own.yaml"
    figures = {"memory": "16GB", "memory_bandwidth": "300GB/s", "flops_fp32": "8TFLOPS", "power": "100W"}
    facts = {"source": "datasheet", "reference": "the maker", "date": "2026-11"}
    lines = {name: {"value": value, **facts} for name, value in (figures | {"busy_power": "90%"}).items()}
    lines["busy_power"]["source"] = "given"
    content = {"title": "Own", "kind": "gpu", "link": "pcie3-x16", **lines}
    own.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(GcnsimError, match=r"--gpu-power: its file gives .*own\.yaml\.busy_power too"):
        gcnsim.what_if(**SMALL, device=str(own), gpu_power="80W")


@pytest.mark.parametrize(
    ("figure", "more", "says"),
    [
        ("generic-16.host_floor=60W", {"electricity": "0"}, "generic-16.host_floor would change nothing"),
        ("g4dn.xlarge.host_floor=60W", {}, "g4dn.xlarge.host_floor changes energy alone"),
    ],
)
def test_recommend_refuses_figures_that_change_nothing(figure: str, more: dict[str, Any], says: str) -> None:
    question = {**SMALL, "host": "g4dn.xlarge", "gpus": 2} | more
    with pytest.raises(GcnsimError, match=re.escape(f"cluster.figures: {says}")):
        gcnsim.recommend(**question, overrides=[f"cluster.figures={figure}"])


def test_recommend_takes_a_figure_of_one_of_its_machines() -> None:
    question: dict[str, Any] = SMALL | {"gpus": 2, "host": ["g4dn.xlarge", "g5.xlarge"], "electricity": "0"}
    found = gcnsim.recommend(**question, overrides=["cluster.figures=g4dn.xlarge.host_floor=60W"])
    assert found.payload["energy"]["rows"]


def test_a_sweep_refuses_figures_that_change_nothing() -> None:
    for figure, says in (("a10g.launch_s=9us", "would change nothing"), ("t4.power=60W", "changes energy alone")):
        base = {"cluster": {"gpus": 2, "figures": dict([figure.split("=")])}}
        question = {"schema": "gcnsim.sweep/1", "base": base, "axes": {"cluster.bandwidth": ["5Gbps", "9Gbps"]}}
        with pytest.raises(GcnsimError, match=f"cluster.figures: {figure.partition('=')[0]} {says}"):
            plan(read_question(question))
    axes = {"cluster.device": ["t4", "a10g"]}
    base = {"cluster": {"gpus": 2, "figures": {"a10g.launch_s": "9us"}}}
    assert len(plan(read_question({"schema": "gcnsim.sweep/1", "base": base, "axes": axes})).points) == 2


def test_energy_has_no_upper_end_where_its_training_has_none() -> None:
    question: dict[str, Any] = {"checkpoint": "30s", "restart": "5min", "interruptions": 20.0, "electricity": "0"}
    answer = gcnsim.what_if(**SMALL, **question, iterations_needed=50_000_000, prices=PriceBook.of(pricing="spot"))
    (row,), (done,) = answer.payload["energy"]["rows"], answer.payload["target"]["rows"]
    assert done["failures"]["seconds"] is not None
    assert done["failures"]["seconds_high"] is None
    assert (row["kwh"] is None, row["kwh_high"]) == (False, None)
    assert re.search(
        r"until done [\d.,]+ [kMG]?Wh \([\d.,]+ [kMG]?Wh to practically never\)", " ".join(str(answer).split())
    )


def test_spot_prices_that_are_not_known_are_blamed_on_the_pricing() -> None:
    question: dict[str, Any] = SMALL | {"device": "mi60", "prices": PriceBook.of(pricing="spot")}
    with pytest.raises(GcnsimError, match="--pricing: no spot price of these machines is known; give --price"):
        gcnsim.recommend(**question)
