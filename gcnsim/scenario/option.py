"""Options of questions: the rule, default and help of a field, declared once next to the field.

Values are written singly or separated by commas, as text or as an option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar, overload

from gcnsim.core.errors import ScenarioError
from gcnsim.core.fields import Choice, FieldRule, Number
from gcnsim.scenario.load import default_at, rule_at

LIST: Final = "list"
REPEATABLE: Final = "repeatable"
PAIRS: Final = "pairs"
Written: TypeAlias = Literal["text", "whole", "real", "file"]
_FILE: Final = "a file name"
_KEY: Final = "gcnsim.option"


@dataclass(frozen=True, slots=True)
class Option:
    """One field of a question.

    help: its description, without a full stop. path: the scenario field that it sets, with that field's rule and
    default. own: the parser of a field outside the scenario; kind: its metavar. default: its default; None, and `{}` in
    it, is the scenario's. many: values separated by commas, or a repeated option, or a repeated [NAME=]N. noun: the
    noun of one value, for messages. flag: the option, if it differs from the field's name. names: further allowed
    words; choice: list them in the help. least: of a whole number. parts: its components, an option each. after: the
    preceding field in the help.
    """

    help: str = ""
    path: str = ""
    own: Callable[[object, str], Any] | None = None
    kind: Written = "text"
    default: str | None = None
    many: Literal["", "list", "repeatable", "pairs"] = ""
    noun: str = ""
    flag: str = ""
    metavar: str | None = None
    names: tuple[str, ...] = ()
    choice: bool = False
    least: int | None = None
    parts: Mapping[str, Option] = field(default_factory=dict)
    after: str = ""

    @property
    def rule(self) -> FieldRule | None:
        """The rule of its scenario field; None without one."""
        return rule_at(self.path)[0] if self.path else None

    @property
    def written(self) -> Written:
        """The metavar of one value; the rule gives its meaning."""
        rule = self.rule
        if type(rule) is Number:
            return "whole" if rule.whole else "real"
        return "file" if isinstance(rule, Choice) and rule.noun == _FILE else self.kind

    def values(self, text: str, path: str) -> list[Any]:
        """The comma-separated values in a text. Raises ScenarioError, starting with `path`."""
        rule, whole = self.rule, self.written == "whole"
        noun = self.noun or (rule.noun if isinstance(rule, Choice) else "a whole number")
        return split(text, path, noun, whole=whole)

    @property
    def usual(self) -> str:
        """The default in words; empty if there is none."""
        default = "{}" if self.default is None else self.default
        return default.format(default_at(self.path) if self.path else "") if "{}" in default else default

    @property
    def line(self) -> str:
        """Its help: a sentence, followed by the default."""
        many = {LIST: " (list)", REPEATABLE: " (repeatable)", PAIRS: " (repeatable)"}.get(self.many, "")
        return f"{self.help}{many}." + (f"  [default: {self.usual}]" if self.usual else "")


def option(help: str = "", path: str = "", value: Any = None, **how: Any) -> Any:
    """A dataclass field with an `Option`. value: the default; how: fields of `Option`."""
    if value:
        how.setdefault("default", str(value))
    return field(default=value, metadata={_KEY: Option(help, path, **how)})


def reworded(other: type, name: str, help: str, **how: Any) -> Any:
    """The field of another question, with another help text."""
    found = other.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return field(default=found.default, metadata={_KEY: replace(found.metadata[_KEY], help=help, **how)})


def option_of(item: Field[Any]) -> Option | None:
    """The option of a dataclass field; None for a Python-only field."""
    found: Option | None = item.metadata.get(_KEY)
    return found


T = TypeVar("T")
WHOLE: Final = re.compile(r"[+-]?[0-9]+")
"""Decimal digits and a sign: other input that `int` accepts (6_0, other scripts) is probably a mistake."""

Some: TypeAlias = T | Sequence[T]
"""One value, or several: a row each."""


@overload
def listed(value: str | Sequence[str] | None) -> list[str]: ...
@overload
def listed(value: object) -> list[Any]: ...
def listed(value: Any) -> list[Any]:
    """The requested values, empty for None. Raises ScenarioError for an empty list."""
    if value is None:
        return []
    values = list(value) if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    if not values:
        raise ScenarioError("what-if: an empty list of values; give at least one")
    return values


def split(text: str, path: str, noun: str, *, whole: bool = False) -> list[Any]:
    """The comma-separated values, whole numbers or texts. Raises ScenarioError, starting with `path`."""
    texts = [word.strip() for word in text.split(",")]
    for item in texts:
        if not item or (whole and not WHOLE.fullmatch(item)):
            raise ScenarioError(f"{path}: {item!r} is not {noun}")
    return [int(item) for item in texts] if whole else texts


def read_pairs(text: str, path: str) -> dict[str, int]:
    """The whole numbers of `NAME=N`, or of `N` alone for the name `all`, separated by commas. Raises ScenarioError."""
    found: dict[str, int] = {}
    for word in text.split(","):
        name, equals, number = (part.strip() for part in word.rpartition("="))
        if not WHOLE.fullmatch(number) or (equals and not name):
            raise ScenarioError(f"{path}: {text!r} is not [METHOD=]N, N a whole number")
        add_pair(found, name or "all", int(number), path)
    return found


def add_pair(found: dict[str, int], name: str, number: int, path: str) -> None:
    """Add the number of a name. Raises ScenarioError for a name that has one."""
    if name in found:
        what = "a number for all methods" if name == "all" else name
        raise ScenarioError(f"{path}: {what} is given twice ({found[name]} and {number})")
    found[name] = number


def words(given: Mapping[str, Any]) -> list[str]:
    """The given fields as options of a command line."""
    return [word for name, value in given.items() for word in (flag(name), plain(value))]


def plain(value: Any) -> str:
    """A value, or several separated by commas, as text."""
    if isinstance(value, list | tuple):
        return ",".join(map(plain, value))
    return f"{value:g}" if isinstance(value, float) else str(value)


def flag(name: str) -> str:
    """The option of a field."""
    return f"--{name.replace('_', '-')}"
