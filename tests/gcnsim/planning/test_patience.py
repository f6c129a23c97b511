"""How long a question is announced to take, from its settings alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from gcnsim.alternatives import partition_seconds
from gcnsim.planning.patience import DRAWN_S, _recorded_s, announced
from gcnsim.scenario import SCHEMA, Scenario, from_mapping

ENTRIES = 10_000_000


def asked(iterations: int = 5, gpus: int = 4, **method: Any) -> Scenario:
    cluster, run = {"gpus": gpus}, {"iterations": iterations}
    return from_mapping({"schema": SCHEMA, "cluster": cluster, "method": {"name": "psc-gcn"} | method, "run": run}, "t")


def recorded_s(*settings: Scenario, entries: int | None = ENTRIES) -> float:
    graph = None if entries is None else SimpleNamespace(entries=entries)
    return _recorded_s(SimpleNamespace(accesses=SimpleNamespace(graph=graph)), settings)  # type: ignore[arg-type]


def test_without_a_graph_at_hand_nothing_is_cut_or_drawn() -> None:
    assert recorded_s(asked(epsilon=0.5), entries=None) == 0.0


def test_every_rate_draws_the_graph_in_every_iteration() -> None:
    cut = partition_seconds(ENTRIES, asked().partition)
    assert recorded_s(asked(epsilon=1.0)) == pytest.approx(cut)
    assert recorded_s(asked(epsilon=0.5)) == pytest.approx(cut + 5 * ENTRIES * DRAWN_S)
    assert recorded_s(asked(epsilon=0.5, tau=0), asked(epsilon=0.5, tau=2)) == pytest.approx(
        cut + 5 * ENTRIES * DRAWN_S
    )
    assert recorded_s(asked(epsilon=0.5), asked(epsilon=0.1)) == pytest.approx(cut + 10 * ENTRIES * DRAWN_S)


def test_every_number_of_workers_cuts_the_graph() -> None:
    assert recorded_s(asked(epsilon=1.0), asked(epsilon=1.0, gpus=2)) == pytest.approx(
        2 * recorded_s(asked(epsilon=1.0))
    )


def test_a_short_wait_is_not_announced_and_a_long_one_is_in_its_unit() -> None:
    settings = [asked(), asked(gpus=2)]
    assert announced(0.0, settings) is None
    assert announced(99.0, settings) == "this takes about 99 s (2 settings and the next steps; Ctrl-C stops it)"
    assert announced(600.0, settings[:1], "more") == "this takes about 10 minutes (1 setting and more; Ctrl-C stops it)"
