"""The Plan page: which machine and setting to rent, for an iteration or for a whole training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from gcnsim.core.errors import ScenarioError, nearest
from gcnsim.core.spellings import known_name
from gcnsim.dashboard.files import Files
from gcnsim.hardware import ON_DEMAND, PriceBook, devices, hosts, is_file, prices
from gcnsim.planning.capacity_goal import MINIMISED
from gcnsim.scenario.option import flag, words
from gcnsim.scenario.question import field_value
from gcnsim.scenario.question import options as fields_of
from gcnsim.scenario.recommend import Recommend

CHANCE: Final = "90%"
"""The initial chance of meeting a target."""

UNCERTAIN: Final = ("target_iteration", "target_hours", "max_cost")
"""Targets that are met with a chance."""

USUAL: Final = {"dataset": "reddit", "minimise": MINIMISED[0], "confidence": CHANCE}
"""Fields that the command line may omit at these values."""

PRICES: Final = {"pricing": ON_DEMAND}
"""Fields of the price book, with their initial values."""

REPEATED: Final = ("runs", "price")
"""Fields that take several values, between commas, each an option of its own on the command line."""

OWN_DATA: Final = ("graph", "measured_compute")
"""Fields that say of which graph the answer is, in place of the dataset."""


def options(values: Mapping[str, str], files: Files) -> dict[str, Any]:
    """The options of the page's job; those of the price book as plain data. Raises GcnsimError."""
    given = {name: text for name, text in values.items() if text or name in ("dataset", "minimise")}
    chosen = {name: given.pop(name) for name in PRICES if name in given}
    repeated = {name: split for name in REPEATED if (split := _split(given.pop(name, "")))}
    if "runs" in repeated:
        repeated["runs"] = [path for word in repeated["runs"] if (path := files.path(word))]
    price = {"price": _priced(repeated.pop("price"))} if "price" in repeated else {}
    found = {name: field_value(Recommend, name, text) for name, text in given.items()}
    if found.get("confidence") == CHANCE and not any(name in found for name in UNCERTAIN):
        del found["confidence"]
    if "host" in found:
        _named("host", [item for item in found["host"] if not is_file(item)], hosts())
        found["host"] = [files.path(item) if is_file(item) else item for item in found["host"]]
    _named("device", found.get("device", ()), devices())
    for name in OWN_DATA:
        if name in found:
            found |= {"dataset": None, name: files.path(found[name])}
    if price or chosen != PRICES:
        found["prices"] = chosen | price
    return found | repeated


def _split(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _priced(found: list[str]) -> list[str]:
    """Prices, once they are known to name no file. Raises ScenarioError."""
    _named("price", [word.partition("=")[0].strip() for word in found if "=" in word], (*devices(), *hosts()))
    return found


def _named(name: str, found: Sequence[str], known: Sequence[str]) -> None:
    """Raises ScenarioError for what is no name of the catalogue: a file of it may lie anywhere."""
    for item in found:
        if known_name(item, known) is None:
            raise ScenarioError(f"{name}: unknown {item[:40]!r}; {nearest(item, known)}")


def check(name: str, text: str) -> None:
    """Check one field. Raises GcnsimError."""
    if name in (*PRICES, "price"):
        PriceBook.of(**{name: _priced(_split(text)) if name == "price" else text})  # type: ignore[arg-type]
        return
    value = field_value(Recommend, name, text)
    if name in ("device", "host"):
        _named(name, value, devices() if name == "device" else hosts())
    question = Recommend(**{name: value})
    if fields_of(Recommend)[name].rule is None:
        question.read(name)
    else:
        question.values(name, flag(name))


def command(values: Mapping[str, str]) -> list[str]:
    """The command line that asks the same."""
    usual = USUAL | PRICES
    found = {name: text for name, text in values.items() if text and usual.get(name) != text}
    if any(name in found for name in OWN_DATA):
        found.pop("dataset", None)
    repeated = [words({name: word}) for name in REPEATED for word in _split(found.pop(name, ""))]
    return ["gcnsim", "recommend", *words(found), *(word for pair in repeated for word in pair)]


def rented() -> tuple[str, ...]:
    """Instances of the catalogue that have a price."""
    listed = {price.instance for price in prices()}
    return tuple(name for name in hosts() if name in listed)
