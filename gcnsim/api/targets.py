"""Parts of a question: when training is done, what may end it early, what its energy and its machine cost.

Also what a question with measured compute times asks where it names neither methods nor rates: what was measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.spellings import known_name
from gcnsim.hardware import ON_DEMAND, SPOT, PriceBook, amount_in, devices, hosts, is_file, known_device
from gcnsim.methods import COMPARED, has_knob, method_type
from gcnsim.planning.energy import Site
from gcnsim.planning.failures import Failures
from gcnsim.planning.time_to_accuracy import ALL, Target
from gcnsim.planning.what_if import Progress
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.scenario.option import add_pair, flag, listed
from gcnsim.scenario.question import Question
from gcnsim.simulation import measured_methods

FAILURES: Final = ("mtbf", "interruptions", "checkpoint", "restart", "interruption_notice")


def target_of(question: Question, compared: Collection[str]) -> Target | None:
    """The end of the training that is asked for, with its failures. compared: the methods. Raises ScenarioError for a
    part of a question, or iterations of another method."""
    asked = question.iterations_needed
    iterations: dict[str, int] = {}
    for name, count in (asked if isinstance(asked, Mapping) else {} if asked is None else {ALL: asked}).items():
        if isinstance(count, bool) or not isinstance(count, int) or count < 1:
            of = "" if name == ALL else f"{name}="
            raise ScenarioError(f"--iterations-needed: {of}{count!r} is not allowed; a whole number of at least 1")
        method = name if name == ALL else method_type(name).name
        if method != ALL and method not in compared:
            raise ScenarioError(f"--iterations-needed: {name} is not compared; compared: {', '.join(compared)}")
        add_pair(iterations, method, count, "--iterations-needed")
    given = {name: question.read(name) for name in FAILURES}
    first = next((flag(name) for name, value in given.items() if value is not None), None)
    accuracy = question.read("target_accuracy")
    if accuracy is None and question.runs:
        raise ScenarioError("--runs: only valid with --target-accuracy")
    pricing = ON_DEMAND if question.prices is None else question.prices.pricing
    if accuracy is None and not iterations:
        if first is not None:
            raise ScenarioError(f"{first}: applies to a whole training; give --iterations-needed, or --target-accuracy")
        if pricing == SPOT and question.purchase:
            question.note(
                "interruptions of spot servers are not counted; they need a whole training (--iterations-needed) and "
                "--interruptions"
            )
        return None
    if pricing == SPOT and given["interruptions"] is None:
        question.note("interruptions of spot servers are not counted; --interruptions gives their rate per hour")
    failures = None if first is None else Failures.of(first, pricing, **given)
    return Target.of(accuracy, question.runs, iterations, failures)


MOST: Final = {
    "electricity": (1e6, "1,000,000 {currency} a kWh"),
    "carbon": (100.0, "100kg/kWh"),
    "gpu_power": (1e5, "100kW"),
}
"""The most of what a site is given, and as text: more is a slip."""

MOST_PAID: Final = 1e12


def site_of(question: Question, book: PriceBook) -> Site | None:
    """Where the machine stands and whether it may be bought; None where no energy is asked for. Raises ScenarioError
    for a part of a question."""
    given = {name: question.read(name) for name in ("carbon", "pue", "gpu_power")}
    own = {name: question.read(name) for name in ("life_years", "in_use")}
    amount = question.read("electricity")
    if amount is not None:
        amount += book.exchange.currency if amount[-1].isdigit() else ""
    price = None if amount is None else amount_in(amount, "--electricity", book.exchange, per_hour=False)
    bought = [] if question.purchase in (None, (), []) else listed(question.purchase)
    if bought and (price is None or None in own.values()):
        raise ScenarioError("--purchase: needs --electricity, --life-years and --in-use, all of them")
    if not bought and (first := next((name for name, value in own.items() if value is not None), None)):
        raise ScenarioError(f"{flag(first)}: is of a bought server; give --purchase")
    if price is None and all(value is None for value in given.values()):
        return None
    amounts = {"electricity": price, "carbon": given["carbon"], "gpu_power": given["gpu_power"]}
    for name, (most, words) in MOST.items():
        if (amounts[name] or 0.0) > most:
            limit = words.format(currency=book.exchange.currency)
            raise ScenarioError(f"{flag(name)}: {getattr(question, name)!r} is not allowed; at most {limit}")
    if not bought:
        return Site(price=price, **given)
    purchases: dict[str, float] = {}
    for text in bought:
        name, paid = _purchase(text, book)
        if name in purchases:
            raise ScenarioError(f"--purchase: {name or 'any server'} is given twice")
        purchases[name] = paid
    return Site(price=price, **given, purchases=purchases, **own)


def _purchase(text: str, book: PriceBook) -> tuple[str, float]:
    """What may be bought, "" for any server, and its price in the currency of costs."""
    name, _, price = (part.strip() for part in str(text).rpartition("="))
    paid = amount_in(price, "--purchase", book.exchange, per_hour=False)
    if not 0 < paid <= MOST_PAID:
        most = f"{MOST_PAID:,.0f} {book.exchange.currency}"
        raise ScenarioError(f"--purchase: {price!r} is not allowed; an amount above 0, at most {most}")
    if not name or is_file(name):
        return name, paid
    known = known_device(name) or known_name(name, hosts())
    if known is None:
        raise ScenarioError(f"--purchase: unknown device or host {name!r}; {nearest(name, {*devices(), *hosts()})}")
    return known, paid


RATES: Final = ("epsilon", "rate")


def those_measured(names: Sequence[str], base: Scenario, notice: Progress) -> list[str]:
    """The compared methods that the measured file contains, or all that it contains; empty without such a file.

    notice: called if they are not all of `names` (default: those usually compared).
    """
    measured = resolve_machine(base.cluster).measured
    if measured is None:
        return []
    usual, known = names or COMPARED, measured_methods(measured)
    shared_names = [name for name in usual if name in known] or list(known)
    if shared_names != list(usual):
        notice(f"methods: {', '.join(shared_names)}, of which {measured.path} has times")
    return shared_names


def rates_measured(
    names: Sequence[str], base: Scenario, fixed: Collection[str], overrides: Sequence[str]
) -> dict[str, list[Any]]:
    """The measured rates of the methods `names`, by knob, for knobs without a given value."""
    measured = resolve_machine(base.cluster).measured
    if measured is None:
        return {}
    fixed = {*fixed, *(text.partition("=")[0].strip().removeprefix("method.") for text in overrides)}
    own = [setting.knobs for setting in measured.settings if setting.method in names]
    rates = {
        knob: sorted({item[knob] for item in own if item.get(knob) is not None})
        for knob in RATES
        if knob not in fixed and any(has_knob(name, knob) for name in names if name != "all")
    }
    return {knob: values for knob, values in rates.items() if values}
