"""What a survey was asked to do, checked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from gcnsim.errors import FileError, ScenarioError, nearest
from gcnsim.fields import Number
from runtime.launch import Place
from runtime.options import CHOICES
from runtime.survey.rule import GeneratedGraph, PlannedRun, Rule
from runtime.train.plan import Task, naming
from runtime.train.tasks import tasks_of

GRAPHS, RUNS, UNFINISHED, STATE = "graphs", "runs", "unfinished", "survey.json"
TRACE: Final = "access.trace"
WORKERS: Final = Number(True, 1, 4096)
MINUTES: Final = Number(False, 0, 10_000, low_open=True)


@dataclass(frozen=True, slots=True)
class SurveyRequest:
    """One survey; raises ScenarioError for what is not allowed, FileError for a folder that holds something else.

    out: the folder. minutes: after which no run is begun. bandwidth: of each server's link in bytes/s, each way,
    framing included, as its owner knows it; None: as measured. json: whether to print objects.
    """

    out: Path
    rule: Rule
    device: str = "cpu"
    workers: int = 2
    minutes: float = 30.0
    bandwidth: float | None = None
    json: bool = False

    def __post_init__(self) -> None:
        """Refuse values that mean nothing."""
        if self.device not in CHOICES["device"]:
            raise ScenarioError(f"--device: unknown {self.device!r}; {nearest(self.device, CHOICES['device'])}")
        WORKERS.check(self.workers, "--workers")
        MINUTES.check(self.minutes, "--minutes")

    def refuse(self, place: Place | None = None) -> None:
        """Raise GcnsimError for what can be seen to fail before anything starts: device, folder, each run's options.

        place: of this worker; None before any is started.
        """
        if self.device == "cuda":
            # torch alone knows, and takes seconds to import.
            from runtime.train.setup import check_gpus

            check_gpus(place or Place(0, self.workers, 0, self.workers, launched=True))
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
        """What to train for `run`, below a folder for runs under way. Raises GcnsimError, naming the run."""
        rule, folder = self.rule, self.out / UNFINISHED / run.name
        graph = rule.graphs[run.graph]
        if isinstance(graph, GeneratedGraph):
            data = ["--graph", str(self.out / GRAPHS / f"{run.graph}.npz")]
            data += ["--random-features", str(graph.features), "--random-classes", str(graph.classes)]
        else:
            data = list(graph)
        words = ["--iterations", str(rule.iterations[self.device]), "--quiet"]
        # The simulator's workers on CPU cores compute in one thread each.
        words += ["--threads", "1"] if self.device == "cpu" else []
        words += ["--json"] if self.json else []
        own = ["--device", self.device, "--workers", str(self.workers), "--out", str(folder)]
        own += ["--save-trace", str(folder / TRACE)]
        name = f"{rule.path.name}: {run.name}"
        with naming(name):
            found = tasks_of([*rule.common, *data, *words, *run.args, *own])
            if found is None or len(found) != 1 or found[0].name is not None:
                raise ScenarioError("args: --help and --plan are not arguments of a run")
        return replace(found[0], name=name)
