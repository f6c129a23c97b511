"""Parts of a question: when training is done, what may end it early, what its energy costs.

Also what a question with measured compute times asks where it names neither methods nor rates: what was measured.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import ON_DEMAND, SPOT
from gcnsim.methods import COMPARED, has_knob, method_type
from gcnsim.planning.energy import Site
from gcnsim.planning.failures import Failures
from gcnsim.planning.time_to_accuracy import ALL, Target
from gcnsim.planning.what_if import Progress
from gcnsim.scenario import Scenario
from gcnsim.scenario.machine import resolve_machine
from gcnsim.scenario.option import add_pair, flag
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
        return None
    if pricing == SPOT and given["interruptions"] is None:
        question.note("interruptions of spot servers are not counted; --interruptions gives their rate per hour")
    failures = None if first is None else Failures.of(first, pricing, **given)
    return Target.of(accuracy, question.runs, iterations, failures)


MOST: Final[Mapping[str, tuple[float, str]]] = {
    "electricity": (1e6, "1,000,000USD/kWh"),
    "gpu_power": (1e5, "100kW"),
}
"""The most of what a site is given, and as text: more is a slip."""


def site_of(question: Question) -> Site | None:
    """Where the machine stands; None where no energy is asked for. Raises ScenarioError or UnitError."""
    given = {name: question.read(name) for name in MOST}
    for name, (most, words) in MOST.items():
        if (given[name] or 0.0) > most:
            raise ScenarioError(f"{flag(name)}: {getattr(question, name)!r} is not allowed; at most {words}")
    if all(value is None for value in given.values()):
        return None
    return Site(given["electricity"], given["gpu_power"])


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
) -> dict[str, tuple[Any, ...]]:
    """The measured rates of the methods `names`, by the path of the knob, for knobs without a given value."""
    measured = resolve_machine(base.cluster).measured
    if measured is None:
        return {}
    fixed = {*fixed, *(text.partition("=")[0].strip().removeprefix("method.") for text in overrides)}
    own = [setting.knobs for setting in measured.settings if setting.method in names]
    rates = {
        f"method.{knob}": tuple(sorted({item[knob] for item in own if item.get(knob) is not None}))
        for knob in RATES
        if knob not in fixed and any(has_knob(name, knob) for name in names if name != "all")
    }
    return {path: values for path, values in rates.items() if values}
