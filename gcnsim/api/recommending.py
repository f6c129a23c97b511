"""The recommendation in one call: options in, advice out.

The result can be had as text, as a page, as tables of other libraries, and in files.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gcnsim.api.answer import bandwidth_series
from gcnsim.api.question import base_of, graph_of, sections_of
from gcnsim.api.targets import site_of, target_of, those_measured
from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.processes import cores
from gcnsim.graph import Graph
from gcnsim.hardware import PriceBook
from gcnsim.methods import DEFAULT, method_type, methods
from gcnsim.planning.capacity_answer import Question
from gcnsim.planning.capacity_answer import recommend as _recommend
from gcnsim.planning.capacity_goal import CONFIDENCE, MINIMISED, Goal, read_budget
from gcnsim.planning.machines import Machines
from gcnsim.planning.recommend import Rule
from gcnsim.planning.study import Studies
from gcnsim.planning.what_if import Progress
from gcnsim.results import Advice, PointReport
from gcnsim.scenario import Scenario
from gcnsim.scenario.option import LIST, flag, listed
from gcnsim.scenario.question import keywords, options
from gcnsim.scenario.recommend import Recommend
from gcnsim.simulation import Result

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True, repr=False)
class Recommended:
    """A recommendation: the choice, the other options, and ways to print and write them.

    `repr` gives the verdict and the table, and notebooks show the same; `str` gives everything that the command line
    prints. told: the results as dataclasses. chosen: the simulated run of the choice. studies: what it was computed
    with.
    """

    told: Advice
    chosen: Result
    studies: Studies

    @property
    def payload(self) -> dict[str, Any]:
        """Plain data in the shape of the JSON schema `gcnsim.recommend/1`."""
        return self.told.payload()

    @property
    def rows(self) -> list[PointReport]:
        """The choice, the runner-up and the Pareto front of time and cost, the fastest first."""
        return list(self.told.rows)

    def __repr__(self) -> str:
        """The choice in a sentence, and the table."""
        from gcnsim.report.recommended import render_short_advice

        return render_short_advice(self.told)

    def __str__(self) -> str:
        """The text that the command line prints."""
        from gcnsim.report.recommended import render_recommended

        return render_recommended(self.told)

    def _repr_html_(self) -> str:
        """The choice and the table as HTML, for notebooks."""
        from gcnsim.report.recommended import render_advice_notebook

        return render_advice_notebook(self.told)

    def to_frame(self) -> Any:
        """The rows as a pandas DataFrame, with the columns of `to_csv`. Raises ScenarioError without pandas."""
        from gcnsim.report.comparison import columns_of_options

        try:
            pandas = importlib.import_module("pandas")
        except ModuleNotFoundError as error:
            raise ScenarioError("to_frame: needs pandas (pip install pandas); to_arrow() does without") from error
        return pandas.DataFrame(columns_of_options(self.told))

    def to_arrow(self) -> pa.Table:
        """The rows as an Arrow table, with the columns of `to_csv`."""
        import pyarrow

        from gcnsim.report.comparison import columns_of_options

        return pyarrow.table(columns_of_options(self.told))

    def to_csv(self, path: str | Path) -> None:
        """Write the rows to a CSV file. Raises FileError."""
        from gcnsim.report.comparison import write_options_csv

        write_options_csv(path, self.told)

    def to_html(self, path: str | Path, progress: Progress = lambda _: None) -> None:
        """Write the recommendation as one offline page: why, time against cost, where the time goes, what moves it, and
        of the choice the timeline and the time at other bandwidths, which this estimates.

        Raises FileError.
        """
        from gcnsim.report.figures.curves import Curve
        from gcnsim.report.page.sections import write_advice

        scenario = self.chosen.scenario
        series = bandwidth_series(self.studies, scenario, [scenario], progress)
        write_advice(path, self.told, Curve("bandwidth", series, (), (scenario.cluster.bandwidth,)), self.chosen)


@keywords(Recommend)
def recommend(recommendation: Recommend) -> Recommended:
    """Search for the machine and setting that meet the targets at the lowest cost, with the fewest GPUs or fastest.

    The recommended setting meets the targets in at least `confidence` of the random draws of the assumptions. Without
    `device` and `bandwidth`, the search covers cloud instances with a price, or those in `host`: one instance with some
    or all of its GPUs, up to four whole ones, or as many GPUs as `gpus` says. `target_hours` and `max_cost` concern a
    training of `iterations_needed`, or to `target_accuracy`. Settings that violate `min_sampling_rate` or
    `max_staleness` are recommended only if the iterations of their method are known. Above `limit` settings, Optuna
    selects that many.

    Raises GcnsimError with one line: the field, its value, and what is allowed.

    >>> import gcnsim
    >>> found = gcnsim.recommend(host="g4dn.xlarge", gpus=[1, 2], method="pipegcn", minimise="time")
    >>> found.rows[0].row.gpus
    2
    """
    graph = graph_of(recommendation)
    book = recommendation.prices or PriceBook()
    base = _scenario(recommendation, graph)
    named = _methods(recommendation) or those_measured((), base, recommendation.note)
    rule = Rule.of(named, recommendation.min_sampling_rate, recommendation.max_staleness)
    target = target_of(recommendation, rule.methods)
    strict = recommendation.min_sampling_rate is not None or recommendation.max_staleness is not None
    limit = recommendation.read("limit")
    site = site_of(recommendation)
    knobs = recommendation.knobs()
    if "method.epsilon" in knobs:
        knobs["method.rate"] = knobs["method.epsilon"]
    machines = _machines(recommendation, graph)
    question = Question(_goal(recommendation), machines, knobs, rule, book, target, limit, strict, site)
    _refuse_contradictions(question, recommendation)
    _refuse_set(question.machines, recommendation.overrides)
    own = graph if isinstance(graph, Graph) else None
    recommended = _recommend(
        base, question, recommendation.processes or cores(), own, recommendation.say, recommendation.note
    )
    return Recommended(*recommended)


def _scenario(question: Recommend, graph: str | Path | Graph | None, **machine: object) -> Scenario:
    """The question on a machine. machine: the values of fields that may have several."""
    sections = sections_of(question, graph, machine)
    if not (question.device or question.bandwidth):
        sections["cluster"].pop("gpus_per_server", None)
    # Knobs that are set belong to the methods named, the first of which has them.
    own = any(str(text).strip().startswith("method.") for text in question.overrides)
    name = next(iter(_methods(question)), DEFAULT) if own else DEFAULT
    return base_of(sections | {"method": {"name": name}}, question.overrides)


def _goal(question: Recommend) -> Goal:
    """What is asked for. Raises GcnsimError for a target without its unit."""
    if question.minimise not in MINIMISED:
        raise ScenarioError(f"--minimise: unknown {question.minimise!r}; {nearest(str(question.minimise), MINIMISED)}")
    budget = read_budget(question.budget, question.hours_per_day)
    confidence = question.read("confidence")
    goal = Goal(
        minimise=question.minimise,
        iteration_s=question.read("target_iteration"),
        epoch_s=question.read("target_epoch"),
        training_s=question.read("target_hours"),
        per_hour=None if budget is None else budget.per_hour,
        most_cost=question.read("max_cost"),
        confidence=CONFIDENCE if confidence is None else confidence,
        budget=budget,
        accuracy=question.read("target_accuracy"),
    )
    if confidence is not None and not goal.uncertain:
        raise ScenarioError("--confidence: is the chance of meeting a target; give one, e.g. --target-iteration 0.5s")
    return goal


def _methods(question: Recommend) -> list[str]:
    """The methods named in the question; empty if none are. Raises ScenarioError for an unknown one."""
    named = [name for item in listed(question.method) for name in (methods() if item == "all" else [item])]
    return [method_type(name).name for name in named]


def _machines(question: Recommend, graph: str | Path | Graph | None) -> Machines:
    """What to choose from. Raises GcnsimError for a name or a value that there is not."""
    own, bandwidths = listed(question.device), listed(question.bandwidth)
    first = {"bandwidth": bandwidths[0]} if bandwidths else {}
    return Machines(
        hosts=tuple(listed(question.host)),
        devices=tuple(own),
        servers=tuple(_scenario(question, graph, device=name, **first).cluster for name in own),
        bandwidths=question.values("bandwidth", "--bandwidth"),
        gpus=question.values("gpus", "--gpus"),
        gpus_per_server=question.gpus_per_server,
    )


def _refuse_contradictions(question: Question, requested: Recommend) -> None:
    """Raises ScenarioError for options that contradict each other, or of which one needs another."""
    goal, machines = question.goal, question.machines
    if goal.of_training and question.target is None:
        option = "--target-hours" if goal.training_s is not None else "--max-cost"
        raise ScenarioError(f"{option}: needs --iterations-needed, or --target-accuracy with --runs")
    if machines.hosts and (machines.devices or machines.bandwidths):
        other = "--device" if machines.devices else "--bandwidth"
        raise ScenarioError(f"--host: an instance has GPUs and a network of its own; {other} contradicts it")
    least, most = question.rule.min_sampling_rate, question.rule.max_staleness
    recorded = question.target is not None and question.target.by_method and not question.strict
    rate, tau = max(question.knobs.get("method.rate", (least,))), min(question.knobs.get("method.tau", (most,)))
    if not recorded and rate < least:
        raise ScenarioError(f"--epsilon: {rate:g} is below --min-sampling-rate {least:g}; allow it with {rate:g}")
    if not recorded and tau > most:
        raise ScenarioError(f"--tau: {tau} is more than --max-staleness {most}; allow it with {tau}")
    if goal.iteration_s is not None and goal.epoch_s is not None and goal.epoch_s < goal.iteration_s:
        raise ScenarioError(
            f"--target-epoch: {requested.target_epoch} is less than --target-iteration {requested.target_iteration}: "
            "an epoch "
            "has one iteration or more, so --target-iteration has no effect"
        )


def _refuse_set(machines: Machines, overrides: Sequence[str]) -> None:
    """Raises ScenarioError for a field that is set but chosen here: the choice would replace it."""
    chosen = {option.path: flag(name) for name, option in options(Recommend).items() if option.many == LIST}
    chosen |= {"method.rate": "--epsilon", "cluster.gpus_per_server": "--gpus-per-server"}
    described = {"device": machines.devices, "bandwidth": machines.bandwidths}
    if any(described.values()):
        for name in ("host", "gpus_per_server", *(name for name, values in described.items() if not values)):
            del chosen[f"cluster.{name}"]
    for text in overrides:
        path = str(text).partition("=")[0].strip()
        if path in chosen:
            raise ScenarioError(f"--set {path}: is a field that recommend chooses; allowed: {chosen[path]}")
