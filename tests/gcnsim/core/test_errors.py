"""What a user reads when a name or value is wrong."""

from __future__ import annotations

import pickle

import pytest

from gcnsim.core.errors import LONGEST, FileError, GcnsimError, GraphError, ScenarioError, UnitError, nearest


@pytest.mark.parametrize("kind", [UnitError, ScenarioError, FileError, GraphError])
def test_every_user_error_is_caught_at_the_doors(kind: type[Exception]) -> None:
    assert issubclass(kind, GcnsimError)


def test_a_message_is_one_printable_line_whatever_value_it_names() -> None:
    assert str(FileError("x.yaml: key 'a\nb' \x1b[2J \u2028 é is wrong")) == r"x.yaml: key 'a b' \x1b[2J é is wrong"
    assert str(FileError("\udcff.npz: cannot be read")) == r"\udcff.npz: cannot be read"
    assert pickle.loads(pickle.dumps(FileError("a\nb"))).args == ("a b",)  # noqa: S301 - as processes hand it over


def test_a_message_that_is_too_long_loses_its_middle() -> None:
    content = str(FileError(f"x.yaml: {'9' * 5000} is not allowed; 1 or more"))
    assert len(content) < LONGEST + 10
    assert content.startswith("x.yaml: 999")
    assert content.endswith("999 is not allowed; 1 or more")


def test_the_nearest_name_comes_first() -> None:
    assert nearest("PSC-GNC", ["full-graph", "psc-gcn"]) == "did you mean 'psc-gcn'? known: full-graph, psc-gcn"


def test_without_a_near_name_all_are_listed_in_order() -> None:
    assert nearest("zzz", ["t4", "a100"]) == "known: a100, t4"
