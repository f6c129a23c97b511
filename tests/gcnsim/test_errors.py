"""What a user reads when a name or value is wrong."""

from __future__ import annotations

import pytest

from gcnsim.errors import FileError, GcnsimError, GraphError, ScenarioError, UnitError, nearest


@pytest.mark.parametrize("kind", [UnitError, ScenarioError, FileError, GraphError])
def test_every_user_error_is_caught_at_the_doors(kind: type[Exception]) -> None:
    assert issubclass(kind, GcnsimError)


def test_the_nearest_name_comes_first() -> None:
    assert nearest("PSC-GNC", ["full-graph", "psc-gcn"]) == "did you mean 'psc-gcn'? known: full-graph, psc-gcn"


def test_without_a_near_name_all_are_listed_in_order() -> None:
    assert nearest("zzz", ["t4", "a100"]) == "known: a100, t4"
