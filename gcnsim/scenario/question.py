"""The shared fields of all questions: workload, machine, method, target, and how to answer.

Fields outside the scenario are parsed here; messages start with the given path. `keywords` makes a function's keywords
from the fields of a question.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any, ClassVar, Final, ParamSpec, TypeVar, cast

from gcnsim.core.errors import ScenarioError, UnitError, nearest
from gcnsim.core.fields import Number
from gcnsim.core.units import PER_KWH, POWER, SECONDS, Quantity, fraction
from gcnsim.hardware import PriceBook
from gcnsim.methods import COMPARED, all_knobs
from gcnsim.scenario.load import SECTIONS, rule_at
from gcnsim.scenario.option import (
    LIST,
    PAIRS,
    REPEATABLE,
    Option,
    Some,
    add_pair,
    flag,
    listed,
    option,
    option_of,
    read_pairs,
)
from gcnsim.workload.caching import parse_cache


def read_chance(raw: object, path: str) -> float:
    """A share of one above 0, of a number or of text with its unit. Raises ScenarioError or UnitError."""
    try:
        found = fraction(raw) if isinstance(raw, str) else raw
    except UnitError as error:
        raise UnitError(f"{path}: {error}") from None
    if isinstance(found, bool) or not isinstance(found, int | float) or not 0 < found <= 1:
        raise ScenarioError(f"{path}: {raw!r} is not allowed; a share above 0% and at most 100%")
    return float(found)


def read_quantity(quantity: Quantity, *, zero: bool = False) -> Callable[[object, str], float]:
    """The reader of an amount above 0 with its unit. zero: 0 is allowed, also without one. It raises ScenarioError or
    UnitError."""

    def read(raw: object, path: str) -> float:
        if zero and _is_zero(raw):
            return 0.0
        try:
            found = quantity.parse(raw)
        except UnitError as error:
            raise UnitError(f"{path}: {error}") from None
        if found == 0 and not zero:
            raise ScenarioError(f"{path}: {raw!r} is not allowed; {quantity.noun} above 0")
        return found

    return read


read_time: Final = read_quantity(SECONDS)
"""Seconds above 0, of text with its unit."""

ZERO: Final = re.compile(r"\s*0+(\.0*)?\s*")


def _is_zero(raw: object) -> bool:
    """Whether this is a zero without a unit; it needs none."""
    return ZERO.fullmatch(str(raw)) is not None


SIZES: Final[Mapping[str, Option]] = {
    "nodes": Option("Number of nodes, for a graph known only by its size, e.g. 3M", "workload.nodes", metavar="COUNT"),
    "edges": Option(
        "Number of undirected edges (with --nodes), each counted once, e.g. 117M", "workload.edges", metavar="COUNT"
    ),
    "features": Option("Input features per node", "workload.features", default="the data's, else 128"),
    "classes": Option("Number of classes: the width of the output", "workload.classes", default="the data's, else 16"),
    "train": Option(
        "Share of nodes that are training nodes; mini-batches and the balance of parts depend on it",
        "workload.train_fraction",
        metavar="SHARE",
        default="the data's, else 65%",
    ),
}
"""A graph by its sizes, and the widths of any."""

PRICES: Final[Mapping[str, Option]] = {
    "price": Option(
        "Hourly price of a device or an instance, e.g. t4=0.35USD/h", many=REPEATABLE, metavar="NAME=PRICE"
    ),
    "prices": Option("Price file; overrides the catalogue", kind="file"),
    "pricing": Option("on-demand or spot", default="on-demand"),
}
"""Prices: the keywords of `PriceBook.of`, with `prices` for `file`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """The fields that a what-if and a recommendation share, as given; None means the default."""

    OWN_FIRST: ClassVar[bool] = False
    """Whether a question's own fields come first in its help."""

    dataset: str | None = option("Built-in dataset (gcnsim catalog list datasets)", "workload.dataset")
    graph: object = option("Your own graph file instead; gcnsim partitions and samples it", kind="file")
    sizes: Mapping[str, Any] | None = option(
        "A graph known only by its sizes, instead of a file: nodes, edges, features, classes, train", parts=SIZES
    )
    gpus: Some[int] | None = option("GPUs, one worker each", "cluster.gpus", many=LIST)
    device: Some[str] | None = option(
        "GPU: a name in the catalogue, or a file", "cluster.device", many=LIST, default="the host's, else {}"
    )
    host: Some[str] | None = option(
        "Server: a name in the catalogue, or a file; sets the CPU, and also the GPUs and NIC unless you give them",
        "cluster.host",
        many=LIST,
        default="the server that --device is usually sold in",
    )
    measured_compute: str | Path | None = option(
        "Compute times measured by python -m runtime.measure; they replace the formulas", "cluster.measured_compute"
    )
    bandwidth: Some[str] | None = option(
        "Bandwidth of a server's NIC: 15Gbps, 10GbE, or a link's name",
        "cluster.bandwidth",
        many=LIST,
        noun="a bandwidth",
        default="the host's, else {}",
    )
    link: str | None = option("Kind of network, e.g. infiniband-ndr", "cluster.link", default="the host's, else {}")
    pcie: str | None = option(
        "Link from a GPU to its host, e.g. pcie4-x16",
        "cluster.pcie",
        default="the slower of the device's and the host's",
    )
    nvlink: str | None = option(
        "NVLink between the GPUs of a server, one way, e.g. 300GB/s; none: without",
        "cluster.nvlink",
        default="the host's, else the device's",
    )
    method: Some[str] | None = option(
        "Methods to compare, or all", "method.name", many=LIST, names=("all",), default=",".join(COMPARED)
    )
    min_sampling_rate: float | None = option("Lowest sampling rate that may be recommended", kind="real", default="0.1")
    max_staleness: int | None = option("Highest staleness (tau) that may be recommended", kind="whole", default="2")
    tau: Some[int] | None = option(
        "Staleness: age, in iterations, of boundary rows (feature vectors of neighbours on other GPUs)",
        "method.tau",
        many=LIST,
        noun="a whole number of iterations",
    )
    epsilon: Some[float | str] | None = option(
        "Sampling rate: share of each node's edges that is drawn",
        "method.epsilon",
        many=LIST,
        noun="a share (0.1 or 10%)",
    )
    cache: Some[str | float] | None = option(
        "Cache of input features on each GPU: a share, 30%, or a size, 2GiB",
        "method.cache",
        own=parse_cache,
        many=LIST,
        noun="a share (30% or 0.3) or bytes (2GiB)",
    )
    model: str | None = option("gcn, graphsage or gat", "workload.model", default="the dataset's, else gcn")
    layers: int | None = option(
        "Number of layers (graph convolutions)", "workload.layers", default="the dataset's, else 4"
    )
    hidden: int | None = option("Width of the hidden layers", "workload.hidden", default="the dataset's, else 256")
    target_accuracy: float | str | None = option(
        "Predict the time and cost of reaching this validation accuracy, e.g. 90%", own=read_chance, metavar="SHARE"
    )
    runs: Sequence[str | Path] = option(
        "Recorded run that shows how many iterations --target-accuracy takes", value=(), kind="file", many=REPEATABLE
    )
    iterations_needed: int | Mapping[str, int] | None = option(
        "Predict the time and cost of training for this many iterations: your own figure, for every method or for one",
        kind="whole",
        many=PAIRS,
        metavar="[METHOD=]N",
    )
    mtbf: str | None = option("Mean time between failures of a server, e.g. 2000h", own=read_time, metavar="TIME")
    interruptions: float | None = option(
        "Interruptions of a spot server per hour, e.g. 0.05",
        own=Number(False, 0.0, low_open=True).read,
        kind="real",
    )
    interruption_notice: str | None = option(
        "Time from a spot server's notice to its end, e.g. 2min", own=read_time, metavar="TIME"
    )
    checkpoint: str | None = option("Time to write a checkpoint, e.g. 30s", own=read_time, metavar="TIME")
    restart: str | None = option("Time from a failure until training resumes, e.g. 5min", own=read_time, metavar="TIME")
    electricity: str | None = option(
        "Price of electricity, e.g. 0.12USD/kWh; adds the energy of the machine and its cost to the answer",
        own=read_quantity(PER_KWH, zero=True),
        metavar="PRICE",
    )
    gpu_power: str | None = option(
        "Power of a computing GPU, e.g. 250W; adds energy to the answer; a cap does not change simulated times",
        own=read_quantity(POWER),
        default="a share of the datasheet's",
        metavar="POWER",
    )
    prices: PriceBook | None = option("`PriceBook.of`", default="the catalogue's", parts=PRICES)
    iterations: int | None = option("Iterations to simulate", "run.iterations")
    seed: int | None = option("Seed of every random draw", "run.seed")
    processes: int | None = option("Processes to use", kind="whole", least=1, default="one per core")
    transport: str | None = option(
        "How rows move between GPUs: direct (NCCL), or staged through the host (gloo)",
        "cluster.transport",
        default="direct, assumed",
    )
    overrides: Sequence[str] = option(
        "Override a scenario field", value=(), many=REPEATABLE, metavar="PATH=VALUE", flag="--set"
    )
    progress: Callable[[str], None] | None = None
    notice: Callable[[str], None] | None = None

    def say(self, text: str) -> None:
        """Report progress to the user."""
        if self.progress is not None:
            self.progress(text)

    def note(self, text: str) -> None:
        """Report a warning to the user."""
        if self.notice is not None:
            self.notice(text)

    def sections(self) -> dict[str, dict[str, Any]]:
        """The given fields of each section of a scenario, without fields that may have several values.

        Raises ScenarioError for an unknown size.
        """
        found: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        values = [(item, getattr(self, name)) for name, item in options(type(self)).items() if not item.many]
        for name, value in (self.sizes or {}).items():
            if name not in SIZES:
                raise ScenarioError(f"sizes: unknown {name!r}; {nearest(name, SIZES)}")
            values.append((SIZES[name], value))
        for item, value in values:
            section, _, key = item.path.partition(".")
            if key and value is not None:
                found[section][key] = str(value) if isinstance(value, Path) else value
        return found

    def read(self, name: str) -> Any:
        """The value of a field outside the scenario. Raises ScenarioError or UnitError naming the option."""
        value, read = getattr(self, name), options(type(self))[name].own
        return value if value is None or read is None else read(value, flag(name))

    def values(self, name: str, path: str = "", first: int = 0) -> tuple[Any, ...]:
        """The values of a scenario field, each parsed by its rule, from that number `first` on.

        path: the start of messages, by default the field's. Raises ScenarioError or UnitError.
        """
        found = options(type(self))[name]
        read = found.own or rule_at(found.path)[0].read
        return tuple(read(item, path or found.path) for item in listed(getattr(self, name))[first:])

    def knobs(self) -> dict[str, tuple[Any, ...]]:
        """The given values of every knob of methods that may have several, by the path of the field.

        Raises ScenarioError or UnitError.
        """
        knobs = {name for name, found in options(type(self)).items() if found.many and found.path == f"method.{name}"}
        return {f"method.{name}": values for name in all_knobs() if name in knobs and (values := self.values(name))}


def options(kind: type[Question]) -> Mapping[str, Option]:
    """The fields of a question that a command line asks for, in the order of its help."""
    found = {item.name: each for item in fields(kind) if (each := option_of(item)) is not None}
    shared = {item.name for item in fields(Question)}
    placed = [name for name in found if not found[name].after]
    if kind.OWN_FIRST:
        placed.sort(key=lambda name: name in shared)
    for name, each in found.items():
        if each.after:
            placed.insert(placed.index(each.after) + 1, name)
    return {name: found[name] for name in placed}


def flat_options(kind: type[Question]) -> dict[str, Option]:
    """The fields of a question as a command line names them: compound fields are replaced by their parts."""
    return {
        key: value for name, field in options(kind).items() for key, value in (field.parts or {name: field}).items()
    }


def given_options(kind: type[Question], values: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords of a question from the values of its flat options. Raises GcnsimError for unusable prices."""
    keywords = {name: _put_together(name, option, values) for name, option in options(kind).items()}
    return {name: value for name, value in keywords.items() if value not in (None, (), {})}


def _put_together(name: str, option: Option, values: Mapping[str, Any]) -> Any:
    if name == "prices":
        return price_book(values)
    if option.parts:
        return {part: values[part] for part in option.parts if values.get(part) is not None}
    if option.many == PAIRS:
        found: dict[str, int] = {}
        for key, number in (pair for pairs in values.get(name) or () for pair in pairs.items()):
            add_pair(found, key, number, option.flag or flag(name))
        return found
    return values.get(name)


def price_book(values: Mapping[str, Any]) -> PriceBook:
    """The price book from the values of the price options. Raises GcnsimError."""
    own = {name: values.get(name) for name in PRICES if name not in ("price", "prices")}
    return PriceBook.of(listed(values.get("price") or None), values.get("prices"), **own)


def field_value(kind: type[Question], name: str, text: str) -> Any:
    """The value of the keyword for the text of an option. Raises ScenarioError."""
    each = flat_options(kind)[name]
    if each.many == LIST:
        return each.values(text, flag(name))
    if each.many == PAIRS:
        return read_pairs(text, flag(name))
    if each.written not in ("whole", "real"):
        return text
    try:
        return int(text) if each.written == "whole" else float(text)
    except ValueError:
        noun = "a whole number" if each.written == "whole" else "a number"
        raise ScenarioError(f"{flag(name)}: {text!r} is not {noun}") from None


def _composed(kind: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a question from keywords; one of several parts may be given by its parts, as on a command line.

    Raises ScenarioError for an unknown keyword, with the nearest one, and for a part given twice.
    """
    every, known = options(kind), {entry.name for entry in fields(kind)}
    places = {part: name for name, option in every.items() for part in option.parts}
    found = {name: value for name, value in given.items() if name in known}
    for name in given.keys() - known:
        if name not in places:
            raise ScenarioError(f"{name}: unknown keyword; {nearest(name, sorted({*known, *places}))}")
        if places[name] in given:
            raise ScenarioError(f"{name}: is a part of {places[name]}, which is given too; allowed: one of them")
    for whole in sorted({places[name] for name in given.keys() - known}):
        found[whole] = _put_together(whole, every[whole], given)
    return found


P = ParamSpec("P")
Q = TypeVar("Q", bound=Question)
T = TypeVar("T")


def keywords(kind: Callable[P, Q]) -> Callable[[Callable[[Q], T]], Callable[P, T]]:
    """Give a function the fields of the class `kind` as keywords, with their help."""

    def of(answer: Callable[[Q], T]) -> Callable[P, T]:
        @wraps(answer)
        def requested(*args: P.args, **kwargs: P.kwargs) -> T:
            return answer(cast("Callable[..., Q]", kind)(*args, **_composed(kind, kwargs)))

        assert isinstance(kind, type)
        lines = [f"    - {name}: {value.line}" for name, value in options(kind).items()]
        requested.__doc__ = "\n".join([(answer.__doc__ or "").rstrip(), "", *lines])
        del requested.__wrapped__  # so that inspect shows the keywords
        shown = signature(kind).replace(return_annotation=signature(answer).return_annotation)
        requested.__signature__ = shown  # type: ignore[attr-defined]  # what help() and notebooks show
        return requested

    return of
