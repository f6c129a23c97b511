"""What a measurement was asked for: settings, each one run's options, and how long to measure."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import Number
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
    "dropout", "norm", "bias", "sage_aggregator", "sage_mean", "dropout_order", "preaggregate", "optimizer", "lr",
    "weight_decay", "device", "backend", "dtype", "aggregator", "overlap", "threads", "out", "overwrite", "json",
    "quiet",
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
