"""Energy of a setting at the machine, and what its electricity costs."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest
from jsonschema import validate

import gcnsim
from gcnsim import hardware
from gcnsim.api.targets import site_of
from gcnsim.core.errors import GcnsimError
from gcnsim.core.schemas import schema_of
from gcnsim.planning.energy import J_PER_KWH
from gcnsim.scenario.what_if import WhatIf
from gcnsim.simulation import balanced_parts, worker_parts

SMALL: dict[str, Any] = {"gpus": 4, "method": "pipegcn", "processes": 1}


def asked(schema: str, payload: Any) -> Any:
    validate(dict(payload), dict(schema_of(schema)))
    return payload["energy"]


def value(figure: hardware.Figure | None) -> float:
    assert figure is not None
    return figure.value


@pytest.mark.parametrize("devices", ["t4,t4", "t4,a10g"])
def test_energy_is_power_times_busy_and_waiting_seconds_of_every_worker(devices: str) -> None:
    # Synchronous: every iteration is like the others, so shares of a window are shares of an iteration.
    question = SMALL | {"method": "full-graph", "electricity": "0"}
    answer = gcnsim.what_if(**question, overrides=[f"cluster.devices={devices}"])
    result, host = answer.studies.estimate(answer.recommended.scenario).result, hardware.host("generic-16")
    parts = balanced_parts(worker_parts(result.run, result.warm_up), result.metrics.worker, result.metrics.iteration_s)
    joules = 0.0
    for worker, name in zip(parts, [name for name in devices.split(",") for _ in range(2)], strict=True):
        gpu = hardware.device(name)
        waiting_s = result.metrics.iteration_s - worker.compute_s
        joules += value(gpu.power) * value(gpu.busy_power) * worker.compute_s
        joules += value(gpu.power) * value(gpu.waiting_power) * waiting_s
    for name in devices.split(","):
        boards = 2 * value(hardware.device(name).power)
        joules += max(value(host.host_power) * boards, value(host.host_floor)) * result.metrics.iteration_s
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["joules"] == pytest.approx(joules, rel=1e-6)
    assert row["watts"] * result.metrics.iteration_s == pytest.approx(row["joules"])
    assert row["joules_low"] < row["joules"] < row["joules_high"]


def test_without_a_training_cost_is_of_a_thousand_iterations() -> None:
    answer = gcnsim.what_if(**SMALL, electricity="30000USD/MWh")
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["cost_per_1000_iterations"] == pytest.approx(1000 * row["joules"] / J_PER_KWH * 30)
    assert row["kwh"] is None
    text = " ".join(str(answer).split())
    assert " USD per 1,000 iterations" in text
    assert "Energy at the machine, without its building" in text


def test_what_is_given_is_not_drawn() -> None:
    wide, narrow = (
        asked("what-if", gcnsim.what_if(**SMALL, electricity="0.3USD/kWh", gpu_power=power).payload)
        for power in (None, "56W")
    )
    named = [{item["name"] for item in found["assumptions"]} for found in (wide, narrow)]
    server = {"generic-16.host_power", "generic-16.host_floor"}
    assert named[0] == {"t4.busy_power", "t4.waiting_power"} | server
    assert named[1] == {"t4.waiting_power"} | server
    assert all(item["in_interval"] for item in wide["assumptions"])


def test_the_power_of_a_computing_gpu_changes_neither_waiting_nor_the_rest_of_the_server() -> None:
    watts = [
        asked("what-if", gcnsim.what_if(**SMALL, electricity="0", gpu_power=power).payload)["rows"][0]["watts"]
        for power in (None, "56W")
    ]
    assert watts[0] == pytest.approx(watts[1]), "56 W are the 80 % of 70 W that are assumed"


def test_a_gpu_without_a_known_power_has_no_energy() -> None:
    question: dict[str, Any] = {"gpus": 2, "device": "gh200", "method": "full-graph", "processes": 1}
    question["electricity"] = "12ct/kWh"
    answer = gcnsim.what_if(**question)
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["joules"] is None
    assert row["unknown"] == "the power of gh200 is not in the catalogue; --gpu-power gives it"
    assert row["unknown"] in " ".join(str(answer).split())
    (row,) = asked("what-if", gcnsim.what_if(**question, gpu_power="900W").payload)["rows"]
    assert row["watts"] == pytest.approx(2 * 900 * (1 + 0.6), rel=0.5)


def test_a_training_with_failures_takes_the_energy_of_its_time() -> None:
    answer = gcnsim.what_if(
        **SMALL,
        iterations_needed=500_000,
        mtbf="100h",
        checkpoint="30s",
        restart="5min",
        electricity="0.30USD/kWh",
    )
    (row,), (done,) = asked("what-if", answer.payload)["rows"], answer.payload["target"]["rows"]
    assert done["failures"]["seconds"] > done["seconds"]
    assert row["kwh"] == pytest.approx(row["watts"] * done["failures"]["seconds"] / J_PER_KWH)
    assert row["kwh_low"] < row["kwh"] < row["kwh_high"]
    assert row["cost"] == pytest.approx(0.30 * row["kwh"])


GIVEN_POWER: Final = (
    "cluster.figures=t4.busy_power=50%,t4.waiting_power=50%,{idle}{host}.host_power=0.5,{host}.host_floor=10W"
)
"""A T4 in use draws 35 W whatever it does, an unused one 7 W, the rest of a server 35 W for each."""


def test_energy_and_its_cost_by_hand() -> None:
    answer = gcnsim.what_if(
        gpus=2,
        method="pipegcn",
        iterations_needed=1_000_000,
        electricity="300USD/MWh",
        overrides=[GIVEN_POWER.format(host="generic-16", idle="")],
        processes=1,
    )
    (row,) = asked("what-if", answer.payload)["rows"]
    hours = 1e6 * answer.rows[0].iteration_s / 3600
    assert row["watts"] == pytest.approx(140), "2 x 35 + 70"
    assert row["joules"] == pytest.approx(140 * answer.rows[0].iteration_s)
    assert (row["kwh"], row["cost"]) == pytest.approx([0.140 * hours, 0.042 * hours])
    assert asked("what-if", answer.payload)["assumptions"] == []


@pytest.mark.parametrize(
    ("machine", "watts"),
    [
        ({"host": "g4dn.12xlarge", "gpus": 2}, 2 * 35 + 2 * 7 + 4 * 35),
        ({"gpus": 5}, 5 * 35 + 7 + 6 * 35),
        ({"gpus": 1}, 35 + 35),
    ],
)
def test_unused_gpus_of_a_server_draw_idle_power(machine: dict[str, Any], watts: float) -> None:
    idle = "" if machine == {"gpus": 1} else "t4.idle_power=10%,"
    power = [GIVEN_POWER.format(host=machine.get("host", "generic-16"), idle=idle)]
    answer = gcnsim.what_if(**machine, method="pipegcn", processes=1, electricity="0", overrides=power)
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["watts"] == pytest.approx(watts)


def test_a_server_of_unknown_power_is_named() -> None:
    answer = gcnsim.what_if(**SMALL, electricity="0", overrides=["cluster.devices=t4,gh200"])
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["unknown"] == "the power of gh200 is not in the catalogue; --gpu-power gives it"


@pytest.mark.parametrize(
    ("price", "usd"),
    [
        ("0", 0.0),
        ("0USD/kWh", 0.0),
        ("30ct/kWh", 0.30),
        ("90 USD/MWh", 0.09),
        (".5usd/KWH", 0.5),
    ],
)
def test_prices_of_electricity_as_people_write_them(price: Any, usd: float) -> None:
    site = site_of(WhatIf(electricity=price))
    assert site is not None
    assert site.price == pytest.approx(usd)


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (
            {"electricity": "0.3EUR/kWh"},
            "--electricity: '0.3EUR/kWh': unknown unit 'EUR/kWh'; write e.g. 0.12USD/kWh, 12ct/kWh, 120USD/MWh",
        ),
        ({"electricity": "0.3"}, "--electricity: '0.3' has no unit; write a price of electricity in US dollars"),
        ({"electricity": "1e9USD/kWh"}, "--electricity: '1e9USD/kWh' is not allowed; at most 1,000,000USD/kWh"),
        ({"gpu_power": "1e9W"}, "--gpu-power: '1e9W' is not allowed; at most 100kW"),
        ({"gpu_power": "250"}, "--gpu-power: '250' has no unit; write a power with its unit, e.g. 250W"),
        (
            {"overrides": ["cluster.figures=t4.power=60W"]},
            "cluster.figures: t4.power changes energy alone, which is not asked for; --electricity 0.12USD/kWh asks",
        ),
    ],
)
def test_a_part_of_a_question_of_energy_is_refused(question: dict[str, Any], message: str) -> None:
    with pytest.raises(GcnsimError, match=re.escape(message)):
        gcnsim.what_if(**SMALL, **question)


def test_no_energy_is_asked_of_a_question_without_it() -> None:
    assert site_of(WhatIf()) is None
    assert "energy" not in gcnsim.what_if(**SMALL).payload
