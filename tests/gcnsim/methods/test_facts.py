"""Methods by name."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from gcnsim.errors import ScenarioError
from gcnsim.knobs import COMPARED, METHOD_KNOBS, MINI_BATCH
from gcnsim.methods import Facts, method, methods


def test_all_methods_the_baseline_first() -> None:
    assert methods()[: len(COMPARED)] == COMPARED == ("full-graph", "pipegcn", "bns-gcn", "psc-gcn")
    assert methods() == tuple(METHOD_KNOBS)


@pytest.mark.parametrize("name", methods())
def test_every_method_writes_a_schedule_of_its_name(
    facts: Callable[..., Facts], batched: Callable[..., Facts], name: str
) -> None:
    schedule = method(name)((batched if name in MINI_BATCH else facts)())
    assert schedule.method == name
    assert schedule.workers == 4


def test_an_unknown_method_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ScenarioError, match="unknown method 'pipgcn'; did you mean 'pipegcn'"):
        method("pipgcn")
