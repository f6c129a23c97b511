"""Rules of fields that name entries of the catalogue, or that replace its figures.

Devices, hosts and links are entries of the catalogue or files; several devices mean one per server. `cluster.figures`
replaces figures of the catalogue for one question.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, UnitError, nearest
from gcnsim.core.fields import Choice, denied, shown
from gcnsim.core.spellings import known_name
from gcnsim.core.units import FRACTION
from gcnsim.hardware import (
    DESCRIBED,
    DESCRIBED_HOST,
    QUANTITIES,
    ZERO_ALLOWED,
    device,
    devices,
    figure_names,
    gpu_meant,
    host,
    hosts,
    is_file,
    kind_described,
    links,
    links_between,
    links_within,
)

_RATE: Final = re.compile(r"\d+(\.\d*)?\s*([kmgtp]i?)?b.{0,20}", re.IGNORECASE)
"""The start of a rate in any unit; no link has such a name."""


@dataclass(frozen=True, slots=True)
class Words:
    """One or more names out of `names()`, as a list or separated by commas; own, alias, otherwise: as in `Choice`."""

    noun: str
    names: Callable[[], Collection[str]]
    own: Callable[[str], bool] | None = None
    unit: str = ""
    alias: Callable[[str], str | None] | None = None
    otherwise: str = ""

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        beside = ", or files (.yaml)" if self.own else ""
        known = ", ".join(sorted(self.names()))
        return f"names separated by commas, the last for all further servers: {known}{beside}"

    def read(self, raw: object, path: str) -> tuple[str, ...]:
        """Parse names like `t4,v100-16`, or a list. Raises ScenarioError, starting with `path`."""
        texts = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(texts, list):
            raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {self.allowed}")
        names = self.canonical(tuple(text.strip() if isinstance(text, str) else text for text in texts))
        self.check(names, path)
        return tuple(names)

    def canonical(self, value: Any) -> Any:
        """The canonical names of `value`."""
        return tuple(map(self._one.canonical, value)) if isinstance(value, tuple) else value

    @property
    def _one(self) -> Choice:
        return Choice(f"a {self.noun}", self.names, self.own, alias=self.alias, otherwise=self.otherwise)

    def check(self, value: Any, path: str) -> None:
        """Refuse an unknown name. Raises ScenarioError, starting with `path`."""
        if not isinstance(value, tuple):
            raise ScenarioError(f"{path}: {shown(value)} is not allowed; {self.allowed}")
        if not value:
            raise ScenarioError(f"{path}: nothing is named; {self.allowed}")
        for item in value:
            self._one.check(item, path)

    def write(self, value: Any) -> object:
        """Format names: `t4,v100-16`."""
        return ",".join(value)


def _own_device(name: str) -> bool:
    """Whether `name` is a device file, which is then read. Raises FileError for an unusable one."""
    return is_file(name) and device(name) is not None


def _own_host(name: str) -> bool:
    """Whether `name` is a host file, which is then read. Raises FileError for an unusable one."""
    return is_file(name) and host(name) is not None


DEVICE: Final = Choice("a device", devices, _own_device, alias=gpu_meant, otherwise=DESCRIBED)
DEVICES: Final = Words("device", devices, _own_device, alias=gpu_meant, otherwise=DESCRIBED)
HOST: Final = Choice("a host", hosts, _own_host, otherwise=DESCRIBED_HOST)


@dataclass(frozen=True, slots=True)
class LinkName(Choice):
    """The name of a link. rate: the field to use for a rate."""

    rate: str = ""

    def check(self, value: Any, path: str) -> None:
        """Refuse an unknown name. Raises ScenarioError, starting with `path`."""
        if _RATE.fullmatch(str(value)):
            names = ", ".join(sorted(self.names() if self.names else ()))
            raise ScenarioError(
                f"{path}: {shown(value)} is a rate, the name of a link is needed: {names}; a rate "
                f"is set with --set {self.rate}={value}"
            )
        Choice.check(self, value, path)


PCIE: Final = LinkName("a link within servers", links_within, rate="cluster.figures=NAME.bandwidth")
LINK: Final = LinkName("a link between servers", links_between, rate="cluster.bandwidth")


Figures = tuple[tuple[str, float], ...]
"""Pairs (`t4.spmm_efficiency`, value in SI units), sorted by name."""

NONE: Final = "none"


@dataclass(frozen=True, slots=True)
class CatalogueFigures:
    """`NAME.FIGURE=VALUE`, several separated by commas, or a mapping; NAME: a device, link or host of the catalogue."""

    unit: str = ""

    @property
    def allowed(self) -> str:
        """The allowed values, in words."""
        return "NAME.FIGURE=VALUE separated by commas, e.g. t4.spmm_efficiency=50%,ethernet.latency_s=20us, or none"

    def read(self, raw: object, path: str) -> Figures:
        """Parse figures from a text or a mapping. Raises ScenarioError or UnitError, starting with `path`."""
        figures: dict[str, float] = {}
        for given, text in self._pairs(raw, path):
            name = ".".join(_known(given, path))
            if name in figures:
                raise ScenarioError(f"{path}: {name} is given twice")
            figures[name] = _value(name, text, path)
        values = tuple(sorted(figures.items()))
        self.check(values, path)
        return values

    def _pairs(self, raw: object, path: str) -> list[tuple[str, object]]:
        if isinstance(raw, dict):
            return [(str(name), text) for name, text in raw.items()]
        if not isinstance(raw, str):
            raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {self.allowed}")
        pairs: list[tuple[str, object]] = []
        if raw.strip() == NONE:
            return pairs
        for part in raw.split(","):
            name, equals, text = (word.strip() for word in part.partition("="))
            if not equals:
                raise ScenarioError(f"{path}: {shown(part.strip())} is not allowed; {self.allowed}")
            pairs.append((name, text))
        return pairs

    def check(self, value: Any, path: str) -> None:
        """Refuse unknown names and values out of range. Raises ScenarioError, starting with `path`."""
        if not isinstance(value, tuple):
            raise ScenarioError(f"{path}: {shown(value)} is not allowed; {self.allowed}")
        for name, number in value:
            field = _field(name, path)
            share = QUANTITIES[field] is FRACTION and field != "work_spread"
            least, most = 0.0 if field in ZERO_ALLOWED else math.ulp(0.0), 1.0 if share else math.inf
            if not (least <= number <= most) or number == math.inf:
                limit = "above 0% and at most 100%" if share else "of at least 0" if least == 0.0 else "above 0"
                raise ScenarioError(f"{path}: {name}={figure_text(name, number)} is not allowed; {limit}")

    def write(self, value: Any) -> object:
        """Format figures: `t4.spmm_efficiency=50%,ethernet.latency_s=20us`; `none` for no figures."""
        return ",".join(f"{name}={figure_text(name, number)}" for name, number in value) or NONE


def figure_text(name: str, number: float) -> str:
    """Format the value of the figure `NAME.FIGURE` with its unit."""
    quantity = QUANTITIES[name.rpartition(".")[2]]
    return f"{number:.12g}" if quantity is None or not 0 <= number < math.inf else quantity.exact(number)


def _field(name: str, path: str) -> str:
    """The field of the figure. Raises ScenarioError if the catalogue, or the file of a device, has no such figure."""
    return _known(name, path)[1]


def _known(name: str, path: str) -> tuple[str, str]:
    """The catalogue entry of the figure `NAME.FIGURE` and the name of its field."""
    profile, _, field = name.rpartition(".")
    own = kind_described(profile) if is_file(profile) else ""
    # Read the file here, so that an unusable one is reported at once.
    if own == "device":
        device(profile)
    elif own == "host":
        host(profile)
    for kind, names in (("device", devices()), ("link", links()), ("host", hosts())):
        if (known := profile if own == kind else known_name(profile, names)) is not None:
            if field not in figure_names(kind):
                raise ScenarioError(
                    f"{path}: {known} has no figure {shown(field)}; {nearest(field, figure_names(kind))}"
                )
            return known, field
    every = (*devices(), *links(), *hosts())
    raise ScenarioError(f"{path}: unknown device, link or host {shown(profile)}; {nearest(profile, every)}")


def _value(name: str, raw: object, path: str) -> float:
    quantity = QUANTITIES[_field(name, path)]
    try:
        if quantity is not None:
            return quantity.parse(raw)
        return float(str(raw))
    except UnitError as error:
        raise UnitError(f"{path}: {name}: {error}") from None
    except ValueError:
        raise ScenarioError(f"{path}: {name}: {denied(raw)} a number") from None
