"""Time to accuracy: iterations that recorded runs needed, times predicted seconds per iteration.

How many iterations a method needs is not simulated. It is read off training runs of the same graph, model, method and
knobs, on any machine: staleness and sampling decide it, hardware does not. Where no run was recorded, the answer says
so, and in what the nearest run differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gcnsim.cost.checkpoints import best_interval, expected_time
from gcnsim.errors import ScenarioError, plural
from gcnsim.hardware import PriceBook
from gcnsim.ids import Iteration, Seconds
from gcnsim.knobs import BOUNDARY_SCALE, COLD_START, ESTIMATOR, Knob
from gcnsim.planning.candidate import Estimate
from gcnsim.planning.rows import cost_of, rent_of, usd_of
from gcnsim.planning.study_cache import StudyCache
from gcnsim.results import FailuresReport, TargetReport, TargetRow
from gcnsim.scenario import Scenario
from gcnsim.sources import Model, Source, resolve_model
from gcnsim.units import FRACTION

if TYPE_CHECKING:
    from gcnsim.runs.recorded_run import LearningCurve

UNQUERIED: Final[Mapping[str, Knob]] = {knob.name: knob for knob in (ESTIMATOR, BOUNDARY_SCALE, COLD_START)}
"""Knobs of training that no question has: a run that moved one answers no question."""

DECIDING: Final = ("tau", "epsilon", "sampler", "refresh", "rate")
"""Knobs that decide accuracy, of those that recorded runs have too."""

RECIPE: Final = (
    "optimizer", "lr", "weight_decay", "dropout", "dropout_order", "heads", "bias", "sage_mean", "feature_norm",
    "sage_aggregator", "random_features", "random_classes", "dtype",
)  # fmt: skip
"""What decides accuracy too and a question does not say, or need not: runs are put together only where they agree."""

BEFORE: Final = {"sage_aggregator": "mean"}
"""What options stood at before there were such."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is trained. graph: its hash, None where only statistics of it are known; name: what it is called."""

    graph: str | None
    name: str
    model: Model

    @classmethod
    def of(cls, accesses: Source, scenario: Scenario, target: Target) -> Subject:
        """What the scenario trains; its graph matters where recorded runs tell of the target."""
        model = resolve_model(scenario.workload, accesses.declared)
        return cls(accesses.graph_hash if target.curves else None, accesses.name, model)


@dataclass(frozen=True, slots=True)
class Failures:
    """What ends a training early. per_hour: failures and interruptions of one server; checkpoint_s: to write a
    checkpoint; restart_s: from a failure until training goes on."""

    per_hour: float
    checkpoint_s: Seconds
    restart_s: Seconds

    @classmethod
    def of(
        cls,
        option: str,
        mtbf: Seconds | None,
        interruptions: float | None,
        checkpoint: Seconds | None,
        restart: Seconds | None,
    ) -> Failures:
        """What options say, of which `option` is the first. mtbf: of a server; interruptions: of it per hour. Raises
        ScenarioError where something is left open: no rate is assumed."""
        per_hour = (0.0 if mtbf is None else 3600.0 / mtbf) + (interruptions or 0.0)
        if not per_hour or checkpoint is None or restart is None:
            raise ScenarioError(f"{option}: failures need --checkpoint, --restart, and --mtbf or --interruptions")
        return cls(per_hour, checkpoint, restart)

    def report(self, row: TargetRow, servers: int) -> FailuresReport:
        """A row's training with checkpoints as often as is best; `row` has seconds."""
        mtbf_s = 3600.0 / (self.per_hour * servers)
        work = row.seconds
        assert work is not None
        interval = min(best_interval(self.checkpoint_s, mtbf_s), work)

        def in_all(seconds: Seconds | None) -> Seconds | None:
            if seconds is None:
                return None
            found = expected_time(seconds, interval, self.checkpoint_s, self.restart_s, mtbf_s)
            return found if isfinite(found) else None

        total = in_all(work)
        return FailuresReport(
            checkpoint_every_s=interval,
            seconds=total,
            seconds_low=in_all(row.seconds_low),
            seconds_high=in_all(row.seconds_high),
            failures=None if total is None else total / mtbf_s,
            cost=None if total is None or row.cost is None else row.cost * total / work,
        )


@dataclass(frozen=True, slots=True)
class Target:
    """An accuracy (share of one, on validation nodes) to be reached, and the runs that may tell when it is.

    given: iterations by method, from a publication or a guess of the asker's, for rows of which no run tells.
    failures: what ends a training early, None where that is not asked.
    """

    accuracy: float
    curves: tuple[LearningCurve, ...]
    given: Mapping[str, Iteration] = field(default_factory=dict)
    failures: Failures | None = None

    @classmethod
    def of(cls, accuracy: float, folders: Sequence[str | Path], given: Mapping[str, Iteration] | None = None) -> Target:
        """The target with the runs in `folders`. Raises FileError for a folder without a readable run."""
        from gcnsim.runs.recorded_run import read_learning_curve

        return cls(accuracy, tuple(read_learning_curve(folder) for folder in folders), given or {})

    def reached(self, scenario: Scenario, subject: Subject) -> tuple[Iteration | None, str]:
        """Iterations until the accuracy, and from where: a recorded run, else what was given, labelled so; None and
        why, where neither says."""
        count, source = self.recorded(scenario, subject)
        given = self.given.get(scenario.method.name)
        if count is None and given is not None:
            return given, f"your figure; {source}"
        return count, source

    def recorded(self, scenario: Scenario, subject: Subject) -> tuple[Iteration | None, str]:
        """Iterations until the accuracy was first seen in a run of the scenario's method, knobs, graph and model, the
        median over runs, and from where; None and why, where no run says."""
        mine = [curve for curve in self.curves if curve.options["method"] == scenario.method.name]
        if not mine:
            return None, "no recorded run of this method"
        apart = [list(_differences(curve, scenario, subject)) for curve in mine]
        fitting = [curve for curve, found in zip(mine, apart, strict=True) if not found]
        if not fitting:
            return None, f"no recorded curve for it: {'; '.join(sorted(apart, key=len)[0])}"
        recipes = [{name: repr(curve.options.get(name, BEFORE.get(name))) for name in RECIPE} for curve in fitting]
        mixed = [name for name in RECIPE if len({recipe[name] for recipe in recipes}) > 1]
        if mixed:
            return None, f"the runs differ among themselves in {', '.join(mixed)}; give those of one recipe"
        return _first(fitting, self.accuracy)


def _first(fitting: Sequence[LearningCurve], accuracy: float) -> tuple[Iteration | None, str]:
    """The median of the runs' iterations to `accuracy`, as finely as they were evaluated."""
    several = [curve for curve in fitting if len(curve.points) > 1]
    if not several:
        (done, share) = max(curve.points[0] for curve in fitting)
        return None, f"iterations needed are not known: evaluated once alone, {100 * share:.1f} % after {done}"
    found = [(curve, curve.first(accuracy)) for curve in several]
    # Accuracy was first seen at `count`; it may have been reached any time after the evaluation before.
    reached = sorted(
        (count, curve.path.name, count - max((done for done, _ in curve.points if done < count), default=0))
        for curve, count in found
        if count is not None
    )
    if len(reached) * 2 <= len(found):
        best = max(curve.best for curve in several)
        return None, f"not reached: at most {100 * best:.1f} % in {plural(len(several), 'recorded run')}"
    count, name, step = reached[(len(reached) - 1) // 2]
    whence = name if len(reached) == 1 else f"median of {len(reached)} runs, {name}"
    return count, whence if step == 1 else f"{whence}, to within {step} iterations"


def _differences(curve: LearningCurve, scenario: Scenario, subject: Subject) -> Iterator[str]:
    """In what the run is another one than asked, as words."""
    options, method = curve.options, scenario.method
    if subject.graph is None:
        yield f"{subject.name} is known by statistics, the run's graph is {curve.graph['name']}"
    elif subject.graph != curve.graph["hash"]:
        yield _apart("graph", curve.graph["name"], subject.name, "another of that name")
    workload, model = scenario.workload, subject.model
    widths = (model.features, *(shape.d_out for shape in model.shapes))
    wanted = _trained(model.name, widths, workload.norm, workload.preaggregate, workload.dense_layers)
    # A run's layers all sum neighbours.
    ran = _trained(options.get("model"), curve.widths, options.get("norm"), options.get("preaggregate"), 0)
    yield from (_apart(name, ran[name], value) for name, value in wanted.items() if ran[name] != value)
    # A cache decides no accuracy, it keeps rows that never change.
    knobs = {name: value for name, value in method.values().items() if name in DECIDING}
    usual = {name: knob.default for name, knob in UNQUERIED.items()}
    for name, value in options["knobs"].items():
        expected = knobs.get(name, usual.get(name, value))
        if value != expected:
            yield _apart(name, value, expected)
    # A question's GraphSAGE has the mean; older runs do not say which they had, as there was no other.
    aggregator = options.get("sage_aggregator", "mean")
    if aggregator != "mean":
        yield _apart("sage_aggregator", aggregator, "mean")
    # What is dropped is compared where the question says it.
    dropout = workload.dropout
    if dropout is not None and (ran_dropout := float(options.get("dropout", 0.0))) != dropout:
        yield _apart("dropout", FRACTION.exact(ran_dropout), FRACTION.exact(dropout))
    elif dropout and options["dropout_order"] != workload.dropout_order:
        yield _apart("dropout_order", options["dropout_order"], workload.dropout_order)
    # Where every boundary row is fresh and whole, the sums are the same however the graph is divided.
    divided = method.tau > 0 or not method.sampling().whole
    if divided and curve.workers != scenario.cluster.gpus:
        yield _apart("workers", curve.workers, scenario.cluster.gpus)


def _apart(name: str, ran: object, wanted: object, same: str = "") -> str:
    return f"{name} {ran} in the run, {same if same and ran == wanted else wanted} asked"


def _trained(
    model: object, widths: Sequence[int], norm: object, preaggregate: object, dense_layers: int
) -> dict[str, object]:
    """What of a model decides accuracy; of the hidden layers' widths each once."""
    return {
        "model": model,
        "layers": len(widths) - 1,
        "hidden": ", ".join(str(width) for width in dict.fromkeys(widths[1:-1])) or "none",
        "features": widths[0],
        "classes": widths[-1],
        "norm": norm,
        "preaggregate": preaggregate,
        "dense layers": dense_layers,
    }


def target_report(
    studies: StudyCache, first: Scenario, target: Target, rows: Sequence[Estimate], book: PriceBook
) -> TargetReport:
    """Time and cost until the accuracy, of every row. first: the question on its first machine."""
    subject = Subject.of(studies.accesses, first, target)
    runs = tuple(curve.path.name for curve in target.curves)
    return TargetReport(target.accuracy, runs, tuple(to_target(target, row, subject, book) for row in rows))


def to_target(target: Target, estimate: Estimate, subject: Subject, book: PriceBook | None = None) -> TargetRow:
    """One row: iterations, seconds with their interval, and the cost on rented devices; None where it is not known."""
    scenario = estimate.scenario
    count, source = target.reached(scenario, subject)
    rent = rent_of(scenario.cluster, book or PriceBook())

    def in_all(iteration_s: Seconds | None) -> Seconds | None:
        return None if count is None or iteration_s is None else count * iteration_s

    seconds = in_all(estimate.iteration_s)
    method = scenario.method
    row = TargetRow(
        method=method.name,
        tau=method.tau,
        epsilon=method.epsilon,
        rate=method.rate,
        gpus=scenario.cluster.gpus,
        iterations=count,
        seconds=seconds,
        seconds_low=in_all(estimate.low_s),
        seconds_high=in_all(estimate.high_s),
        usd=usd_of(rent, seconds),
        source=source,
        cost=cost_of(rent, seconds),
        currency=None if rent is None else rent.currency,
    )
    if target.failures is None or seconds is None:
        return row
    return replace(row, failures=target.failures.report(row, scenario.cluster.servers))
