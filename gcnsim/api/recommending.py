"""The recommendation in one call: options in, advice out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gcnsim.api.question import Some, _base, _knob, _list, _source, _target
from gcnsim.capacity import COST, LIMIT, MINIMISED, Goal, Machines, Permitted, Question
from gcnsim.capacity import recommend as _recommend
from gcnsim.errors import ScenarioError, UnitError, nearest
from gcnsim.graph import Graph, from_object
from gcnsim.hardware import PriceBook, amount_in, network_bandwidth
from gcnsim.methods import COMPARED, method_type, methods
from gcnsim.planning import Progress
from gcnsim.processes import cores
from gcnsim.results import Advice
from gcnsim.scenario import Scenario, parse_cache
from gcnsim.simulation import Result
from gcnsim.units import seconds as parse_seconds


@dataclass(frozen=True, slots=True, repr=False)
class Recommended:
    """What was recommended. told: what JSON and text say of it; chosen: the simulated run of the choice."""

    told: Advice
    chosen: Result

    @property
    def payload(self) -> dict[str, Any]:
        """Plain data in the shape of the JSON schema `gcnsim.recommend/1`."""
        return self.told.payload()

    def __repr__(self) -> str:
        """The choice in a sentence."""
        return self.told.verdict

    def __str__(self) -> str:
        """The text that the command line prints."""
        from gcnsim.report import render_recommended

        return render_recommended(self.told)

    def to_html(self, path: str | Path) -> None:
        """Write the recommendation as one offline page: why, time against cost, what moves the time.

        Raises FileError.
        """
        from gcnsim.report import write_advice

        write_advice(path, self.told)


def recommend(
    *,
    dataset: str | None = None,
    graph: Any = None,
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
    minimise: str = COST,
    target_iteration: str | None = None,
    target_epoch: str | None = None,
    target_hours: str | None = None,
    budget_per_hour: str | None = None,
    max_cost: str | None = None,
    target_accuracy: float | None = None,
    runs: Sequence[str | Path] = (),
    target_iterations: Mapping[str, int] | None = None,
    least_epsilon: float | None = None,
    most_tau: int | None = None,
    prices: PriceBook | None = None,
    limit: int = LIMIT,
    iterations: int = 30,
    seed: int = 0,
    overrides: Sequence[str] = (),
    progress: Progress = lambda _: None,
    notice: Progress = lambda _: None,
    processes: int | None = None,
) -> Recommended:
    """The machine and setting of least cost, fewest GPUs or shortest time (minimise) that meets the targets.

    Without device and bandwidth: instances of the catalogue that have a price, or those of host, one to four of each,
    or as many as gpus says. Targets have units (`0.5s`, `10h`, `10USD/h`, `100USD`); hours and max_cost are of a
    training to target_accuracy, as of `what_if`. Settings that sample less than least_epsilon (1) or use values more
    than most_tau (1) iterations old are not recommended, but for those whose iterations to the accuracy are known.
    limit: settings of which bounds are computed; of more, Optuna picks so many. The rest is as of `what_if`.
    Raises GcnsimError (one line: path, value, what is allowed).
    """
    return _answered(SimpleNamespace(**locals()))


def _answered(given: SimpleNamespace) -> Recommended:
    graph = given.graph
    if graph is not None and not isinstance(graph, Graph | str | Path):
        graph = from_object(graph)
    book = given.prices or PriceBook()
    target = _target(given.target_accuracy, given.runs, given.target_iterations or {})
    question = Question(_goal(given, book), _machines(given), _permitted(given), book, target, _limit(given.limit))
    _refuse_contradictions(question, given)
    _refuse_set(question.machines, given.overrides)
    own = graph if isinstance(graph, Graph) else None
    found = _recommend(_scenario(given, graph), question, given.processes or cores(), own, given.progress, given.notice)
    return Recommended(found.advice, found.chosen)


def _scenario(given: SimpleNamespace, graph: str | Path | Graph | None) -> Scenario:
    source, file = _source(graph)
    named = {name: getattr(given, name) for name in ("dataset", "model", "layers", "hidden")}
    sections = {
        "cluster": {"gpus_per_server": given.gpus_per_server if given.device or given.bandwidth else None},
        "workload": named | {source: file},
        "method": {"name": COMPARED[0]},
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
    return Goal(
        minimise=given.minimise,
        iteration_s=times["target_iteration"],
        epoch_s=times["target_epoch"],
        training_s=times["target_hours"],
        per_hour=_amount("budget_per_hour", given.budget_per_hour, book, per_hour=True),
        most_cost=_amount("max_cost", given.max_cost, book, per_hour=False),
        currency=book.exchange.currency,
    )


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


def _amount(name: str, text: str | None, book: PriceBook, *, per_hour: bool) -> float | None:
    if text is None:
        return None
    option = f"--{name.replace('_', '-')}"
    found = amount_in(text, option, book.exchange, per_hour=per_hour)
    if found <= 0:
        raise ScenarioError(f"{option}: {text!r} is not allowed; an amount above 0")
    return found


def _machines(given: SimpleNamespace) -> Machines:
    """What to choose from. Raises GcnsimError for a name or a value that there is not."""
    lists = {name: _given_list(getattr(given, name)) for name in ("host", "device", "bandwidth", "gpus", "method")}
    knobs = {name: _given_list(getattr(given, name)) for name in ("tau", "epsilon", "cache")}
    named = [name for each in lists["method"] or COMPARED for name in (methods() if each == "all" else [each])]
    named = [method_type(name).name for name in named]
    for value in lists["gpus"]:
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ScenarioError(f"--gpus: {value!r} is not a whole number of at least 1")
    return Machines(
        hosts=tuple(lists["host"]),
        devices=tuple(lists["device"]),
        bandwidths=tuple(network_bandwidth(each) for each in lists["bandwidth"]),
        gpus=tuple(lists["gpus"]),
        gpus_per_server=given.gpus_per_server,
        methods=tuple(dict.fromkeys(named)),
        taus=tuple(knobs["tau"]),
        rates=tuple(_knob("epsilon", each) for each in knobs["epsilon"]),
        caches=tuple(parse_cache(each, "method.cache") for each in knobs["cache"]),
    )


def _permitted(given: SimpleNamespace) -> Permitted:
    least, most = given.least_epsilon, given.most_tau
    if least is not None and (isinstance(least, bool) or not 0 < least <= 1):
        raise ScenarioError(f"--least-epsilon: {least!r} is not allowed; a number above 0 and at most 1")
    if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 0):
        raise ScenarioError(f"--most-tau: {most!r} is not allowed; a whole number of at least 0")
    explicit = least is not None or most is not None
    return Permitted(1.0 if least is None else least, 1 if most is None else most, explicit)


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
    least, most = question.permitted.least_epsilon, question.permitted.most_tau
    if given.least_epsilon is not None and machines.rates and max(machines.rates) < least:
        raise ScenarioError(f"--epsilon: {max(machines.rates):g} is below --least-epsilon {least:g}")
    if given.most_tau is not None and machines.taus and min(machines.taus) > most:
        raise ScenarioError(f"--tau: {min(machines.taus)} is more than --most-tau {most}")
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
