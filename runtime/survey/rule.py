"""The rule of a survey: the runs, their graphs, and the runs that a calibration may use.

If not all runs fit into the remaining time, repeats are dropped first, then configurations, then calibration runs.
`SurveyRequest` holds the checked options of a survey.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any, Final, NoReturn

from gcnsim.core.errors import FileError, GcnsimError, ScenarioError, nearest
from gcnsim.core.fields import Number, QuantityRange, shown
from gcnsim.core.streams import stream
from gcnsim.core.units import FRACTION
from gcnsim.core.yaml_files import read_yaml
from runtime.launch import Place
from runtime.microbench import FULL, QUICK, TINY, TimeBudget
from runtime.options import CHOICES
from runtime.train.tasks import Task, naming, tasks_of

RULE: Final = Path(__file__).with_name("rule.yaml")
"""The bundled rule for two workers and more."""

ONE_WORKER: Final = Path(__file__).with_name("one_worker.yaml")
"""The rule for a single worker, which exchanges nothing."""

BUDGETS: Final[Mapping[str, TimeBudget]] = {"tiny": TINY, "quick": QUICK, "full": FULL}
"""Effort of the micro-benchmarks; the tiny one is for tests and too small for a calibration."""

KEYS: Final = (
    "draw", "profile", "repeats", "least_repeats", "iterations", "common", "graphs", "calibration", "held_out",
    "methods",
)  # fmt: skip
_MADE: Final = ("nodes", "degree", "far", "features", "classes")
_MOST: Final = 10**7


@dataclass(frozen=True, slots=True)
class GeneratedGraph:
    """A graph to generate. nodes: by device; degree: mean stored entries per node; far: share of edges to anywhere."""

    nodes: Mapping[str, int]
    degree: int
    far: float
    features: int
    classes: int


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run. configuration: equal for repeats only, and its place in the rule; repeat: from 0; seen: whether
    calibrations use it.

    args: the run's arguments, after those of all runs.
    """

    name: str
    graph: str
    args: tuple[str, ...]
    configuration: int
    repeat: int
    seen: bool


@dataclass(frozen=True, slots=True)
class SurveyRule:
    """The contents of a rule file. graphs: generated, or arguments of runtime.train. sha256: of the file."""

    path: Path
    sha256: str
    draw: int
    profile: str
    repeats: int
    least_repeats: int
    iterations: Mapping[str, int]
    common: tuple[str, ...]
    graphs: Mapping[str, GeneratedGraph | tuple[str, ...]]
    calibration: tuple[tuple[str, tuple[str, ...]], ...]
    held_out: tuple[tuple[str, tuple[str, ...]], ...]
    methods: tuple[tuple[str, ...], ...]

    def planned(self) -> tuple[PlannedRun, ...]:
        """All runs in the order of training: calibration runs, then one round of all others after another.

        A round contains each held-out configuration once, in a separate random order, so that a slow minute does not
        affect one configuration only.
        """
        runs = [
            PlannedRun(f"calibration-{index}", graph, args, index, 0, True)
            for index, (graph, args) in enumerate(self.calibration)
        ]
        each = [(index, graph, args, which) for index, (graph, args) in enumerate(self.held_out)
                for which in range(len(self.methods))]  # fmt: skip
        for repeat in range(self.repeats):
            for at in stream(self.draw, "order", repeat).permutation(len(each)).tolist():
                index, graph, args, which = each[at]
                name = f"held-out-{index}-m{which}-r{repeat}"
                words = (*args, *self.methods[which])
                runs.append(PlannedRun(name, graph, words, len(self.calibration) + at, repeat, False))
        return tuple(runs)


def read_rule(path: str | Path) -> SurveyRule:
    """The rule in the file at `path`. Raises FileError, naming what is wrong."""
    raw = read_yaml(path)
    at = _At(str(path))
    if not isinstance(raw, dict):
        at.refuse(f"not a rule; allowed: a mapping with {', '.join(KEYS)}")
    at.keys("", raw, KEYS)
    if not isinstance(raw["profile"], str) or raw["profile"] not in BUDGETS:
        at.refuse(f"profile: unknown {shown(raw['profile'])}; {nearest(str(raw['profile']), BUDGETS)}")
    repeats = at.number("repeats", raw["repeats"], 1)
    graphs = {str(name): _graph(at, f"graphs.{name}", item) for name, item in at.mapping("graphs", raw["graphs"])}
    return SurveyRule(
        path=Path(path),
        sha256=hashlib.sha256(Path(path).read_bytes()).hexdigest(),
        draw=at.number("draw", raw["draw"], 0),
        profile=raw["profile"],
        repeats=repeats,
        least_repeats=at.number("least_repeats", raw["least_repeats"], 1, repeats),
        iterations=_by_device(at, "iterations", raw["iterations"], 6),
        common=at.words("common", raw["common"]),
        graphs=graphs,
        calibration=_settings(at, "calibration", raw["calibration"], graphs),
        held_out=_settings(at, "held_out", raw["held_out"], graphs),
        methods=tuple(
            at.words(f"methods[{index}]", entry) for index, entry in enumerate(at.some("methods", raw["methods"]))
        ),
    )


@dataclass(frozen=True, slots=True)
class _At:
    """A file whose values are checked; every error starts with its path."""

    path: str

    def refuse(self, words: str) -> NoReturn:
        raise FileError(f"{self.path}: {words}")

    def keys(self, location: str, value: Mapping[str, Any], wanted: Sequence[str]) -> None:
        for name in value:
            if name not in wanted:
                self.refuse(f"{location}{name}: unknown key; {nearest(str(name), wanted)}")
        for name in wanted:
            if name not in value:
                self.refuse(f"{location}{name}: is missing")

    def number(self, location: str, value: Any, low: int, high: int = _MOST) -> int:
        if wrong := Number(True, low, high).wrong(value):
            self.refuse(f"{location}: {wrong}")
        return int(value)

    def share(self, location: str, value: Any) -> float:
        try:
            return QuantityRange(FRACTION, 0.0, 1.0).read(value, location)
        except GcnsimError as error:
            self.refuse(str(error))

    def some(self, location: str, value: Any) -> list[Any]:
        if not isinstance(value, list) or not value:
            self.refuse(f"{location}: {shown(value)} is not allowed; allowed: a list of one or more")
        return value

    def mapping(self, location: str, value: Any) -> list[tuple[str, Any]]:
        if not isinstance(value, dict) or not value:
            self.refuse(f"{location}: {shown(value)} is not allowed; allowed: a mapping of one or more")
        return list(value.items())

    def words(self, location: str, value: Any) -> tuple[str, ...]:
        plain = isinstance(value, list) and all(
            isinstance(word, str | int | float) and not isinstance(word, bool) for word in value
        )
        if not plain:
            self.refuse(f"{location}: not a list of strings; allowed: e.g. [--tau, 2]")
        return tuple(str(word) for word in value)


def _graph(at: _At, location: str, value: Any) -> GeneratedGraph | tuple[str, ...]:
    fields = dict(at.mapping(location, value))
    if "args" in fields:
        at.keys(f"{location}.", fields, ("args",))
        return at.words(f"{location}.args", fields["args"])
    at.keys(f"{location}.", fields, _MADE)
    numbers = {name: at.number(f"{location}.{name}", fields[name], 2) for name in ("degree", "features", "classes")}
    nodes = _by_device(at, f"{location}.nodes", fields["nodes"], 100)
    return GeneratedGraph(nodes=nodes, far=at.share(f"{location}.far", fields["far"]), **numbers)


def _by_device(at: _At, location: str, value: Any, low: int) -> dict[str, int]:
    fields = dict(at.mapping(location, value))
    at.keys(f"{location}.", fields, CHOICES["device"])
    return {name: at.number(f"{location}.{name}", value, low) for name, value in fields.items()}


def _settings(at: _At, location: str, value: Any, graphs: Mapping[str, Any]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found = []
    for number, entry in enumerate(at.some(location, value)):
        here = f"{location}[{number}]"
        fields = dict(at.mapping(here, entry))
        at.keys(f"{here}.", fields, ("graph", "args"))
        if not isinstance(fields["graph"], str) or fields["graph"] not in graphs:
            at.refuse(f"{here}.graph: unknown {shown(fields['graph'])}; {nearest(str(fields['graph']), graphs)}")
        found.append((str(fields["graph"]), at.words(f"{here}.args", fields["args"])))
    return tuple(found)


def fitting(
    runs: Sequence[PlannedRun],
    took: Mapping[str, float],
    seconds: float,
    least_repeats: int,
    expected: Mapping[str, float] | None = None,
) -> tuple[PlannedRun, ...]:
    """The runs of `runs` to train in `seconds`, in order, by the present estimate. took: seconds, by name.

    expected: seconds of runs not trained yet; None: estimated from trained ones. Repeats beyond `least_repeats` are
    dropped first, then configurations without a trained run (the last of the rule first), then any run, the last first;
    repeats return if time remains. An untrained run is expected to take the mean time of its configuration, otherwise
    of its graph, otherwise of all.
    """
    left = [run for run in runs if run.name not in took]
    begun = {run.configuration for run in runs if run.name in took}
    cost = _costs(runs, took) if expected is None else expected
    chosen = {run.name for run in left}

    def fits() -> bool:
        return sum(cost[run.name] for run in left if run.name in chosen) <= seconds

    by_rule = sorted(left, key=lambda run: (not run.seen, run.repeat, run.configuration), reverse=True)
    for run in by_rule:
        if run.repeat >= least_repeats and not fits():
            chosen.discard(run.name)
    fresh = sorted({run.configuration for run in left if not run.seen} - begun, reverse=True)
    for which in fresh:
        if not fits():
            chosen -= {run.name for run in left if not run.seen and run.configuration == which}
    for run in by_rule:
        if not fits():
            chosen.discard(run.name)
    going = begun | {run.configuration for run in left if run.name in chosen}
    for run in reversed(by_rule):
        if run.name not in chosen and run.configuration in going:
            chosen.add(run.name)
            if not fits():
                chosen.discard(run.name)
    return tuple(run for run in left if run.name in chosen)


def _costs(runs: Sequence[PlannedRun], took: Mapping[str, float]) -> dict[str, float]:
    """The expected seconds of each untrained run."""
    done = [run for run in runs if run.name in took]

    def cost(run: PlannedRun) -> float:
        same = [took[other.name] for other in done if other.configuration == run.configuration]
        graph = [took[other.name] for other in done if other.graph == run.graph]
        known = same or graph or [took[other.name] for other in done]
        return fmean(known) if known else 0.0

    return {run.name: cost(run) for run in runs if run.name not in took}


GRAPHS, RUNS, UNFINISHED, STATE = "graphs", "runs", "unfinished", "survey.json"
TRACE: Final = "access.trace"
WORKERS: Final = Number(True, 1, 4096)
MINUTES: Final = Number(False, 0, 10_000, low_open=True)


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """One survey; raises ScenarioError for invalid values, FileError for a folder with other contents.

    out: the folder. minutes: the time after which no run is started. bandwidth: of each server's link in bytes/s per
    direction, including framing, as given by the user; None: as measured. json: whether to print objects.
    """

    out: Path
    rule: SurveyRule
    device: str = "cpu"
    workers: int = 2
    minutes: float = 30.0
    bandwidth: float | None = None
    json: bool = False

    def __post_init__(self) -> None:
        """Refuse invalid values."""
        if self.device not in CHOICES["device"]:
            raise ScenarioError(f"--device: unknown {self.device!r}; {nearest(self.device, CHOICES['device'])}")
        WORKERS.check(self.workers, "--workers")
        MINUTES.check(self.minutes, "--minutes")

    def refuse(self, location: Place | None = None) -> None:
        """Raise GcnsimError for errors that can be detected before anything starts: device, folder, each run's options.

        location: of this worker; None before any is started.
        """
        if self.device == "cuda":
            # Only torch knows, and its import takes seconds.
            from runtime.train.setup import check_gpus

            check_gpus(location or Place(0, self.workers, 0, self.workers, launched=True))
        try:
            held = sorted(path.name for path in self.out.iterdir())
        except FileNotFoundError:
            held = []
        except OSError as error:
            raise FileError(f"--out: {self.out}: cannot be used as a folder: {error.strerror}") from None
        if held and STATE not in held:
            raise FileError(
                f"--out: {self.out}: holds files but no survey; allowed: a new or empty folder, or that of one"
            )
        for run in self.rule.planned():
            self.task(run)

    def task(self, run: PlannedRun) -> Task:
        """The task of `run`, in a folder for unfinished runs. Raises GcnsimError, naming the run."""
        rule, folder = self.rule, self.out / UNFINISHED / run.name
        graph = rule.graphs[run.graph]
        if isinstance(graph, GeneratedGraph):
            data = ["--graph", str(self.out / GRAPHS / f"{run.graph}.npz")]
            data += ["--random-features", str(graph.features), "--random-classes", str(graph.classes)]
        else:
            data = list(graph)
        words = ["--iterations", str(rule.iterations[self.device]), "--quiet"]
        # On CPU cores workers compute in one thread each.
        words += ["--threads", "1"] if self.device == "cpu" else []
        words += ["--json"] if self.json else []
        own = ["--device", self.device, "--workers", str(self.workers), "--out", str(folder)]
        own += ["--save-trace", str(folder / TRACE)]
        name = f"{rule.path.name}: {run.name}"
        with naming(name):
            tasks = tasks_of([*rule.common, *data, *words, *run.args, *own])
            if tasks is None or len(tasks) != 1 or tasks[0].name is not None:
                raise ScenarioError("args: --help and --plan are not arguments of a run")
        return replace(tasks[0], name=name)
