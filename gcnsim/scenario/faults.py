"""Faults of a run: slow devices, slow or lossy links, pauses and jitter, each with a few checked fields.

Iterations of a fault are counted over the measured ones: 0 is the first of them, `run.iterations` - 1 the last.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Final, TypeAlias

from gcnsim.core.errors import FileError, ScenarioError, nearest
from gcnsim.core.fields import Choice, Number, QuantityRange, check_fields, denied, entry, read_fields, rule_of, shown
from gcnsim.core.units import BANDWIDTH, FRACTION, SECONDS
from gcnsim.core.yaml_files import parse_yaml

MOST_FAULTS: Final = 64
_WORKER: Final = Number(True, 0, 127)
_AT: Final = Number(True, 0, 999_999)
_TIMES: Final = Number(False, 1, 1000, low_open=True)
_LINK: Final = Choice("a link, as results name it (nic0.tx, pcie3.down), or both its directions (nic0)")


@dataclass(frozen=True, slots=True)
class Given:
    """The base of all faults. given_as: where it was given, for messages."""

    given_as: str = field(default="", compare=False, repr=False, kw_only=True)

    @property
    def path(self) -> str:
        """The start of messages about it: `faults[0]`, `--inject pause`, or its kind if created in Python."""
        return self.given_as or _NAMES[type(self)]


@dataclass(frozen=True, slots=True)
class SlowGpu(Given):
    """Kernels of a worker take `factor` times as long, from one iteration to another (null: the last).

    From 0 to the last, the whole run is slow and settles like that.
    """

    worker: int = entry(_WORKER, "whose kernels", 0)
    factor: float = entry(_TIMES, "how many times as long", 2.0)
    first: int = entry(_AT, "iteration it begins with", 0)
    last: int | None = entry(_AT, "iteration it ends with; null: the last", None, optional=True)


@dataclass(frozen=True, slots=True)
class SlowLink(Given):
    """A link whose bandwidth is divided by `factor`."""

    link: str = entry(_LINK, "which", "nic0")
    factor: float = entry(_TIMES, "its bandwidth is divided by", 2.0)


@dataclass(frozen=True, slots=True)
class LossyLink(Given):
    """A link that loses a share of its traffic, which is sent again."""

    link: str = entry(_LINK, "which", "nic0")
    lost: float = entry(QuantityRange(FRACTION, 0.0, 0.99, low_open=True), "share that is sent again", 0.01)


@dataclass(frozen=True, slots=True)
class Background(Given):
    """Other traffic that uses a fixed rate of a link's raw bandwidth, including framing, independent of the link's
    load.
    """

    link: str = entry(_LINK, "which", "nic0")
    rate: float = entry(QuantityRange(BANDWIDTH, 0.0, 1.25e13, low_open=True), "what it takes, per direction", 1.25e8)


@dataclass(frozen=True, slots=True)
class Pause(Given):
    """A worker stops for some seconds at the start of an iteration; its sent data continues to travel."""

    worker: int = entry(_WORKER, "who stops", 0)
    seconds: float = entry(QuantityRange(SECONDS, 0.0, 3600.0, low_open=True), "for how long", 1.0)
    iteration: int = entry(_AT, "at the start of which", 0)


@dataclass(frozen=True, slots=True)
class Jitter(Given):
    """Equal work takes varying time: a log-normal factor of mean 1 for every operation and iteration."""

    on: str = entry(Choice("a kind of work", lambda: ("compute", "sampling")), "which operations", "compute")
    cv: float = entry(Number(False, 0, 10, low_open=True), "standard deviation over mean", 0.1)


Fault: TypeAlias = SlowGpu | SlowLink | LossyLink | Background | Pause | Jitter

FAULTS: Final[Mapping[str, type[Fault]]] = {
    "slow-gpu": SlowGpu,
    "slow-link": SlowLink,
    "lossy-link": LossyLink,
    "background": Background,
    "pause": Pause,
    "jitter": Jitter,
}
_NAMES: Final[Mapping[type, str]] = {kind: name for name, kind in FAULTS.items()}


def read_faults(raw: object) -> tuple[Fault, ...]:
    """Parse the faults in a scenario's list, each a mapping with its `kind`. Raises ScenarioError or UnitError."""
    if not isinstance(raw, list):
        raise ScenarioError(f"faults: {denied(raw)} a list; write - kind: {next(iter(FAULTS))}")
    return tuple(_read(item, f"faults[{index}]") for index, item in enumerate(raw))


def read_injected(texts: Sequence[str]) -> tuple[Fault, ...]:
    """Parse faults written as `KIND:name=value,name=value`. Raises ScenarioError or UnitError, naming --inject."""
    faults = []
    for text in texts:
        kind, _, rest = text.partition(":")
        raw: dict[str, object] = {"kind": kind.strip()}
        for pair in filter(None, rest.split(",")):
            name, equals, value = pair.partition("=")
            name = name.strip()
            if not equals:
                raise ScenarioError(f"--inject {text}: write KIND:name=value,..., e.g. pause:worker=0,seconds=2s")
            if name in raw:
                again = "the kind stands before the colon" if name == "kind" else "once is allowed"
                raise ScenarioError(f"--inject {text}: {name} is given twice; {again}")
            try:
                raw[name] = parse_yaml(value, f"--inject {name}")
            except FileError as error:
                raise ScenarioError(str(error)) from None
        faults.append(_read(raw, f"--inject {kind.strip()}"))
    return tuple(faults)


def _read(raw: object, path: str) -> Fault:
    if not isinstance(raw, dict) or not isinstance(raw.get("kind"), str):
        raise ScenarioError(f"{path}: {denied(raw)} a fault; give its kind: {', '.join(FAULTS)}")
    if raw["kind"] not in FAULTS:
        raise ScenarioError(f"{path}: unknown fault {shown(raw['kind'])}; {nearest(raw['kind'], FAULTS)}")
    kind = FAULTS[raw["kind"]]
    fields_ = {name: value for name, value in raw.items() if name != "kind"}
    return kind(**read_fields(kind, fields_, path), given_as=path)


def write_fault(fault: Fault) -> dict[str, Any]:
    """The mapping that `read_faults` reads back."""
    mapping: dict[str, Any] = {"kind": _NAMES[type(fault)]}
    for item in fields(fault):
        rule, value = rule_of(item), getattr(fault, item.name)
        if rule is not None and value is not None:
            mapping[item.name] = rule[0].write(value)
    return mapping


def fault_words(fault: Fault) -> str:
    """Format a fault: `pause worker 0, seconds 2 s, iteration 5`."""
    mapping = write_fault(fault)
    kind = mapping.pop("kind")
    return f"{kind} {', '.join(f'{name} {value}' for name, value in mapping.items())}"


def fault_lines() -> list[str]:
    """One line per kind with its fields at their defaults, in the syntax of `read_injected`."""
    lines = []
    for name, kind in FAULTS.items():
        mapping = write_fault(kind())
        shown_of = {item.name: mapping.get(item.name) for item in fields(kind) if rule_of(item) is not None}
        pairs = [f"{key}={_plain(value)}" for key, value in shown_of.items()]
        lines.append(f"{name}:{','.join(pairs)}")
    return lines


def _plain(value: object) -> str:
    """A scalar in its shortest form that YAML reads back."""
    return "null" if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def check_faults(faults: Sequence[Fault], gpus: int, iterations: int) -> None:
    """Refuse a fault of a missing worker, or outside the measured iterations. Raises ScenarioError."""
    if len(faults) > MOST_FAULTS:
        raise ScenarioError(f"faults: {len(faults)} are given; allowed: at most {MOST_FAULTS}")
    for fault in faults:
        name = fault.path
        check_fields(fault, name)
        worker = getattr(fault, "worker", None)
        if worker is not None and worker >= gpus:
            raise ScenarioError(
                f"{name}.worker: {worker}: no such worker; allowed: 0 to {gpus - 1} (cluster.gpus is {gpus})"
            )
        last = getattr(fault, "last", None)
        for name_of in ("iteration", "first", "last"):
            at = getattr(fault, name_of, None)
            if at is not None and at >= iterations:
                raise ScenarioError(f"{name}.{name_of}: {at} is outside the run; allowed: 0 to {iterations - 1}")
        if last is not None and last < getattr(fault, "first", 0):
            raise ScenarioError(f"{name}.last: {last} is before first, {getattr(fault, 'first', 0)}")
