"""Time until a training is done: its iterations times predicted seconds per iteration.

The number of iterations a method needs is not simulated. It is given, or comes from training runs of the same graph,
model, method and knobs, on any machine: staleness and sampling decide it, hardware does not. Without a matching run,
the answer says so and names the differences from the nearest run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from gcnsim.core.errors import plural
from gcnsim.core.ids import Iteration, Seconds
from gcnsim.core.units import FRACTION
from gcnsim.hardware import USD, PriceBook
from gcnsim.planning.candidate import Estimate
from gcnsim.planning.failures import Failures, one_price
from gcnsim.planning.rows import cost_of, rent_of
from gcnsim.planning.study import Studies
from gcnsim.results import RecordedCurve, TargetReport, TargetRow
from gcnsim.scenario import Scenario, rule_at
from gcnsim.simulation.model import Model, resolve_model
from gcnsim.simulation.source import Source
from gcnsim.workload.knobs import BOUNDARY_SCALE, COLD_START, ESTIMATOR, Knob, usual_fanout

if TYPE_CHECKING:
    from gcnsim.records.recorded_run import LearningCurve

UNQUERIED: Final[Mapping[str, Knob]] = {knob.name: knob for knob in (ESTIMATOR, BOUNDARY_SCALE, COLD_START)}
"""Training options that no question has; a run that changed one answers no question."""

BATCHES: Final = ("batch", "fanout", "layer_sizes", "subgraph")
"""Knobs of mini-batches that affect accuracy; runs have the text of some."""

DECIDING: Final = ("tau", "epsilon", "sampler", "refresh", "rate", *BATCHES)
"""Knobs that affect accuracy and that recorded runs have too."""

RECIPE: Final = (
    "optimizer", "lr", "weight_decay", "dropout", "dropout_order", "heads", "bias", "sage_mean", "feature_norm",
    "random_features", "random_classes", "dtype",
)  # fmt: skip
"""Settings that affect accuracy and that a question may omit; runs are combined only if they agree on them."""

ALL: Final = "all"
"""In place of a method: every method that has no number of its own."""


@dataclass(frozen=True, slots=True)
class Subject:
    """The trained workload. graph: the hash of the graph, None if only statistics are known; name: its name."""

    graph: str | None
    name: str
    model: Model

    @classmethod
    def of(cls, accesses: Source, scenario: Scenario, target: Target) -> Subject:
        """Return the workload that the scenario trains; the graph is hashed only if recorded runs are given."""
        model = resolve_model(scenario.workload, accesses.declared)
        return cls(accesses.graph_hash if target.curves else None, accesses.name, model)


@dataclass(frozen=True, slots=True)
class Target:
    """When a training is done: after the iterations that recorded runs took to an accuracy, or after so many.

    accuracy: share of one, on validation nodes; None if only iterations are given. given: iterations by method or for
    `ALL`, from a publication or a guess of the asker's, for rows of which no run tells. failures: what ends a training
    early, None where that is not asked.
    """

    accuracy: float | None
    curves: tuple[LearningCurve, ...] = ()
    given: Mapping[str, Iteration] = field(default_factory=dict)
    failures: Failures | None = None

    @classmethod
    def of(
        cls,
        accuracy: float | None,
        folders: Sequence[str | Path],
        given: Mapping[str, Iteration],
        failures: Failures | None = None,
    ) -> Target:
        """Return the target with the runs in `folders`. Raises FileError for a folder without a readable run."""
        from gcnsim.records.recorded_run import read_learning_curve

        return cls(accuracy, tuple(read_learning_curve(folder) for folder in folders), given, failures)

    @property
    def by_method(self) -> bool:
        """Whether each method has iterations of its own, so that what it loses by approximation is known."""
        return ALL not in self.given

    def reached(self, scenario: Scenario, subject: Subject) -> tuple[Iteration | None, str]:
        """Return the iterations until the accuracy and their source: a recorded run, or the given value, labelled so.

        Returns None and the reason if neither is available.
        """
        given = self.given.get(scenario.method.name, self.given.get(ALL))
        yours = "your figure" if scenario.method.name in self.given else "your figure for every method"
        if self.accuracy is None:
            return given, "not given for this method" if given is None else yours
        if given is not None and not self.curves:
            return given, yours
        count, source = self.recorded(scenario, subject, self.accuracy)
        if count is None and given is not None:
            return given, f"{yours}; {source}"
        return count, source

    def recorded(self, scenario: Scenario, subject: Subject, accuracy: float) -> tuple[Iteration | None, str]:
        """Return the median iterations until the accuracy in runs with the same method, knobs, graph and model, and
        their source.

        Returns None and the reason if no run matches.
        """
        fitting, why = self.fitting(scenario, subject)
        return _first(fitting, accuracy) if fitting else (None, why)

    def fitting(self, scenario: Scenario, subject: Subject) -> tuple[list[LearningCurve], str]:
        """Return the runs with the same method, knobs, graph and model, or none and the reason."""
        mine = [curve for curve in self.curves if curve.options["method"] == scenario.method.name]
        if not mine:
            return [], "no recorded run of this method"
        apart = [list(_differences(curve, scenario, subject)) for curve in mine]
        fitting = [curve for curve, found in zip(mine, apart, strict=True) if not found]
        if not fitting:
            return [], f"no recorded curve for it: {'; '.join(sorted(apart, key=len)[0])}"
        recipes = [{name: repr(curve.options.get(name)) for name in RECIPE} for curve in fitting]
        mixed = [name for name in RECIPE if len({recipe[name] for recipe in recipes}) > 1]
        if mixed:
            return [], f"the runs differ among themselves in {', '.join(mixed)}; give those of one recipe"
        return fitting, ""


def _first(fitting: Sequence[LearningCurve], accuracy: float) -> tuple[Iteration | None, str]:
    """Return the median of the runs' iterations to `accuracy`, as precise as their evaluation interval."""
    several = [curve for curve in fitting if len(curve.points) > 1]
    if not several:
        (done, share) = max(curve.points[0] for curve in fitting)
        return None, f"iterations needed are not known: evaluated once alone, {100 * share:.1f} % after {done}"
    first_reached = [(curve, curve.first(accuracy)) for curve in several]
    # The accuracy was first seen at `count`; it may have been reached any time after the evaluation before.
    reached = sorted(
        (count, curve.path.name, count - max((done for done, _ in curve.points if done < count), default=0))
        for curve, count in first_reached
        if count is not None
    )
    if len(reached) * 2 <= len(first_reached):
        best = max(curve.best for curve in several)
        return None, f"not reached: at most {100 * best:.1f} % in {plural(len(several), 'recorded run')}"
    count, name, step = reached[(len(reached) - 1) // 2]
    whence = name if len(reached) == 1 else f"median of {len(reached)} runs, {name}"
    return count, whence if step == 1 else f"{whence}, to within {step} iterations"


def _differences(curve: LearningCurve, scenario: Scenario, subject: Subject) -> Iterator[str]:
    """Return the differences between a run and the question, as words."""
    options, method = curve.options, scenario.method
    if subject.graph is None:
        yield f"{subject.name} is known by statistics, the run's graph is {curve.graph['name']}"
    elif subject.graph != curve.graph["hash"]:
        yield _apart("graph", curve.graph["name"], subject.name, "another of that name")
    workload, model = scenario.workload, subject.model
    widths = (model.features, *(shape.d_out for shape in model.shapes))
    wanted = _trained(model.name, widths, workload.norm, workload.preaggregate, workload.dense_layers)
    # In a run, every layer aggregates neighbours.
    trained = _trained(options.get("model"), curve.widths, options.get("norm"), options.get("preaggregate"), 0)
    yield from (_apart(name, trained[name], value) for name, value in wanted.items() if trained[name] != value)
    # A cache does not affect accuracy: it keeps rows that never change.
    asked = {name: value for name, value in method.values().items() if name in DECIDING}
    knobs = _with_fanout(asked, len(model.shapes))
    usual = {name: knob.default for name, knob in UNQUERIED.items()}
    trained_with = {name: _read(name, value) for name, value in options["knobs"].items()}
    for name, ran in _with_fanout(trained_with, len(curve.widths) - 1).items():
        expected = knobs.get(name, usual.get(name, ran))
        if ran != expected:
            yield _apart(name, _written(name, ran), _written(name, expected))
    # Dropout is compared only if the question states it.
    dropout = workload.dropout
    if dropout is not None and (ran_dropout := float(options.get("dropout", 0.0))) != dropout:
        yield _apart("dropout", FRACTION.exact(ran_dropout), FRACTION.exact(dropout))
    elif dropout and options["dropout_order"] != workload.dropout_order:
        yield _apart("dropout_order", options["dropout_order"], workload.dropout_order)
    # If every boundary row is fresh and complete, the sums are the same for any partition.
    divided = method.tau > 0 or not method.sampling().whole
    if divided and curve.workers != scenario.cluster.gpus:
        yield _apart("workers", curve.workers, scenario.cluster.gpus)


def _with_fanout(knobs: Mapping[str, Any], layers: int) -> Mapping[str, Any]:
    """Return the knobs with the fan-out that is drawn where none is given."""
    given = "fanout" not in knobs or knobs["fanout"] is not None or knobs.get("layer_sizes") is not None
    return knobs if given else {**knobs, "fanout": usual_fanout(layers)}


def _read(name: str, value: Any) -> Any:
    """Return a knob of a run as a question has it."""
    return value if name not in BATCHES or value is None else rule_at(f"method.{name}")[0].read(value, name)


def _written(name: str, value: Any) -> object:
    """Return a knob as a scenario writes it."""
    return value if name not in BATCHES or value is None else rule_at(f"method.{name}")[0].write(value)


def _apart(name: str, ran: object, wanted: object, same: str = "") -> str:
    return f"{name} {ran} in the run, {same if same and ran == wanted else wanted} asked"


def _trained(
    model: object, widths: Sequence[int], norm: object, preaggregate: object, dense_layers: int
) -> dict[str, object]:
    """Return the properties of a model that affect accuracy, with each width of the hidden layers once."""
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
    studies: Studies,
    first: Scenario,
    target: Target,
    rows: Sequence[Estimate],
    book: PriceBook,
    recommended: Estimate | None = None,
) -> TargetReport:
    """Return time and cost until the accuracy for every row. first: the question on its first machine. recommended: the
    recommended setting, if it is no row.
    """
    subject = Subject.of(studies.accesses, first, target)
    runs = tuple(curve.path.name for curve in target.curves)
    best = None if recommended is None else to_target(target, recommended, subject, book)
    return TargetReport(target.accuracy, runs, tuple(to_target(target, row, subject, book) for row in rows), best)


def _curves(target: Target, scenario: Scenario, subject: Subject) -> tuple[RecordedCurve, ...]:
    """Return the evaluations of the runs that tell of a row."""
    fitting, _ = target.fitting(scenario, subject) if target.curves else ([], "")
    found = [(curve.path.name, zip(*curve.points, strict=True)) for curve in fitting]
    return tuple(RecordedCurve(name, *map(tuple, columns)) for name, columns in found)


def to_target(target: Target, estimate: Estimate, subject: Subject, book: PriceBook | None = None) -> TargetRow:
    """Return one row: iterations, seconds with their interval, and the cost on rented devices, or None if unknown."""
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
        source=source,
        cost=cost_of(rent, seconds),
        currency=None if rent is None else USD,
        curves=_curves(target, scenario, subject),
    )
    if target.failures is None or seconds is None:
        return row
    failures, cluster, prices = target.failures, scenario.cluster, book or PriceBook()
    return replace(
        row,
        failures=failures.report(row, cluster.servers) if failures.per_hour else None,
        other_pricing=failures.other_pricing(seconds, cluster, prices),
        one_price=one_price(cluster, prices) or None,
    )
