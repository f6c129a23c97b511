"""How long a question is announced to take, from its settings alone, by a law that is given."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gcnsim.alternatives import partition_seconds
from gcnsim.planning import patience
from gcnsim.planning.durations import FEATURES, Law, Size, fitted_law
from gcnsim.planning.patience import DRAWN_S, Cost, Work, announced, typical
from gcnsim.planning.recommend import Rule
from gcnsim.scenario import SCHEMA, Scenario, from_mapping
from gcnsim.simulation import write_schedule
from gcnsim.sources import open_source
from gcnsim.uncertainty import estimated_counts

ENTRIES = 10_000_000


def asked(
    iterations: int = 5, gpus: int = 4, layers: int | None = None, transport: str | None = "direct", **method: Any
) -> Scenario:
    cluster, run = {"gpus": gpus, "transport": transport}, {"iterations": iterations}
    given = {"schema": SCHEMA, "cluster": cluster, "method": {"name": "psc-gcn"} | method, "run": run}
    return from_mapping(given | ({} if layers is None else {"workload": {"layers": layers}}), "t")


def law(start_s: float = 0.0, *, compiled: bool = True, **parts: dict[str, float]) -> Law:
    """One second of every study, nothing else, unless `parts` say other coefficients."""
    nothing = {name: {"one": -100.0} for name in FEATURES}
    return Law(nothing | {"study": {"one": 0.0}} | parts, start_s, compiled)


def recorded_s(*settings: Scenario, entries: int = ENTRIES) -> float:
    return Work(settings, entries=entries).cost(law()).seconds - len(settings)


def test_without_a_graph_at_hand_nothing_is_cut_or_drawn() -> None:
    assert recorded_s(asked(epsilon=0.5), entries=0) == 0.0


def test_every_rate_draws_the_graph_in_every_iteration() -> None:
    cut = partition_seconds(ENTRIES, asked().partition)
    assert recorded_s(asked(epsilon=1.0)) == pytest.approx(cut)
    assert recorded_s(asked(epsilon=0.5)) == pytest.approx(cut + 5 * ENTRIES * DRAWN_S)
    assert recorded_s(asked(epsilon=0.5, tau=0), asked(epsilon=0.5, tau=2)) == pytest.approx(
        cut + 5 * ENTRIES * DRAWN_S
    )
    assert recorded_s(asked(epsilon=0.5), asked(epsilon=0.1)) == pytest.approx(cut + 10 * ENTRIES * DRAWN_S)


def test_a_transport_that_nobody_said_is_studied_both_ways() -> None:
    given = law(compiled=False, reference={"one": 0.0}, iterations={"one": 0.0})
    for name, engines in (("full-graph", 2), ("pipegcn", 1)):
        known, open_ = (given.study_s(Size.of(asked(transport=each, name=name))) for each in ("direct", None))
        ops = Size.of(asked(name=name)).ops
        assert known == pytest.approx(1.0 + ops)
        assert open_ == pytest.approx(2.0 + engines * ops)


def test_every_number_of_workers_cuts_the_graph() -> None:
    assert recorded_s(asked(epsilon=1.0), asked(epsilon=1.0, gpus=2)) == pytest.approx(
        2 * recorded_s(asked(epsilon=1.0))
    )


@pytest.mark.parametrize("name", ["full-graph", "pipegcn", "psc-gcn", "bns-gcn", "graphsage", "distdgl"])
@pytest.mark.parametrize("transport", ["direct", "staged"])
@pytest.mark.parametrize(("gpus", "layers"), [(2, 2), (6, 4), (16, 3)])
def test_ops_are_those_of_the_schedule(name: str, gpus: int, layers: int, transport: str) -> None:
    scenario = asked(gpus=gpus, layers=layers, transport=transport, name=name)
    accesses = open_source(scenario)
    schedule = write_schedule(scenario, estimated_counts(scenario, accesses), accesses)
    assert Size.of(scenario).ops == pytest.approx(schedule.columns.size, rel=0.01)


def test_only_messages_between_servers_share_links_and_only_drawn_graphs_differ() -> None:
    alone = Size.of(asked(gpus=2, name="full-graph"))
    assert (alone.messages, alone.drawn, alone.coarse) == (0.0, False, False)
    # Of the 15 pairs of six workers in three servers 12 are apart; either way, (2 x 4 - 1) messages each.
    assert Size.of(asked(gpus=6, name="full-graph")).messages == pytest.approx(24 * 7)
    assert Size.of(asked(gpus=6)).drawn
    assert Size.of(asked(gpus=6), mean=True).drawn
    assert not Size.of(asked(gpus=6, tau=0), mean=True).drawn
    assert Size.of(asked(gpus=192)).coarse


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("method", ["full-graph", "pipegcn", "bns-gcn", "psc-gcn"])
def test_the_fitted_law_grows_with_the_cluster(method: str, compiled: bool) -> None:
    found = replace(fitted_law(), compiled=compiled)
    sizes = [Size.of(asked(30, gpus, name=method)) for gpus in (2, 4, 8, 16, 32, 64, 96, 128, 191)]
    seconds = [found.study_s(size) for size in sizes]
    assert seconds == sorted(seconds)
    assert seconds[0] < 0.1
    assert seconds[-1] > 2.0
    draws = [found.draw_s(size) for size in sizes]
    assert draws == sorted(draws)


def test_the_fitted_law_knows_the_engines() -> None:
    size = Size.of(asked(gpus=12))
    compiled, reference = (replace(fitted_law(), compiled=each) for each in (True, False))
    assert 5 < reference.op_s(size) / compiled.op_s(size) < 100
    many = Size.of(asked(gpus=96))
    assert compiled.op_s(replace(many, coarse=True)) < compiled.op_s(many)


def test_candidates_are_as_many_as_will_be_tried() -> None:
    found = typical(asked(gpus=6), Rule())
    assert len(found) == len({(each.method.name, each.method.tau) for each in found})
    assert {"full-graph", "pipegcn", "psc-gcn"} <= {each.method.name for each in found}


def test_what_is_asked_for_tried_and_drawn_adds_up() -> None:
    one, two = asked(), asked(gpus=6)
    given = law(start_s=3.0, ranking={"one": 0.0})
    assert Work((one, one, two)).cost(given).seconds == pytest.approx(5.0)
    assert Work((one,), tried=(two,), ranked=(one,)).cost(given).seconds == pytest.approx(6.0)
    assert Work((one,), tried=(two,), steps=True).cost(given).seconds == pytest.approx(5.0 + patience.STEPS)
    assert Work((one, two), tried=(), steps=False).cost(given, cores=2).seconds == pytest.approx(4.0)
    drawing = law(draw={"one": 0.0}, iterations={"one": 0.0})
    # 64 draws and the stated values.
    assert Work((one,), draws=True).cost(drawing).seconds == pytest.approx(1.0 + 65.0)
    long = law(draw={"one": 0.0}, iterations={"one": 4.0})
    assert Work((asked(gpus=96),), draws=True).cost(long).seconds == pytest.approx(1.0)


def test_ops_and_sharings_are_counted() -> None:
    given = law(iterations={"one": 0.0})
    one = Size.of(asked())
    # A row is simulated, and twice more without what limits it.
    assert Work((asked(),)).cost(given)[1:] == pytest.approx((3 * one.ops, 3 * one.messages))
    assert Work((asked(),), tried=(asked(),), steps=True).cost(given).ops == pytest.approx(one.ops * 9)


def test_a_short_wait_is_not_announced_and_a_long_one_is_in_its_unit(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Cost(10.0, 1.0, 1.0).said("it") is None
    assert Cost(99.0, 3_140_000.0, 980.0).said("it") == (
        "this takes about 99 s (it: 3.1 million ops, links shared up to 980 times; Ctrl-C stops it)"
    )
    assert (Cost(600.0, 2e9, 99_700.0).said("it") or "").startswith(
        "this takes about 10 minutes (it: 2 billion ops, links shared up to 100 thousand times;"
    )
    monkeypatch.setattr(patience, "fitted_law", lambda: law(start_s=40.0))
    told = announced(Work((asked(), asked(gpus=2))), 1)
    assert told is not None
    assert told.startswith("this takes about 42 s (2 settings and the next steps: ")
    assert announced(Work((asked(),)), 1, "")[:34] == "this takes about 41 s (1 setting: "  # type: ignore[index]
    monkeypatch.setattr(patience, "fitted_law", law)
    assert announced(Work((asked(), asked(gpus=2))), 1) is None
