"""The question of a What-if page in its address: parsed strictly, written back, and converted to a command line."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

from gcnsim.core.errors import GcnsimError, ScenarioError, nearest
from gcnsim.core.fields import Choice
from gcnsim.core.units import BANDWIDTH
from gcnsim.hardware import device, devices
from gcnsim.methods import COMPARED, has_knob, methods
from gcnsim.scenario import DEFAULT_DATASET, ClusterSpec, read_injected
from gcnsim.scenario.option import plain, words
from gcnsim.scenario.question import field_value, options
from gcnsim.scenario.what_if import WhatIf
from gcnsim.workload import datasets

BANDWIDTHS: Final = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 25.0, 40.0, 50.0, 100.0, 200.0, 400.0)
"""Stops of the slider, Gbit/s."""

GPUS: Final = (2, 3, 4, 6, 8, 10, 12, 16, 24, 32, 48, 64)
TAUS: Final = (0, 1, 2, 3, 4, 5, 6, 8)
EPSILONS: Final = (0.01, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0)
CACHES: Final = (0.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 100.0)
"""Per cent of boundary rows."""

STOPS: Final[Mapping[str, tuple[float, ...]]] = {
    "bandwidth": BANDWIDTHS,
    "gpus": GPUS,
    "tau": TAUS,
    "epsilon": EPSILONS,
    "cache": CACHES,
}
"""The stops of each slider; another value in an address becomes an extra stop."""

FIGURES: Final = {
    "breakdown": "Where the time goes",
    "bandwidth": "Against bandwidth",
    "gpus": "Against GPUs",
    "tau": "Against tau",
    "epsilon": "Against epsilon",
    "cache": "Against cache",
}

MOST_METHODS: Final = 6
MOST_TEXT: Final = 300
"""Characters of a name or path."""

MOST_PIN: Final = 2_000
"""Characters of the address of a pinned question."""

MORE: Final = (
    "gpus_per_server",
    "host",
    "link",
    "pcie",
    "nvlink",
    "transport",
    "model",
    "layers",
    "hidden",
    "rate",
    "inject",
)
"""Further fields of a what-if, each a text that its own rule reads."""

MOST_OF: Final = {"layers": 16, "hidden": 4096}
"""The most of a page that answers at once; the command line takes more."""

KNOBS: Final = ("rate",)
"""Those of them that only some methods have."""

FAULT: Final = "inject"

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "bandwidth": (0.01, 10_000.0),
    "beside": (0.01, 10_000.0),
    "gpus": (1, 64),
    "tau": (0, 64),
    "epsilon": (0.0, 1.0),
    "cache": (0.0, 100.0),
}
FIRST: Final = ClusterSpec()
UNSAID: Final = ("dataset", "device")
"""Options that the command line omits at their initial values."""

_WHOLE: Final = ("gpus", "tau")


@dataclass(frozen=True, slots=True)
class PageQuestion:
    """bandwidth, beside: Gbit/s of a server's card; cache: per cent. graph: a file in place of the dataset, or an
    upload. measured: a file of compute times, whose data and device stand. calibration: a file. methods: empty for
    those compared by default. figure: of `FIGURES`. The fields of `MORE` are texts, empty for what is usual. pin: the
    query of the address of a question to compare with, `?` for the initial one.
    """

    dataset: str = DEFAULT_DATASET
    graph: str = ""
    measured: str = ""
    calibration: str = ""
    device: str = FIRST.device
    gpus: int = FIRST.gpus
    bandwidth: float = FIRST.bandwidth * 8 / 1e9
    beside: float | None = None
    tau: int = 2
    epsilon: float = 0.1
    cache: float = 0.0
    methods: tuple[str, ...] = ()
    figure: str = "breakdown"
    gpus_per_server: str = ""
    host: str = ""
    link: str = ""
    pcie: str = ""
    nvlink: str = ""
    transport: str = ""
    model: str = ""
    layers: str = ""
    hidden: str = ""
    rate: str = ""
    inject: str = ""
    pin: str = ""

    @property
    def links(self) -> list[str]:
        """The links that it names."""
        return list(filter(None, (self.link, self.pcie, self.nvlink and f"NVLink {self.nvlink}")))

    @property
    def pinned(self) -> PageQuestion | None:
        """The question that this one is compared with, A; None without one."""
        return _read_pinned(self.pin) if self.pin else None

    @property
    def named(self) -> tuple[str, ...]:
        """The requested methods."""
        return self.methods or tuple(COMPARED)

    @property
    def bandwidths(self) -> list[float]:
        """Gbit/s, that of the slider first."""
        return list(dict.fromkeys([self.bandwidth, *([] if self.beside is None else [self.beside])]))

    def address(self) -> str:
        """The query of the page's address, without initial values; empty for the initial question."""
        usual = PageQuestion()
        changed = {field.name: getattr(self, field.name) for field in fields(self)}
        query = {name: plain(value) for name, value in changed.items() if value != getattr(usual, name)}
        return f"?{urlencode(query)}" if query else ""

    def options(self, graph: str | None, measured: str | None = None, calibration: str | None = None) -> dict[str, Any]:
        """The options of `gcnsim.what_if`; graph, measured, calibration: the paths that these fields stand for."""
        options: dict[str, Any] = {
            "gpus": int(self.gpus),
            "bandwidth": [f"{bandwidth:g}Gbps" for bandwidth in self.bandwidths],
        }
        if measured is None:
            options |= {"device": self.device} | ({"dataset": self.dataset} if graph is None else {"graph": graph})
        else:
            options |= {"measured_compute": measured} | ({} if graph is None else {"graph": graph})
        if calibration is not None:
            options["calibration"] = calibration
        if self.methods:
            options["method"] = list(self.methods)
        given = {name: getattr(self, name) for name in MORE if getattr(self, name)}
        options |= {
            name: field_value(WhatIf, name, text) for name, text in given.items() if name not in (*KNOBS, FAULT)
        }
        if self.inject:
            options[FAULT] = [self.inject]
        knobs: dict[str, Any] = {"tau": int(self.tau), "epsilon": self.epsilon, "cache": f"{self.cache:g}%"}
        knobs |= {name: text for name, text in given.items() if name in KNOBS}
        return options | {
            name: value for name, value in knobs.items() if any(has_knob(item, name) for item in self.named)
        }

    def row_options(
        self,
        graph: str | None,
        method: str,
        *,
        measured: str | None = None,
        calibration: str | None = None,
        **other: Any,
    ) -> dict[str, Any]:
        """The options for the row of one method; other: values that replace the question's, in Gbit/s and per cent."""
        options = replace(self, beside=None, methods=(method,), **other).options(graph, measured, calibration)
        device = {"device": options["device"]} if "device" in options else {}
        first = {"gpus": options["gpus"], "bandwidth": options["bandwidth"][0], **device, "method": method}
        return first | {name: value for name, value in options.items() if name not in first}

    def command(self) -> str:
        """The command line of the same question."""
        options = self.options(self.graph or None, self.measured or None, self.calibration or None)
        usual = PageQuestion()
        shown = {
            name: option for name, option in options.items() if name not in UNSAID or option != getattr(usual, name)
        }
        return shlex.join(["gcnsim", "what-if", *words(options if self.graph else shown)])


def read_address(query: str | None) -> PageQuestion:
    """Parse the question in an address. Raises GcnsimError (one line) for values that no slider can have."""
    names = [field.name for field in fields(PageQuestion)]
    values: dict[str, Any] = {}
    for name, text in parse_qsl((query or "").lstrip("?"), keep_blank_values=True):
        if name not in names:
            raise ScenarioError(f"address: unknown {name!r}; {nearest(name, names)}")
        if name in values:
            raise ScenarioError(f"address: {name} is given twice")
        values[name] = _value(name, text)
    return PageQuestion(**values)


def _read_pinned(query: str) -> PageQuestion:
    try:
        return read_address(query)
    except GcnsimError as error:
        raise ScenarioError(f"A: {error}") from error


def moved(question: PageQuestion, **values: Any) -> PageQuestion:
    """The question with other values, checked like those of an address. Raises ScenarioError."""
    merged = {field.name: getattr(question, field.name) for field in fields(PageQuestion)} | values
    return PageQuestion(**{name: _value(name, "" if value is None else plain(value)) for name, value in merged.items()})


def stops(name: str, value: float) -> list[float]:
    """The stops of a slider, including `value`."""
    return sorted({*STOPS[name], value})


def _value(name: str, text: str) -> Any:
    most = MOST_PIN if name == "pin" else MOST_TEXT
    if len(text) > most or not text.isprintable():
        raise ScenarioError(f"{name}: {text[:40]!r} is not allowed; at most {most} printable characters")
    if name == "pin" and _read_pinned(text).pin:
        raise ScenarioError("pin: a pinned question has itself one; allowed: one without")
    if name == "beside" and not text:
        return None
    if name in _RANGES:
        return _number(name, text)
    if name == "methods":
        found = tuple(dict.fromkeys(word for word in text.split(",") if word))
        for item in found:
            if item not in methods():
                raise ScenarioError(f"methods: unknown {item!r}; {nearest(item, methods())}")
        if len(found) > MOST_METHODS:
            raise ScenarioError(f"methods: {len(found)} are asked for; allowed: at most {MOST_METHODS} at once")
        return found
    if name in MORE and text:
        return _read(name, text)
    if name == "figure" and text not in FIGURES:
        raise ScenarioError(f"figure: unknown {text!r}; {nearest(text, FIGURES)}")
    known = {"dataset": datasets, "device": devices}.get(name)
    if known is not None and text not in known():
        raise ScenarioError(f"{name}: unknown {text!r}; {nearest(text, known())}")
    return text


def names_of(name: str) -> tuple[str, ...]:
    """What a field of `MORE` may be, where that is a list."""
    rule = options(WhatIf)[name].rule
    return tuple(rule.names()) if isinstance(rule, Choice) and rule.names is not None else ()


def rates_of_nvlink() -> tuple[str, ...]:
    """The rates of NVLink in the catalogue, which a field suggests; another rate is allowed."""
    found = {rate.value for name in devices() if (rate := device(name).nvlink) is not None}
    return ("none", *(BANDWIDTH.exact(rate) for rate in sorted(found)))


def _read(name: str, text: str) -> str:
    """The text of a field of `MORE`, once it is checked: never a path, which a rule would read."""
    if name == FAULT:
        read_injected([text])
        return text
    names = names_of(name)
    if names and text not in names:
        raise ScenarioError(f"{name}: unknown {text!r}; {nearest(text, names)}")
    value = field_value(WhatIf, name, text)
    if isinstance(value, list) and len(value) > 1:
        raise ScenarioError(f"{name}: {text!r} is not allowed; one value")
    (read,) = WhatIf(**{name: value}).values(name, name)
    if name in MOST_OF and read > MOST_OF[name]:
        raise ScenarioError(f"{name}: {read} is not allowed; at most {MOST_OF[name]} here, more on the command line")
    return text


def _number(name: str, text: str) -> float | int:
    least, most = _RANGES[name]
    try:
        value: float | int = int(text) if name in _WHOLE else float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most or (name == "epsilon" and value == 0):
        kind = "a whole number" if name in _WHOLE else "a number"
        above = "above 0" if name == "epsilon" else f"from {least:g}"
        raise ScenarioError(f"{name}: {text!r} is not allowed; {kind} {above} to {most:g}")
    return value
