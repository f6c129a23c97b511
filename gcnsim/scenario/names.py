"""Rules of fields that name devices, hosts and links: of the catalogue, or files; several devices, one a server."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from gcnsim.errors import ScenarioError
from gcnsim.fields import Word, shown
from gcnsim.hardware import DESCRIBED, DESCRIBED_HOST, device, devices, gpu_meant, host, hosts, is_file, links

_RATE: Final = re.compile(r"\d+(\.\d*)?\s*([kmgtp]i?)?b.{0,20}", re.IGNORECASE)
"""How a rate begins, in any unit: no link is called so."""


@dataclass(frozen=True, slots=True)
class Words:
    """Names out of `names()`, a list or separated by commas; own, alias, otherwise: as of `Word`."""

    noun: str
    names: Callable[[], Collection[str]]
    own: Callable[[str], bool] | None = None
    unit: str = ""
    alias: Callable[[str], str | None] | None = None
    otherwise: str = ""

    @property
    def allowed(self) -> str:
        """The values allowed, in words."""
        beside = ", or files (.yaml)" if self.own else ""
        known = ", ".join(sorted(self.names()))
        return f"names separated by commas, the last for all further servers: {known}{beside}"

    def read(self, raw: object, path: str) -> tuple[str, ...]:
        """The names of `t4,v100-16`, or of a list. Raises ScenarioError, starting with `path`."""
        texts = raw.split(",") if isinstance(raw, str) else raw
        if not isinstance(texts, list):
            raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {self.allowed}")
        names = self.canonical(tuple(each.strip() if isinstance(each, str) else each for each in texts))
        self.check(names, path)
        return tuple(names)

    def canonical(self, value: Any) -> Any:
        """The names that those of `value` stand for."""
        return tuple(map(self._one.canonical, value)) if isinstance(value, tuple) else value

    @property
    def _one(self) -> Word:
        return Word(f"a {self.noun}", self.names, self.own, alias=self.alias, otherwise=self.otherwise)

    def check(self, value: Any, path: str) -> None:
        """Refuse an unknown name. Raises ScenarioError, starting with `path`."""
        if not isinstance(value, tuple):
            raise ScenarioError(f"{path}: {shown(value)} is not allowed; {self.allowed}")
        if not value:
            raise ScenarioError(f"{path}: nothing is named; {self.allowed}")
        for each in value:
            self._one.check(each, path)

    def write(self, value: Any) -> object:
        """`t4,v100-16`."""
        return ",".join(value)


def _own_device(name: str) -> bool:
    """Whether `name` is that of a device file, which is read. Raises FileError for one that cannot be used."""
    return is_file(name) and device(name) is not None


def _own_host(name: str) -> bool:
    """Whether `name` is that of a host file, which is read. Raises FileError for one that cannot be used."""
    return is_file(name) and host(name) is not None


DEVICE: Final = Word("a device", devices, _own_device, alias=gpu_meant, otherwise=DESCRIBED)
DEVICES: Final = Words("device", devices, _own_device, alias=gpu_meant, otherwise=DESCRIBED)
HOST: Final = Word("a host", hosts, _own_host, otherwise=DESCRIBED_HOST)


@dataclass(frozen=True, slots=True)
class LinkName(Word):
    """The name of a link. rate: the field that sets a rate instead, up to the value."""

    rate: str = ""

    def check(self, value: Any, path: str) -> None:
        """Refuse an unknown name. Raises ScenarioError, starting with `path`."""
        if _RATE.fullmatch(str(value)):
            raise ScenarioError(
                f"{path}: {shown(value)} is a rate, the name of a link is needed: {', '.join(sorted(links()))}; a rate "
                f"is set with --set {self.rate}={value}"
            )
        Word.check(self, value, path)


PCIE: Final = LinkName("a link", links, rate="cluster.figures=NAME.bandwidth")
LINK: Final = LinkName("a link", links, rate="cluster.bandwidth")
