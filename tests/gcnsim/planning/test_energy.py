"""Energy of a setting, its cost and CO2, and buying against renting."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema import validate

import gcnsim
from gcnsim import hardware
from gcnsim.api.targets import site_of
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
        joules += value(gpu.power) * value(gpu.busy_power) * worker.compute_s
        joules += value(gpu.power) * value(gpu.waiting_power) * waiting_s
    for name in devices.split(","):
        boards = 2 * value(hardware.device(name).power)
        joules += max(value(host.host_power) * boards, value(host.host_floor)) * result.metrics.iteration_s
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
    assert " g CO2 per 1,000 iterations" in " ".join(str(answer).split())


def test_what_is_given_is_not_drawn() -> None:
    wide, narrow = (
        asked("what-if", gcnsim.what_if(**SMALL, **given).payload)
        for given in ({"carbon": "380g/kWh"}, {"pue": 1.3, "gpu_power": "56W"})
    )
    named = [{item["name"] for item in found["assumptions"]} for found in (wide, narrow)]
    server = {"generic-16.host_power", "generic-16.host_floor"}
    assert named[0] == {"t4.busy_power", "t4.waiting_power", "generic-16.pue"} | server
    assert named[1] == {"t4.waiting_power"} | server
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
        purchase="g4dn.xlarge=3000EUR",
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


GIVEN_POWER: Final = (
    "cluster.figures=t4.busy_power=50%,t4.waiting_power=50%,{idle}"
    "{host}.host_power=0.5,{host}.host_floor=10W,{host}.pue=1.5"
)
"""A T4 in use draws 35 W whatever it does, an unused one 7 W, the rest of a server 35 W for each, its building half as
much again."""


def test_energy_co2_and_months_to_break_even_by_hand() -> None:
    answer = gcnsim.what_if(
        gpus=2,
        method="pipegcn",
        iterations_needed=1_000_000,
        electricity="300USD/MWh",
        carbon="400g/kWh",
        purchase="2000USD",
        life_years=4,
        in_use=0.5,
        prices=hardware.PriceBook.of(["t4=0.50USD/h"]),
        overrides=[GIVEN_POWER.format(host="generic-16", idle="")],
        processes=1,
    )
    (row,) = asked("what-if", answer.payload)["rows"]
    hours = 1e6 * answer.rows[0].iteration_s / 3600
    assert row["watts"] == pytest.approx(210), "(2 x 35 + 70) x 1.5"
    assert row["joules"] == pytest.approx(210 * answer.rows[0].iteration_s)
    assert (row["kwh"], row["cost"], row["kg_co2"]) == pytest.approx([0.210 * hours, 0.063 * hours, 0.084 * hours])
    own = row["own"]
    assert own["owned_per_hour"] == pytest.approx(2000 / (4 * 12 * 730 * 0.5) + 0.063)
    assert own["rented_per_hour"] == pytest.approx(2 * 0.50)
    assert own["months"] == pytest.approx(2000 / (0.5 * 730 * (1.00 - 0.063)))
    assert asked("what-if", answer.payload)["assumptions"] == []


@pytest.mark.parametrize(
    ("machine", "watts", "bought", "rented", "rent"),
    [
        ({"host": "g4dn.12xlarge", "gpus": 2}, 1.5 * (2 * 35 + 2 * 7 + 4 * 35), (1, 4), 4, 3.912),
        ({"gpus": 5}, 1.5 * (5 * 35 + 7 + 6 * 35), (3, 2), 5, 5 * 0.526),
        ({"gpus": 1}, 1.5 * (35 + 35), (1, 1), 1, 0.526),
    ],
)
def test_unused_gpus_of_a_server_draw_idle_power_and_are_paid_for(
    machine: dict[str, Any], watts: float, bought: tuple[int, int], rented: int, rent: float
) -> None:
    idle = "" if machine == {"gpus": 1} else "t4.idle_power=10%,"
    power = [GIVEN_POWER.format(host=machine.get("host", "generic-16"), idle=idle)]
    answer = gcnsim.what_if(**machine, method="pipegcn", processes=1, **BOUGHT, purchase="3000USD", overrides=power)
    (row,) = asked("what-if", answer.payload)["rows"]
    own = row["own"]
    assert row["watts"] == pytest.approx(watts)
    assert (own["servers"], own["gpus_per_server"], own["rented_gpus"]) == (*bought, rented)
    assert own["purchase"] == bought[0] * 3000
    assert own["rented_per_hour"] == pytest.approx(rent)


def test_gpus_that_only_whole_instances_have_are_rented_with_them() -> None:
    question: dict[str, Any] = {"device": "a100-40", "gpus": 4, "method": "pipegcn", "processes": 1, **BOUGHT}
    answer = gcnsim.what_if(**question, purchase="20000USD")
    (row,) = asked("what-if", answer.payload)["rows"]
    assert answer.rows[0].cost_per_hour == pytest.approx(21.957642 / 2), "the answer's costs are of half an instance"
    assert row["own"]["rented_per_hour"] == pytest.approx(21.957642)
    text = " ".join(str(answer).split())
    assert "(2 servers of 2 GPUs), rented 21.96 (8 GPUs): " in text


def test_interruptions_of_spot_servers_are_rented_too() -> None:
    question: dict[str, Any] = {"gpus": 2, "method": "pipegcn", "processes": 1, **BOUGHT, "purchase": "3000USD"}
    question |= {"iterations_needed": 500_000, "checkpoint": "30s", "restart": "5min", "mtbf": "500h"}
    question["prices"] = hardware.PriceBook.of(pricing="spot")
    calm, spot = (gcnsim.what_if(**question, interruptions=rate).payload for rate in (None, 0.5))
    (calm_own,), (own,) = ([row["own"] for row in found["energy"]["rows"]] for found in (calm, spot))
    seconds = [found["target"]["rows"][0]["failures"]["seconds"] for found in (calm, spot)]
    assert calm_own["rented_hours"] == 1, "a bought machine fails as often"
    assert own["rented_hours"] == pytest.approx(seconds[1] / seconds[0])
    assert own["rented_per_hour"] == pytest.approx(calm_own["rented_per_hour"] * seconds[1] / seconds[0])
    assert own["months"] < calm_own["months"]
    electricity = own["owned_per_hour"] - 3000 / (48 * own["hours_per_month"])
    saved = own["rented_per_hour"] - electricity
    assert own["months"] == pytest.approx(3000 / (saved * own["hours_per_month"]))


def test_a_rented_training_without_end_has_no_months() -> None:
    answer = gcnsim.what_if(
        **SMALL, **BOUGHT, purchase="3000USD", iterations_needed=500_000, checkpoint="30s", restart="1h",
        interruptions=20.0, prices=hardware.PriceBook.of(pricing="spot"),
    )  # fmt: skip
    (row,) = asked("what-if", answer.payload)["rows"]
    assert (row["kwh"], row["own"]["months"], row["own"]["rented_hours"]) == (None, None, None)
    assert row["own"]["rented_per_hour"] is None
    assert ": a rented machine (4 GPUs) is practically never done" in " ".join(str(answer).split())


def test_servers_of_different_gpus_are_bought_at_their_own_prices() -> None:
    answer = gcnsim.what_if(
        **SMALL, **BOUGHT, purchase=["t4=1000USD", "a10g=4000USD"], overrides=["cluster.devices=t4,a10g"]
    )
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["own"]["purchase"] == 5000
    assert "; no rent is known" in " ".join(str(answer).split())


def test_a_server_of_unknown_power_is_named() -> None:
    answer = gcnsim.what_if(**SMALL, pue=1.2, overrides=["cluster.devices=t4,gh200"])
    (row,) = asked("what-if", answer.payload)["rows"]
    assert row["unknown"] == "the power of gh200 is not in the catalogue; --gpu-power gives it"


@pytest.mark.parametrize(
    ("price", "usd"),
    [
        ("0", 0.0),
        ("0EUR/kWh", 0.0),
        ("30ct/kWh", 0.30),
        ("12 cents per kWh", 0.12),
        ("$0.12/kWh", 0.12),
        (".5usd/KWH", 0.5),
    ],
)
def test_prices_of_electricity_as_people_write_them(price: Any, usd: float) -> None:
    site = site_of(WhatIf(electricity=price), hardware.PriceBook())
    assert site is not None
    assert site.price == pytest.approx(usd)


def test_cents_are_of_the_currency_of_costs() -> None:
    site = site_of(WhatIf(electricity="30ct/kWh"), hardware.PriceBook.of(currency="EUR"))
    assert site is not None
    assert site.price == pytest.approx(0.30)


@pytest.mark.parametrize(
    ("carbon", "kg"),
    [("0", 0.0), ("380kg/MWh", 0.38), ("380 gCO2e/kWh", 0.38), ("1000lb/MWh", 0.45359237)],
)
def test_carbon_as_people_write_it(carbon: Any, kg: float) -> None:
    site = site_of(WhatIf(carbon=carbon), hardware.PriceBook())
    assert site is not None
    assert site.carbon == pytest.approx(kg)


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
        ({"carbon": "-1g/kWh"}, "--carbon: '-1g/kWh': a mass of CO2 per kWh cannot be negative"),
        ({"carbon": "1e30g/kWh"}, "--carbon: '1e30g/kWh' is not allowed; at most 100kg/kWh"),
        ({"electricity": "1e999EUR/kWh"}, "--electricity: '1E+999EUR' is too large"),
        ({"gpu_power": "1e9W"}, "--gpu-power: '1e9W' is not allowed; at most 100kW"),
        (
            BOUGHT | {"purchase": "1e99EUR"},
            "--purchase: '1e99EUR' is not allowed; an amount above 0, at most 1,000,000,000,000 USD",
        ),
        ({"gpu_power": "250"}, "--gpu-power: '250' has no unit; write a power with its unit, e.g. 250W"),
        ({"purchase": "3000EUR"}, "--purchase: needs --electricity, --life-years and --in-use, all of them"),
        ({"life_years": 4}, "--life-years: is of a bought server; give --purchase"),
        (BOUGHT | {"purchase": "1EUR", "life_years": 0}, "--life-years: 0 is not allowed; a number of at least 0.1"),
        (BOUGHT | {"purchase": "1EUR", "in_use": "0%"}, "--in-use: '0%' is not allowed; a share above 0%"),
        (BOUGHT | {"purchase": ["t4=1EUR", "T4=2EUR"]}, "--purchase: t4 is given twice"),
        (BOUGHT | {"purchase": ["t4=1EUR", "generic-16=2EUR"]}, "--purchase: the price of t4 is one too many"),
        (BOUGHT | {"purchase": 3000}, "--purchase: '3000' is not an amount with its currency; write e.g. 100USD"),
        (
            BOUGHT | {"purchase": "t4=1EUR", "overrides": ["cluster.devices=t4,a10g"]},
            "--purchase: the servers of a10g have no price; give a10g=PRICE",
        ),
        (
            {"overrides": ["cluster.figures=t4.power=60W"]},
            "cluster.figures: t4.power changes energy alone, which is not asked for; what-if --pue 1.3 asks",
        ),
        (
            {"pue": 1.2, "overrides": ["cluster.figures=generic-16.pue=1.1"]},
            "--pue: cluster.figures gives generic-16.pue too; allowed: one of them",
        ),
        (BOUGHT | {"purchase": "0EUR"}, "--purchase: '0EUR' is not allowed; an amount above 0"),
        (BOUGHT | {"purchase": "x10=1EUR"}, "--purchase: unknown device or host 'x10'"),
        (BOUGHT | {"purchase": "a10g=1EUR"}, "--purchase: a10g is in no machine of the question; they have"),
    ],
)
def test_a_part_of_a_question_of_energy_is_refused(question: dict[str, Any], message: str) -> None:
    with pytest.raises(GcnsimError, match=re.escape(message)):
        gcnsim.what_if(**SMALL, **question)


def test_no_energy_is_asked_of_a_question_without_it() -> None:
    assert site_of(WhatIf(), hardware.PriceBook()) is None
    assert "energy" not in gcnsim.what_if(**SMALL).payload
