"""The rule of a field that names several things of the catalogue, one for each server."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from gcnsim.errors import ScenarioError, nearest
from gcnsim.fields import shown


@dataclass(frozen=True, slots=True)
class Words:
    """Names out of `names()`, a list or separated by commas; own: as of `Word`."""

    noun: str
    names: Callable[[], Collection[str]]
    own: Callable[[str], bool] | None = None
    unit: str = ""

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
        names = tuple(each.strip() if isinstance(each, str) else each for each in texts)
        self.check(names, path)
        return names

    def check(self, value: Any, path: str) -> None:
        """Refuse an unknown name. Raises ScenarioError, starting with `path`."""
        if not isinstance(value, tuple):
            raise ScenarioError(f"{path}: {shown(value)} is not allowed; {self.allowed}")
        if not value:
            raise ScenarioError(f"{path}: nothing is named; {self.allowed}")
        for each in value:
            own = isinstance(each, str) and self.own is not None and self.own(each)
            if not own and each not in self.names():
                raise ScenarioError(f"{path}: unknown {self.noun} {shown(each)}; {nearest(str(each), self.names())}")

    def write(self, value: Any) -> object:
        """`t4,v100-16`."""
        return ",".join(value)
