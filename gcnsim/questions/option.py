"""Options of questions: the rule, default and help of a field, declared once beside the field.

Values are written as one, or several between commas, as text or as an option.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import Field, dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias, TypeVar, overload

from gcnsim.errors import ScenarioError
from gcnsim.fields import Choice, FieldRule, Number
from gcnsim.scenario import default_at, rule_at

LIST: Final = "list"
REPEATABLE: Final = "repeatable"
PAIRS: Final = "pairs"
Written: TypeAlias = Literal["text", "whole", "real", "file"]
_FILE: Final = "a file name"
_KEY: Final = "gcnsim.option"


@dataclass(frozen=True, slots=True)
class Option:
    """One field of a question.

    help: what it is, without a full stop. path: the scenario's field that it is, whose rule and default are its own.
    own: what reads a field that is none of a scenario; kind: what it is written as where nothing else says. default:
    what stands where nobody gives it; None, and `{}` in it, is the scenario's own. many: values between commas, given
    again for each, or given again as NAME=VALUE. noun: what one value is, for messages. flag: where it is not the
    field's name. names: allowed besides those of the rule; choice: help lists them. least: of a whole number. parts:
    what it is put together of, an option each. after: the field before it in the help.
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
        """The rule of the scenario's field that it is; None where it is none."""
        return rule_at(self.path)[0] if self.path else None

    @property
    def written(self) -> Written:
        """How one value is written; what it means is for the rule."""
        rule = self.rule
        if type(rule) is Number:
            return "whole" if rule.whole else "real"
        return "file" if isinstance(rule, Choice) and rule.noun == _FILE else self.kind

    def values(self, text: str, path: str) -> list[Any]:
        """The values that a text has between commas. Raises ScenarioError, starting with `path`."""
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
        """Its help: a sentence, and the default behind it."""
        many = {LIST: " (list)", REPEATABLE: " (repeatable)", PAIRS: " (repeatable)"}.get(self.many, "")
        return f"{self.help}{many}." + (f"  [default: {self.usual}]" if self.usual else "")


def option(help: str = "", path: str = "", value: Any = None, **how: Any) -> Any:
    """A dataclass field with an `Option`. value: the default; how: fields of `Option`."""
    if value:
        how.setdefault("default", str(value))
    return field(default=value, metadata={_KEY: Option(help, path, **how)})


def reworded(other: type, name: str, help: str, **how: Any) -> Any:
    """The field of another question, with other words for what it is here."""
    found = other.__dataclass_fields__[name]  # type: ignore[attr-defined]
    return field(default=found.default, metadata={_KEY: replace(found.metadata[_KEY], help=help, **how)})


def option_of(item: Field[Any]) -> Option | None:
    """How a dataclass field is asked for; None of one that Python alone has."""
    found: Option | None = item.metadata.get(_KEY)
    return found


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
    texts = [word.strip() for word in text.split(",")]
    for item in texts:
        if not item or (whole and not WHOLE.fullmatch(item)):
            raise ScenarioError(f"{path}: {item!r} is not {noun}")
    return [int(item) for item in texts] if whole else texts


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
