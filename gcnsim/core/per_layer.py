"""The rule of a field that has a number for each layer of the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import shown

PerLayer = tuple[int | float, ...]
"""One number per layer, the input's first: how many (int), or a share of all (float)."""

MOST = 1_000_000_000


@dataclass(frozen=True, slots=True)
class PerLayerValues:
    """Whole numbers, and with `shares` also shares (`10%`), separated by commas."""

    shares: bool = False
    unit: str = ""

    @property
    def allowed(self) -> str:
        """The values allowed, in words."""
        more = " or shares (10%)" if self.shares else ""
        return f"whole numbers of at least 1{more} separated by commas, one for each layer, the input's first (25,10)"

    def read(self, raw: object, path: str) -> PerLayer:
        """Parse `25,10`, one number, or a list. Raises ScenarioError, starting with `path`."""
        if isinstance(raw, bool) or not isinstance(raw, str | int | list):
            raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {self.allowed}")
        texts = raw.split(",") if isinstance(raw, str) else raw if isinstance(raw, list) else [raw]
        values = tuple(self._number(str(text).strip(), raw, path) for text in texts)
        self.check(values, path)
        return values

    def _number(self, text: str, raw: object, path: str) -> int | float:
        if re.fullmatch(r"[0-9]{1,10}", text):
            return int(text)
        if self.shares and re.fullmatch(r"[0-9]{1,3}(\.[0-9]{1,9})?%", text):
            return float(text[:-1]) / 100.0
        raise ScenarioError(f"{path}: {shown(raw)} is not allowed; {self.allowed}")

    def check(self, value: Any, path: str) -> None:
        """Refuse numbers out of range. Raises ScenarioError, starting with `path`."""
        good = isinstance(value, tuple) and value and all(self._good(item) for item in value)
        if not good:
            text = self.write(value) if isinstance(value, tuple) and value else shown(value)
            raise ScenarioError(f"{path}: {text} is not allowed; {self.allowed}")

    def _good(self, value: Any) -> bool:
        if isinstance(value, bool):
            return False
        return (isinstance(value, int) and 1 <= value <= MOST) or (
            self.shares and isinstance(value, float) and 0.0 < value <= 1.0
        )

    def write(self, value: Any) -> object:
        """`25,10`."""
        return ",".join(f"{100 * item:.12g}%" if isinstance(item, float) else str(item) for item in value)
