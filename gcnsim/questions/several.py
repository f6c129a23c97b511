"""How values of a field are written: one, or several between commas, as text or as an option."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeVar, overload

from gcnsim.errors import ScenarioError

T = TypeVar("T")
WHOLE: Final = re.compile(r"[+-]?[0-9]+")
"""Decimal digits and a sign: other input that `int` accepts (6_0, other scripts) is a slip here."""

Some: TypeAlias = T | Sequence[T]
"""One value, or several: a row each."""


@overload
def listed(value: str | Sequence[str] | None) -> list[str]: ...
@overload
def listed(value: object) -> list[Any]: ...
def listed(value: Any) -> list[Any]:
    """The values asked for, none of None. Raises ScenarioError for an empty list."""
    if value is None:
        return []
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not values:
        raise ScenarioError("what-if: an empty list of values; give at least one")
    return values


def split(text: str, path: str, noun: str, *, whole: bool = False) -> list[Any]:
    """The values between commas, whole numbers or texts. Raises ScenarioError, starting with `path`."""
    texts = [each.strip() for each in text.split(",")]
    for each in texts:
        if not each or (whole and not WHOLE.fullmatch(each)):
            raise ScenarioError(f"{path}: {each!r} is not {noun}")
    return [int(each) for each in texts] if whole else texts


def words(given: Mapping[str, Any]) -> list[str]:
    """What is given, by field, as the options of a command line."""
    return [word for name, value in given.items() for word in (flag(name), plain(value))]


def plain(value: Any) -> str:
    """A value, or several between commas, as text."""
    if isinstance(value, list | tuple):
        return ",".join(map(plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def flag(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"
