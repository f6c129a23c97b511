"""Energy of settings, its cost and CO2, and buying against renting, as text that tables and pages share."""

from __future__ import annotations

from gcnsim.core.errors import plural
from gcnsim.core.units import ELECTRICITY, ENERGY, MASS, POWER, format_number, range_text
from gcnsim.planning.capacity_goal import money
from gcnsim.report.answer.rows import range_of, row_labels
from gcnsim.results import EnergyReport, EnergyRow, OwnOrRent, WhatIf


def energy_of(answer: WhatIf) -> list[tuple[str, str]]:
    """Energy of each row, beside its label, buying each machine, and what was assumed; empty if not asked."""
    report = answer.energy
    if report is None:
        return []
    labels = row_labels(answer, apart=report.recommended is not None)
    rows = [*report.rows, *([] if report.recommended is None else [report.recommended])]
    pairs = [(label, energy_text(row, report)) for label, row in zip(labels, rows, strict=True)]
    # Rows of one machine differ by their electricity and interruptions alone: one line for each machine, of the
    # recommended row or else of its fastest.
    best = answer.recommendation.row
    asked = [*answer.results, *([] if report.recommended is None else [best])]
    machines: dict[tuple[object, ...], tuple[str, OwnOrRent]] = {}
    for label, row, own in sorted(
        ((label, row, found.own) for label, row, found in zip(labels, asked, rows, strict=True) if found.own),
        key=lambda item: (item[1] is not best and not item[1].recommended, item[1].epoch_s),
    ):
        key = (row.device, row.host, own.purchase, own.servers, own.gpus_per_server, own.rented_gpus)
        machines.setdefault(key, (label, own))
    owned = [(f"{label}, bought", own_text(own, report)) for label, own in machines.values()]
    return [*pairs, *owned, *assumed_power(report)]


def assumed_power(report: EnergyReport) -> list[tuple[str, str]]:
    """What is assumed of the power, with its ranges."""
    words = [f"{item.name} {item.value} ({range_of(item)})" for item in report.assumptions]
    return [("assumed", ", ".join(words))] if words else []


def energy_text(row: EnergyRow, report: EnergyReport) -> str:
    """Energy of an iteration and of the training, its cost and CO2; or why they are unknown."""
    if row.joules is None or row.watts is None:
        return row.unknown or "not known"
    ends = range_text(row.joules_low, row.joules_high, ENERGY.shown_as)
    text = f"{ENERGY.shown_as(row.joules)}{ends} an iteration, {POWER.shown_as(row.watts)} on average"
    if row.kwh is None:
        small = _money_and_mass(row.cost_per_1000_iterations, row.kg_co2_per_1000_iterations, report)
        return f"{text}{small} per 1,000 iterations" if small else text
    ends = range_text(row.kwh_low, row.kwh_high, ELECTRICITY.shown_as)
    if row.kwh_low is not None and row.kwh_high is None:
        ends = f" ({ELECTRICITY.shown_as(row.kwh_low)} to practically never)"
    return f"{text}; until done {ELECTRICITY.shown_as(row.kwh)}{ends}{_money_and_mass(row.cost, row.kg_co2, report)}"


def _money_and_mass(cost: float | None, carbon: float | None, report: EnergyReport) -> str:
    paid = "" if cost is None else f", {money(cost)} {report.currency}"
    return paid if carbon is None else f"{paid}, {MASS.shown_as(carbon)} CO2"


def own_text(own: OwnOrRent, report: EnergyReport) -> str:
    """An hour of a bought and of a rented machine, and the months until buying pays off."""
    ends = range_text(own.owned_per_hour_low, own.owned_per_hour_high, money)
    years = own.life_months / 12.0
    life = "1 year" if years == 1.0 else f"{years:g} years"
    text = f"{money(own.owned_per_hour)} {report.currency} an hour of use{ends} over {life}"
    text += f" ({plural(own.servers, 'server')} of {plural(own.gpus_per_server, 'GPU')})"
    if own.rented_gpus is None:
        return f"{text}; no rent is known"
    gpus = plural(own.rented_gpus, "GPU")
    if own.rented_per_hour is None or own.rented_hours is None:
        return f"{text}: a rented machine ({gpus}) is practically never done"
    text += f", rented {money(own.rented_per_hour)} ({gpus}"
    longer = own.rented_hours - 1.0
    text += f"; with interruptions {format_number(100.0 * longer, 2)} % longer)" if longer > 5e-5 else ")"
    if own.months is None:
        return f"{text}: buying never pays"
    late = own.months_high is None or own.months_high > own.life_months
    last = "practically never" if own.months_high is None else months_text(own.months_high)
    after = f"{months_text(own.months)} ({months_text(own.months_low or 0.0)} to {last})"
    if own.months > own.life_months:
        return f"{text}: buying would pay off after {after}, not within its life"
    return f"{text}: buying pays off after {after}" + (", perhaps not within its life" if late else "")


def months_text(months: float) -> str:
    """Months for people, in years from ten on."""
    return f"{format_number(months)} months" if months < 119.5 else f"{format_number(months / 12.0)} years"
