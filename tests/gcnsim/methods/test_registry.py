"""Methods by name: the registry, and methods that other packages install."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.methods import (
    COMPARED,
    Facts,
    Method,
    broken_methods,
    create_method,
    every_method,
    has_knob,
    method_type,
    methods,
    registry,
)
from gcnsim.schedule import Schedule
from gcnsim.workload.knobs import Knob, knob, knob_of
from tests.cases import Case, method


def test_all_methods_the_baseline_first() -> None:
    assert methods()[: len(COMPARED)] == COMPARED == ("full-graph", "pipegcn", "bns-gcn", "psc-gcn")
    assert [kind.name for kind in every_method().values()] == list(methods())
    assert [kind.name for kind in every_method().values() if kind.baseline] == ["full-graph"]


@pytest.mark.parametrize("name", methods())
def test_every_method_writes_a_schedule_of_its_name(
    facts: Callable[..., Case], batched: Callable[..., Case], name: str
) -> None:
    schedule = method(name)((batched if method_type(name).mini_batches else facts)())
    assert schedule.method == name
    assert schedule.workers == 4


@pytest.mark.parametrize("name", methods())
def test_every_knob_has_the_name_and_the_default_of_its_field(name: str) -> None:
    for item in fields(method_type(name)):
        found = knob_of(item)
        if found is not None:
            assert found.name == item.name
            assert found.standard == item.default
            assert found.help


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ScenarioError, match="unknown method 'pipgcn'; did you mean 'pipegcn'"):
        method_type("pipgcn")
    assert has_knob("psc-gcn", "tau")
    assert not has_knob("pipegcn", "tau")


@dataclass(frozen=True, slots=True, kw_only=True)
class Other(Method):
    """What another package might offer."""

    name: ClassVar[str] = "other"
    about: ClassVar[str] = "of another package"

    def schedule(self, facts: Facts) -> Schedule:
        return create_method("full-graph").schedule(facts)


class Mislabelled(Other):
    """Its name is not its entry point's."""


OFTEN = Knob("every", "", "int", 1, 9, False, 2, (), "of a test")


@dataclass(frozen=True, kw_only=True)
class Misnamed(Other):
    """A field and its knob have two names."""

    name: ClassVar[str] = "wrong"
    often: int = knob(OFTEN)


@dataclass(frozen=True, kw_only=True)
class OutOfRange(Other):
    """A default that its own range refuses."""

    name: ClassVar[str] = "wrong"
    every: int = knob(replace(OFTEN, default=20))


@dataclass(frozen=True, kw_only=True)
class Unfinished(Method):
    """It does not say what its iteration is."""

    name: ClassVar[str] = "wrong"


@pytest.fixture
def offered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Makes entry points of other packages, by name and object of this module."""

    def offer(**places: str) -> None:
        found = [EntryPoint(name, f"{__name__}:{place}", registry.GROUP) for name, place in places.items()]
        monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[self.attr])
        monkeypatch.setattr("importlib.metadata.entry_points", lambda group: found)
        forget()

    yield offer
    forget()


def forget() -> None:
    """The registry looks at installed packages again."""
    for known in (registry.every_method, registry._offered, registry.all_knobs):
        known.cache_clear()


def test_another_package_adds_a_method(offered: Callable[..., None]) -> None:
    offered(other="Other")
    assert methods()[-1] == "other"
    assert create_method("other") == Other()


def test_what_is_no_method_is_refused_with_its_entry_point(offered: Callable[..., None]) -> None:
    for place, why in (
        ("Mislabelled", "its name is 'other'"),
        ("fields", "is not a subclass"),
        ("absent", "KeyError"),
        ("Misnamed", "its field often is a knob of another name"),
        ("OutOfRange", "20 is not allowed"),
        ("Unfinished", "abstract class Unfinished .*schedule"),
    ):
        offered(wrong=place)
        with pytest.raises(ScenarioError, match=f"method 'wrong' of .*{place} .*{why}"):
            method_type("wrong")


def test_a_broken_package_stands_in_nobodys_way(offered: Callable[..., None]) -> None:
    offered(wrong="absent", other="Other")
    assert "wrong" not in methods()
    assert create_method("pipegcn").tau == 1
    assert create_method("other") == Other()
    assert list(broken_methods()) == ["wrong"]
    with pytest.raises(ScenarioError, match="unknown method 'pipgcn'"):
        method_type("pipgcn")


def test_a_built_in_name_stays_what_it_is(offered: Callable[..., None]) -> None:
    offered(pipegcn="Other")
    assert method_type("pipegcn").name == "pipegcn"
