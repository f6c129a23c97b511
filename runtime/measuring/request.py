"""What a measurement was asked for: settings, options of each run, how long to measure; or what recorded runs trained.

Runs of one graph, partition and model are one file of measured times. Each method with its knobs is measured once,
staleness and refresh apart: the first changes no kernel, the second only how often one is run.
"""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import Number
from gcnsim.records.recorded_run import RecordedRun, read_recorded_run
from gcnsim.records.run_files import RUN
from gcnsim.workload.knobs import Knob
from runtime.methods import METHODS, method_of, method_type
from runtime.methods.method import Method, read_as_text
from runtime.options import RULES, Options, flag
from runtime.train.tasks import HELP, knobs_of

SECONDS: Final = Number(False, 0, 86_400, low_open=True)
AIM: Final = 0.02
"""To how much of itself each part's mean is to be known: half of its 90 % interval."""

ONE_THREAD: Final = 1

_TAKEN: Final = (
    "method", "dataset", "graph", "seed", "feature_dim", "feature_norm", "random_features", "random_classes",
    "partition", "partition_method", "objective", "balance", "partition_seed", "model", "layers", "hidden", "heads",
    "dropout", "norm", "bias", "sage_mean", "dropout_order", "preaggregate", "optimizer", "lr", "weight_decay",
    "device", "backend", "dtype", "aggregator", "overlap", "threads", "out", "overwrite", "json", "quiet",
)  # fmt: skip

HELP_OF: Final[Mapping[str, str]] = {name: HELP[name] for name in _TAKEN} | {
    "method": f"One or more of {', '.join(name for name, method in METHODS.items() if method.alone)}.",
    "threads": f"CPU threads of each part.  [default: {ONE_THREAD}]",
    "out": "Output file.  [default: the first free one of measured.parquet, measured-2.parquet, ...]",
    "overwrite": "Replace the file of --out.",
    "json": "Print the measurements of each part as one JSON object.",
}
"""The options of training that a measurement takes, each with its help."""


_OWN: Final = frozenset({"method", "out", "overwrite", "json", "quiet"})
"""Options of the measurement itself, or told otherwise."""

KNOBS: Final = knobs_of(method for method in METHODS.values() if method.alone)
"""Those of all methods that can be measured, by name."""


@dataclass(frozen=True, slots=True)
class MeasureRequest:
    """One measurement. settings: each one's options, all of one graph, partition and model. seconds: for all of them.

    Raises ScenarioError for what is not allowed.
    """

    settings: tuple[Options, ...]
    seconds: float = 60.0

    def __post_init__(self) -> None:
        """Refuse values that mean nothing, and methods whose parts cannot be measured by themselves."""
        SECONDS.check(self.seconds, "--seconds")
        for options in self.settings:
            method_of(options.method, options.knobs).refuse(options)

    @property
    def shared(self) -> Options:
        """What all settings have alike: all but the method and its knobs."""
        return self.settings[0]


def settings_of(given: Mapping[str, Any]) -> tuple[Options, ...]:
    """A setting for each method and each combination of those values that it takes.

    Raises ScenarioError for a method that is unknown or cannot be measured, a knob that none has, a value out of range.
    """
    methods = list(dict.fromkeys(_method(name.strip()) for name in str(given["method"]).split(",")))
    question = {name: given[name] for name in KNOBS if given.get(name) is not None}
    for name in question:
        if not any(name in _knobs(method) for method in methods):
            names = ", ".join(method.name for method in methods)
            raise ScenarioError(f"{flag(name)}: no knob of {names}; allowed: a method that has it, or without it")
    RULES["workers"].check(given["workers"], "--parts")
    fields = {name: given[name] for name in HELP_OF if name != "method"}
    if fields["threads"] is None and given["device"] == "cpu":
        fields["threads"] = ONE_THREAD
    fields |= {"workers": given["workers"], "iterations": 10**9}
    return tuple(
        Options(**fields, method=method.name, knobs=knobs) for method in methods for knobs in _settled(method, question)
    )


def options_from(plain: Mapping[str, Any]) -> Options:
    """The options of one part, of what `Options.asdict` says of a run or of a measurement."""
    fields = {name: plain[name] for name in HELP_OF if name in plain and name not in _OWN}
    knobs = {
        name: value if isinstance(value, int | float) else str(value)
        for name, value in plain["knobs"].items()
        if value is not None
    }
    method = method_type(plain["method"])
    return Options(
        **fields, workers=plain["workers"], iterations=10**9, method=method.name, knobs=method.settled(knobs)
    )


def _method(name: str) -> type[Method]:
    found = method_type(name)
    if not found.alone:
        known = ", ".join(key for key, method in METHODS.items() if method.alone)
        raise ScenarioError(
            f"--method: {found.name} sends whole blocks between workers, so its parts cannot be measured by "
            f"itself; allowed: {known}"
        )
    return found


def _knobs(method: type[Method]) -> dict[str, Knob]:
    return {knob.name: knob for knob in method.knobs()}


def _settled(method: type[Method], question: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    """The method's knobs, once for each combination of the values asked for that it has."""
    own = {name: _values(knob, question[name]) for name, knob in _knobs(method).items() if name in question}
    for values in itertools.product(*own.values()):
        yield method.settled(dict(zip(own, values, strict=True)))


def _values(knob: Knob, text: str) -> Sequence[Any]:
    """Of a list; a number for each layer is one value. Raises ScenarioError."""
    if knob.kind == "list":
        return [text]
    return list(dict.fromkeys(_value(knob, word.strip()) for word in text.split(",")))


def _value(knob: Knob, text: str) -> Any:
    if read_as_text(knob) or knob.kind not in ("int", "real"):
        return text
    try:
        return int(text) if knob.kind == "int" else float(text)
    except ValueError:
        kind = "a whole number" if knob.kind == "int" else "a number"
        raise ScenarioError(f"{flag(knob.name)}: {text!r} is not {kind}; allowed: {knob.allowed}") from None


FREE: Final = ("tau", "refresh")
"""Knobs that need no measurement of their own."""

DIGITS: Final = 8


def runs_in(folders: Iterable[str | Path]) -> list[RecordedRun]:
    """The runs in these folders: each is that of a run, or holds those of runs. Those that cannot be measured are left
    out. Raises FileError for a run that cannot be read, ScenarioError where there is none.
    """
    found = []
    for folder in map(Path, folders):
        every = [folder] if (folder / RUN).is_file() else sorted(path.parent for path in folder.glob(f"*/{RUN}"))
        found += [read_recorded_run(path) for path in every]
    can = [run for run in found if run.options["method"] in METHODS and METHODS[run.options["method"]].alone]
    if not can:
        raise ScenarioError("--runs: no recorded run whose parts can be measured; allowed: folders of runtime.train")
    return can


def options_of(run: RecordedRun) -> Options:
    """What trains one part of the run."""
    knobs = {name: value for name, value in run.options["knobs"].items() if name not in FREE}
    return options_from({**run.options, "workers": run.workers, "threads": run.threads, "knobs": knobs})


def files_of(runs: Sequence[RecordedRun]) -> dict[str, tuple[Options, ...]]:
    """The settings of each file, by the file's name: graph, parts and a hash of all that was asked."""
    groups: dict[str, dict[str, Options]] = {}
    for run in runs:
        options = options_of(run)
        plain = options.asdict()
        setting = json.dumps([plain.pop("method"), plain.pop("knobs")], sort_keys=True)
        groups.setdefault(json.dumps(plain, sort_keys=True), {})[setting] = options
    return dict(_named(key, settings) for key, settings in groups.items())


def _named(key: str, settings: dict[str, Options]) -> tuple[str, tuple[Options, ...]]:
    first = next(iter(settings.values()))
    digest = hashlib.sha256("".join([key, *sorted(settings)]).encode()).hexdigest()[:DIGITS]
    return f"{Path(first.graph or first.dataset).stem}-{first.workers}-{digest}.parquet", tuple(settings.values())
