"""The recommendation in one call: options in, advice out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gcnsim.api.measured import those_measured
from gcnsim.api.question import Some, _base, _knob, _list, _source, _target
from gcnsim.api.recommended import Recommended
from gcnsim.api.scenario_file import read_sizes
from gcnsim.capacity import CONFIDENCE, COST, LIMIT, MINIMISED, Goal, Machines, Question, read_budget
from gcnsim.capacity import recommend as _recommend
from gcnsim.errors import ScenarioError, UnitError, nearest
from gcnsim.graph import Graph, from_object
from gcnsim.hardware import PriceBook, amount_in, network_bandwidth
from gcnsim.methods import DEFAULT, method_type, methods
from gcnsim.planning import Progress, Rule
from gcnsim.processes import cores
from gcnsim.scenario import Scenario, parse_cache
from gcnsim.units import fraction
from gcnsim.units import seconds as parse_seconds


def recommend(
    *,
    dataset: str | None = None,
    graph: Any = None,
    sizes: Mapping[str, Any] | None = None,
    host: Some[str] | None = None,
    device: Some[str] | None = None,
    bandwidth: Some[str] | None = None,
    gpus: Some[int] | None = None,
    gpus_per_server: int | None = None,
    method: Some[str] | None = None,
    tau: Some[int] | None = None,
    epsilon: Some[float] | None = None,
    cache: Some[str] | None = None,
    model: str | None = None,
    layers: int | None = None,
    hidden: int | None = None,
    measured_compute: str | Path | None = None,
    minimise: str = COST,
    target_iteration: str | None = None,
    target_epoch: str | None = None,
    target_hours: str | None = None,
    budget: str | None = None,
    hours_per_day: float | None = None,
    confidence: float | str | None = None,
    max_cost: str | None = None,
    target_accuracy: float | None = None,
    runs: Sequence[str | Path] = (),
    target_iterations: Mapping[str, int] | None = None,
    min_sampling_rate: float | None = None,
    max_staleness: int | None = None,
    prices: PriceBook | None = None,
    limit: int = LIMIT,
    iterations: int = 30,
    seed: int = 0,
    overrides: Sequence[str] = (),
    transport: str | None = None,
    progress: Progress = lambda _: None,
    notice: Progress = lambda _: None,
    processes: int | None = None,
) -> Recommended:
    """The machine and setting of least cost, fewest GPUs or shortest time (minimise) that meets the targets.

    A setting is recommended that meets the targets with a chance of at least confidence (90 %): in so many of the joint
    draws of the assumptions. Without device and bandwidth: instances of the catalogue that have a price, or those of
    host, parts of one and one to four whole ones, or as many GPUs as gpus says. Targets have units (`0.5s`, `10h`,
    `100USD`); hours and max_cost are of a training to target_accuracy, as of `what_if`. budget: of the machine, an
    hour, day, month or year (`500USD/month`), at hours_per_day (24). Settings that sample less than min_sampling_rate
    (0.1) or use values more than max_staleness (2) iterations old are not recommended, but for those whose iterations
    to the accuracy are known. limit: settings of which bounds are computed; of more, Optuna picks so many. The rest is
    as of `what_if`.
    Raises GcnsimError (one line: path, value, what is allowed).
    """
    return _answered(SimpleNamespace(**locals()))


def _answered(given: SimpleNamespace) -> Recommended:
    graph = given.graph
    if graph is not None and not isinstance(graph, Graph | str | Path):
        graph = from_object(graph)
    book = given.prices or PriceBook()
    target = _target(given.target_accuracy, given.runs, given.target_iterations or {})
    base = _scenario(given, graph)
    named = _methods(given) or those_measured((), base, given.notice)
    rule = Rule.of(named, given.min_sampling_rate, given.max_staleness)
    strict = given.min_sampling_rate is not None or given.max_staleness is not None
    limit = _limit(given.limit)
    question = Question(_goal(given, book), _machines(given), rule, book, target, limit, strict)
    _refuse_contradictions(question, given)
    _refuse_set(question.machines, given.overrides)
    own = graph if isinstance(graph, Graph) else None
    found = _recommend(base, question, given.processes or cores(), own, given.progress, given.notice)
    return Recommended(found.advice, found.chosen)


def _scenario(given: SimpleNamespace, graph: str | Path | Graph | None) -> Scenario:
    source, file = _source(graph)
    named = {name: getattr(given, name) for name in ("dataset", "model", "layers", "hidden")} | read_sizes(given.sizes)
    sections = {
        "cluster": {
            "gpus_per_server": given.gpus_per_server if given.device or given.bandwidth else None,
            "transport": given.transport,
            "measured_compute": given.measured_compute and str(given.measured_compute),
        },
        "workload": named | {source: file},
        "method": {"name": DEFAULT},
        "run": {"iterations": given.iterations, "seed": given.seed},
    }
    return _base(sections, given.overrides)


def _goal(given: SimpleNamespace, book: PriceBook) -> Goal:
    """What is asked for. Raises GcnsimError for a target without its unit."""
    if given.minimise not in MINIMISED:
        raise ScenarioError(f"--minimise: unknown {given.minimise!r}; {nearest(str(given.minimise), MINIMISED)}")
    times = {
        name: _seconds(name, getattr(given, name)) for name in ("target_iteration", "target_epoch", "target_hours")
    }
    budget = read_budget(given.budget, given.hours_per_day, book.exchange)
    goal = Goal(
        minimise=given.minimise,
        iteration_s=times["target_iteration"],
        epoch_s=times["target_epoch"],
        training_s=times["target_hours"],
        per_hour=None if budget is None else budget.per_hour,
        most_cost=_amount("max_cost", given.max_cost, book),
        currency=book.exchange.currency,
        confidence=CONFIDENCE if given.confidence is None else _confidence(given.confidence),
        budget=budget,
    )
    if given.confidence is not None and not goal.uncertain:
        raise ScenarioError("--confidence: is the chance of meeting a target; give one, e.g. --target-iteration 0.5s")
    return goal


def _confidence(value: Any) -> float:
    """A chance, as a share or as text with its unit."""
    try:
        found = fraction(value) if isinstance(value, str) else value
    except UnitError as error:
        raise UnitError(f"--confidence: {error}") from None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1:
        raise ScenarioError(f"--confidence: {value!r} is not allowed; a share above 0% and at most 100%")
    return float(found)


def _seconds(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        found = parse_seconds(text)
    except UnitError as error:
        raise UnitError(f"--{name.replace('_', '-')}: {error}") from None
    if found == 0:
        raise ScenarioError(f"--{name.replace('_', '-')}: {text!r} is not allowed; a time above 0")
    return found


def _amount(name: str, text: str | None, book: PriceBook) -> float | None:
    if text is None:
        return None
    option = f"--{name.replace('_', '-')}"
    found = amount_in(text, option, book.exchange, per_hour=False)
    if found <= 0:
        raise ScenarioError(f"{option}: {text!r} is not allowed; an amount above 0")
    return found


def _methods(given: SimpleNamespace) -> list[str]:
    """The methods named, none where nobody named one. Raises ScenarioError for one that there is not."""
    named = [name for each in _given_list(given.method) for name in (methods() if each == "all" else [each])]
    return [method_type(name).name for name in named]


def _machines(given: SimpleNamespace) -> Machines:
    """What to choose from. Raises GcnsimError for a name or a value that there is not."""
    lists = {name: _given_list(getattr(given, name)) for name in ("host", "device", "bandwidth", "gpus")}
    knobs = {name: _given_list(getattr(given, name)) for name in ("tau", "epsilon", "cache")}
    for value in lists["gpus"]:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ScenarioError(f"--gpus: {value!r} is not a whole number of at least 1")
    return Machines(
        hosts=tuple(lists["host"]),
        devices=tuple(lists["device"]),
        bandwidths=tuple(network_bandwidth(each) for each in lists["bandwidth"]),
        gpus=tuple(lists["gpus"]),
        gpus_per_server=given.gpus_per_server,
        taus=tuple(knobs["tau"]),
        rates=tuple(_knob("epsilon", each) for each in knobs["epsilon"]),
        caches=tuple(parse_cache(each, "method.cache") for each in knobs["cache"]),
    )


def _limit(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ScenarioError(f"--limit: {value!r} is not allowed; a whole number of at least 1")
    return value


def _refuse_contradictions(question: Question, given: SimpleNamespace) -> None:
    """Raises ScenarioError for options that contradict each other, or of which one needs another."""
    goal, machines = question.goal, question.machines
    if goal.of_training and question.target is None:
        option = "--target-hours" if goal.training_s is not None else "--max-cost"
        raise ScenarioError(
            f"{option}: is of a training; give its accuracy (--target-accuracy) with --runs or --target-iterations"
        )
    if machines.hosts and (machines.devices or machines.bandwidths):
        other = "--device" if machines.devices else "--bandwidth"
        raise ScenarioError(f"--host: an instance has GPUs and a network of its own; {other} contradicts it")
    least, most = question.rule.min_sampling_rate, question.rule.max_staleness
    recorded = question.target is not None and not question.strict
    if not recorded and machines.rates and max(machines.rates) < least:
        rate = max(machines.rates)
        raise ScenarioError(f"--epsilon: {rate:g} is below --min-sampling-rate {least:g}; allow it with {rate:g}")
    if not recorded and machines.taus and min(machines.taus) > most:
        tau = min(machines.taus)
        raise ScenarioError(f"--tau: {tau} is more than --max-staleness {most}; allow it with {tau}")
    if goal.iteration_s is not None and goal.epoch_s is not None and goal.epoch_s < goal.iteration_s:
        raise ScenarioError(
            f"--target-epoch: {given.target_epoch} is less than --target-iteration {given.target_iteration}: an epoch "
            "has one iteration or more, so the latter says nothing"
        )


def _refuse_set(machines: Machines, overrides: Sequence[str]) -> None:
    """Raises ScenarioError for a field that is set but chosen here: the choice would replace it."""
    chosen = {
        "cluster.gpus": "--gpus",
        "method.name": "--method",
        "method.tau": "--tau",
        "method.epsilon": "--epsilon",
        "method.rate": "--epsilon",
        "method.cache": "--cache",
    }
    described = bool(machines.devices or machines.bandwidths)
    if not described:
        chosen |= {"cluster.host": "--host", "cluster.gpus_per_server": "--gpus-per-server"}
    if machines.devices or not described:
        chosen |= {"cluster.device": "--device"}
    if machines.bandwidths or not described:
        chosen |= {"cluster.bandwidth": "--bandwidth"}
    for text in overrides:
        path = str(text).partition("=")[0].strip()
        if path in chosen:
            raise ScenarioError(f"--set {path}: is chosen, so it would be replaced; allowed: {chosen[path]}")


def _given_list(value: Any) -> list[Any]:
    return [] if value is None else _list(value)
