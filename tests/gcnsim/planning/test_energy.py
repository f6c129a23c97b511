"""Energy of a setting, its cost and CO2, and buying against renting."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import validate

import gcnsim
from gcnsim import hardware
from gcnsim.api.targets import site_of
from gcnsim.cli import main
from gcnsim.core.errors import GcnsimError
from gcnsim.planning.energy import HOURS_PER_MONTH, J_PER_KWH
from gcnsim.scenario.what_if import WhatIf
from gcnsim.simulation import balanced_parts, worker_parts

SMALL: dict[str, Any] = {"gpus": 4, "method": "pipegcn", "processes": 1}


BOUGHT: dict[str, Any] = {"electricity": "0.3EUR/kWh", "life_years": 4, "in_use": "50%"}


def asked(schema: str, payload: Any) -> Any:
    validate(dict(payload), json.loads((Path(gcnsim.__file__).parent / "data" / f"{schema}.schema.json").read_text()))
    return payload["energy"]


def value(figure: hardware.Figure | None) -> float:
    assert figure is not None
    return figure.value


@pytest.mark.parametrize("devices", ["t4,t4", "t4,a10g"])
def test_energy_is_power_times_busy_and_waiting_seconds_of_every_worker(devices: str) -> None:
    answer = gcnsim.what_if(**SMALL, pue=1.2, overrides=[f"cluster.devices={devices}"])
    result, host = answer.studies.estimate(answer.recommended.scenario).result, hardware.host("generic-16")
    parts = balanced_parts(worker_parts(result.run, result.warm_up), result.metrics.worker, result.metrics.iteration_s)
    joules = 0.0
    for worker, name in zip(parts, [name for name in devices.split(",") for _ in range(2)], strict=True):
        gpu = hardware.device(name)
        waiting_s = result.metrics.iteration_s - worker.compute_s
        busy = value(gpu.busy_power) * worker.compute_s + value(gpu.waiting_power) * waiting_s
        joules += value(gpu.power) * (busy + value(host.host_power) * result.metrics.iteration_s)
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["joules"] == pytest.approx(1.2 * joules, rel=1e-6)
    assert row["watts"] * result.metrics.iteration_s == pytest.approx(row["joules"])
    assert row["joules_low"] < row["joules"] < row["joules_high"]


def test_without_a_training_cost_and_co2_are_of_a_thousand_iterations() -> None:
    answer = gcnsim.what_if(**SMALL, electricity="0.30USD/kWh", carbon="380g/kWh")
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["cost_per_1000_iterations"] == pytest.approx(1000 * row["joules"] / J_PER_KWH * 0.30)
    assert row["kg_co2_per_1000_iterations"] == pytest.approx(1000 * row["joules"] / J_PER_KWH * 0.38)
    assert row["kwh"] is None
    assert "kg CO2 per 1,000 iterations" in " ".join(str(answer).split())


def test_what_is_given_is_not_drawn() -> None:
    wide, narrow = (
        asked("what-if", gcnsim.what_if(**SMALL, **given).payload)
        for given in ({"carbon": "380g/kWh"}, {"pue": 1.3, "gpu_power": "56W"})
    )
    named = [{item["name"] for item in found["assumptions"]} for found in (wide, narrow)]
    assert named[0] == {"t4.busy_power", "t4.waiting_power", "generic-16.host_power", "generic-16.pue"}
    assert named[1] == {"t4.waiting_power", "generic-16.host_power"}
    assert all(item["in_interval"] for item in wide["assumptions"])


def test_the_power_of_a_computing_gpu_changes_neither_waiting_nor_the_rest_of_the_server() -> None:
    watts = [
        asked("what-if", gcnsim.what_if(**SMALL, **given).payload)["rows"][0]["watts"]
        for given in ({"pue": 1.3}, {"gpu_power": "56W"})
    ]
    assert watts[0] == pytest.approx(watts[1]), "56 W are the 80 % of 70 W that are assumed"


def test_recommend_refuses_the_price_of_a_machine_that_it_does_not_consider() -> None:
    with pytest.raises(GcnsimError, match=r"--purchase: h100 is in no machine of the question; they have g4dn\.xlarge"):
        gcnsim.recommend(host="g4dn.xlarge", gpus=2, method="pipegcn", **BOUGHT, purchase="h100=1EUR", processes=1)


def test_a_gpu_without_a_known_power_has_no_energy() -> None:
    question: dict[str, Any] = {"gpus": 2, "device": "gh200", "method": "full-graph", "processes": 1, "pue": 1.2}
    answer = gcnsim.what_if(**question)
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["joules"] is None
    assert row["unknown"] == "the power of gh200 is not in the catalogue; --gpu-power gives it"
    assert row["unknown"] in " ".join(str(answer).split())
    (row,) = asked("what-if", gcnsim.what_if(**question, gpu_power="900W").payload)["rows"]
    assert row["watts"] == pytest.approx(1.2 * 2 * 900 * (1 + 0.6), rel=0.5)


def test_a_training_with_failures_takes_the_energy_of_its_time() -> None:
    answer = gcnsim.what_if(
        **SMALL,
        iterations_needed=500_000,
        mtbf="100h",
        checkpoint="30s",
        restart="5min",
        electricity="0.30USD/kWh",
        carbon="380g/kWh",
    )
    (row,), (done,) = asked("what-if", answer.payload)["rows"], answer.payload["target"]["rows"]
    assert done["failures"]["seconds"] > done["seconds"]
    assert row["kwh"] == pytest.approx(row["watts"] * done["failures"]["seconds"] / J_PER_KWH)
    assert row["kwh_low"] < row["kwh"] < row["kwh_high"]
    assert row["cost"] == pytest.approx(0.30 * row["kwh"])
    assert row["kg_co2"] == pytest.approx(0.38 * row["kwh"])


def test_a_bought_machine_has_cost_what_a_rented_one_has_after_the_months_to_break_even(tmp_path: Path) -> None:
    found = gcnsim.recommend(
        host="g4dn.xlarge",
        gpus=2,
        method="pipegcn",
        minimise="time",
        processes=1,
        electricity="0.30EUR/kWh",
        purchase=["g4dn.xlarge=3000EUR", "9USD"],
        life_years=4,
        in_use="50%",
    )
    (row,) = asked("recommend", found.payload)["rows"]
    own, rate = row["own"], hardware.exchange_rates()["EUR"].per_usd
    assert own["purchase"] == pytest.approx(2 * 3000 / rate), "of two servers, in US dollars"
    assert own["hours_per_month"] == HOURS_PER_MONTH * 0.5
    hours = own["months"] * own["hours_per_month"]
    electricity = row["watts"] / 1000 * 0.30 / rate
    assert own["purchase"] + hours * electricity == pytest.approx(hours * own["rented_per_hour"])
    life_h = 4 * 12 * HOURS_PER_MONTH * 0.5
    assert own["owned_per_hour"] == pytest.approx(own["purchase"] / life_h + electricity)
    assert own["months_low"] < own["months"] < own["months_high"] < own["life_months"] == 48
    found.to_html(tmp_path / "page.html")
    assert "Buy or rent" in (tmp_path / "page.html").read_text()
    assert f"buying pays off after {own['months']:.3g} months" in " ".join(str(found).split())


def test_dear_electricity_never_pays() -> None:
    answer = gcnsim.what_if(**SMALL, electricity="9USD/kWh", purchase="3000USD", life_years=4, in_use="50%")
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["own"]["months"] is None
    assert "buying never pays" in " ".join(str(answer).split())


@pytest.mark.parametrize(
    ("question", "message"),
    [
        ({"electricity": "0.3EUR"}, "--electricity: '0.3EUR' is not a price of a kWh; write e.g. 0.30EUR/kWh"),
        ({"electricity": "0.3XXX/kWh"}, "--electricity: no exchange rate of XXX is known"),
        ({"carbon": "380"}, "--carbon: '380' has no unit; write a mass of CO2 per kWh with its unit, e.g. 380g/kWh"),
        ({"carbon": "0g/kWh"}, "--carbon: '0g/kWh' is not allowed; a mass of CO2 per kWh above 0"),
        ({"carbon": "1e30g/kWh"}, "--carbon: '1e30g/kWh' is not allowed; at most 100kg/kWh"),
        ({"electricity": "1e9USD/kWh"}, "--electricity: '1e9USD/kWh' is not allowed; at most 1,000,000 a kWh"),
        ({"gpu_power": "1e9W"}, "--gpu-power: '1e9W' is not allowed; at most 100kW"),
        (BOUGHT | {"purchase": "1e99EUR"}, "--purchase: '1e99EUR' is not allowed; an amount above 0, at most 1e+12"),
        ({"pue": 0.9}, "--pue: 0.9 is not allowed; a number of at least 1 and at most 10"),
        ({"gpu_power": "250"}, "--gpu-power: '250' has no unit; write a power with its unit, e.g. 250W"),
        ({"purchase": "3000EUR"}, "--purchase: needs --electricity, --life-years and --in-use, all of them"),
        ({"life_years": 4}, "--life-years: is of a bought server; give --purchase"),
        (BOUGHT | {"purchase": "1EUR", "life_years": 0}, "--life-years: 0 is not allowed; a number of at least 0.1"),
        (BOUGHT | {"purchase": "1EUR", "in_use": "0%"}, "--in-use: '0%' is not allowed; a share above 0%"),
        (BOUGHT | {"purchase": ["1EUR", "2EUR"]}, "--purchase: any server is given twice"),
        (BOUGHT | {"purchase": "0EUR"}, "--purchase: '0EUR' is not allowed; an amount above 0"),
        (BOUGHT | {"purchase": "x10=1EUR"}, "--purchase: unknown device or host 'x10'"),
        (BOUGHT | {"purchase": "a10g=1EUR"}, "--purchase: a10g is in no machine of the question; they have"),
    ],
)
def test_a_part_of_a_question_of_energy_is_refused(question: dict[str, Any], message: str) -> None:
    with pytest.raises(GcnsimError, match=re.escape(message)):
        gcnsim.what_if(**SMALL, **question)


def test_a_wrong_option_ends_with_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--electricity", "0.3"], ["--carbon", "380"], ["--pue", "0"], ["--purchase", "1EUR"]):
        assert main(["recommend", *words]) == 2
        assert capsys.readouterr().err.count("\n") == 1


def test_no_energy_is_asked_of_a_question_without_it() -> None:
    assert site_of(WhatIf(), hardware.PriceBook()) is None
    assert "energy" not in gcnsim.what_if(**SMALL).payload
