"""When the training of a question is done, and what may end it early."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from gcnsim.core.errors import ScenarioError
from gcnsim.hardware import ON_DEMAND
from gcnsim.methods import method_type
from gcnsim.planning.failures import Failures
from gcnsim.planning.time_to_accuracy import ALL, Target
from gcnsim.scenario.option import add_pair, flag
from gcnsim.scenario.question import Question

FAILURES: Final = ("mtbf", "interruptions", "checkpoint", "restart")


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
    if accuracy is None and not iterations:
        if first is not None:
            raise ScenarioError(f"{first}: applies to a whole training; give --iterations-needed, or --target-accuracy")
        return None
    pricing = ON_DEMAND if question.prices is None else question.prices.pricing
    failures = None if first is None else Failures.of(first, pricing, **given)
    return Target.of(accuracy, question.runs, iterations, failures)
