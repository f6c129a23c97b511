"""The fewest GPUs that hold a scenario, up to all that can be asked for."""

from __future__ import annotations

import pytest

from gcnsim.planning import alternatives
from gcnsim.planning.alternatives import least_gpus
from gcnsim.scenario import MOST_GPUS, SCHEMA, Scenario, from_mapping
from gcnsim.simulation.open_source import open_source
from gcnsim.simulation.source import Source


@pytest.fixture
def base() -> Scenario:
    return from_mapping({"schema": SCHEMA, "method": {"name": "full-graph"}}, "test")


@pytest.mark.parametrize(
    ("least", "looked_at"),
    [(3, 3), (100, 40), (128, 40), (129, 45), (200, 45), (700, 50), (MOST_GPUS, 50), (MOST_GPUS + 1, 36)],
)
def test_it_is_found_with_few_looks(
    base: Scenario, least: int, looked_at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[int] = []

    def holds(scenario: Scenario, _: Source) -> bool:
        looks.append(scenario.cluster.gpus)
        return scenario.cluster.gpus >= least

    monkeypatch.setattr(alternatives, "holds", holds)
    found = least_gpus(base, open_source(base))
    assert found == (least if least <= MOST_GPUS else None)
    assert len(looks) <= looked_at
    assert max(looks) <= max(128, 2 * least)
