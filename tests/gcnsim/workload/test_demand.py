"""Demand of parts, and the cuts that are assumed."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from gcnsim.core.errors import ScenarioError
from gcnsim.core.yaml_files import read_yaml
from gcnsim.workload import assumed_ratio, crossing_fraction, growth_between, largest_of, open_growth
from gcnsim.workload.caching import DEMAND, next_request, request_stream
from gcnsim.workload.cuts import ANCHOR, FILE, WEB
from studies import cuts

STREAM = [0, 1, 2, 0, 3, 0, 1, 2, 0, 4, 1, 0]


pytest.importorskip("libcachesim", reason="the extra gcnsim[caches] is not installed")


def hits(policy: str, ids: list[int], rows: int, after: int = 0) -> int:
    with request_stream(np.array(ids, np.int64)) as opened:
        return opened.hits(policy, rows, after)


@pytest.mark.parametrize(
    ("policy", "rows", "by_hand"),
    [
        # 0 1 2 0 3 fill and flush two rows; 0 hits; 1 and 2 flush it again, 4 and 1 once more.
        ("fifo", 2, 1),
        ("lru", 2, 1),
        # The hand clears 0, takes 3, wraps round, and takes 0 for 2.
        ("sieve", 2, 1),
        # From the first hit on, 0 has more uses than whatever shares the cache: it hits twice more.
        ("lfu", 2, 3),
        # That hit moves 0 to the second list, from where rows used once never drive it out.
        ("arc", 2, 3),
        # 0 is always the row asked for soonest: it stays, and hits all four times after its first.
        ("belady", 2, 4),
        # Small queue of two, main of one. 0 hits; 3 drives it to the ghosts, from where 0 and then 1 come back into
        # main; 2 drives out 0, which returns to the small queue: 1 and 0 hit at the end.
        ("s3-fifo", 3, 3),
        # Too small for two queues: FIFO.
        ("s3-fifo", 2, 1),
    ],
)
def test_hits_worked_by_hand(policy: str, rows: int, by_hand: int) -> None:
    assert hits(policy, STREAM, rows) == by_hand


@pytest.mark.parametrize("policy", DEMAND)
def test_a_cache_for_everything_misses_each_row_once(policy: str) -> None:
    assert hits(policy, STREAM, 5) == len(STREAM) - 5


@pytest.mark.parametrize("policy", DEMAND)
def test_no_rows_or_no_requests_no_hits(policy: str) -> None:
    assert hits(policy, STREAM, 0) == 0
    assert hits(policy, [], 4) == 0


@pytest.mark.parametrize("policy", DEMAND)
def test_warm_up_fills_the_cache_and_counts_nothing(policy: str) -> None:
    whole = hits(policy, STREAM, 4)
    ends = [hits(policy, STREAM[:cut], 4) for cut in range(len(STREAM) + 1)]
    if policy == "belady":  # it knows the future, which a shorter stream does not have
        assert hits(policy, STREAM, 4, len(STREAM)) == 0
        return
    assert [whole - hits(policy, STREAM, 4, cut) for cut in range(len(STREAM) + 1)] == ends


@pytest.mark.parametrize("seed", range(6))
def test_lru_lfu_fifo_and_belady_follow_their_definitions(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ids = np.minimum(generator.geometric(0.1, 200), 30).tolist()
    rows = int(generator.integers(1, 12))
    for policy in ("fifo", "lru", "lfu", "belady"):
        assert hits(policy, ids, rows) == defined(policy, ids, rows), f"{policy}, {rows} rows, {ids}"


def defined(policy: str, ids: list[int], rows: int) -> int:
    """Hits of a rule written as what it evicts: the held row with the least key."""
    found = 0
    entered: dict[int, int] = {}
    used: dict[int, int] = {}
    times: dict[int, int] = {}
    following = next_request(np.array(ids, np.int64)).tolist()
    soonest: dict[int, int] = {}
    for at, row in enumerate(ids):
        soonest[row] = following[at]
        if row in entered:
            found += 1
        else:
            if len(entered) == rows:
                keys = {
                    "fifo": lambda held: (entered[held],),
                    "lru": lambda held: (used[held],),
                    "lfu": lambda held: (times[held], used[held]),
                    "belady": lambda held: (-soonest[held],),
                }
                del entered[min(entered, key=keys[policy])]
            entered[row], times[row] = at, 0
        used[row] = at
        times[row] += 1
    return found


@pytest.mark.parametrize("seed", range(6))
def test_belady_hits_most_of_all_demand_caches(seed: int) -> None:
    generator = np.random.default_rng(seed)
    ids = np.minimum(generator.geometric(0.05, 400), 60).tolist()
    for rows in (1, 2, 5, 20):
        best = hits("belady", ids, rows)
        assert best >= max(hits(policy, ids, rows) for policy in DEMAND)


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libcachesim", None)
    with pytest.raises(ScenarioError, match=r"cache policy: lru is replayed by libcachesim, .*'gcnsim\[caches\]'"):
        hits("lru", STREAM, 2)


GRAPHS = cuts.counted()
REDDIT = 114_615_892 / 232_965


def test_the_laws_in_the_package_are_those_of_the_counts() -> None:
    assert read_yaml(FILE) == cuts.fitted(GRAPHS)


def test_graphs_left_out_are_within_the_ranges_of_the_others() -> None:
    verdicts = [cuts.verdict_of(graph, cuts.without(GRAPHS, graph)) for graph in GRAPHS]
    held = [float(np.mean([one.held for one in verdicts])), float(np.mean([one.grown for one in verdicts]))]
    held.append(cuts.crossing_held(GRAPHS))
    held += [cuts.largest_held(GRAPHS, figure) for figure in ("boundary", "entries")]
    assert all(0.8 <= share <= 0.97 for share in held), held
    assert held[0] >= 0.85
    assert np.median([abs(over - 1.0) for one in verdicts for over in one.over]) <= 0.2


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_the_package_says_what_the_study_does(graph: cuts.Counted) -> None:
    laws = read_yaml(FILE)
    entries = round(graph.degree * graph.nodes)
    for row in graph.every:
        low, likely, high = assumed_ratio(graph.nodes, entries, row.parts)
        assert low < likely < high
        wanted = 2.718281828 ** cuts.log_ratio(laws, graph, row.parts)
        assert likely == pytest.approx(min(wanted, row.parts - 1.0), rel=1e-3)


@pytest.mark.parametrize("degree", [1.0, 4.0, 30.0, REDDIT])
def test_more_parts_border_on_more(degree: float) -> None:
    places = [*range(2, 70), 100, 192, 500, 1024]
    grown = [growth_between(ANCHOR, parts, degree) for parts in places]
    assert grown == sorted(grown)
    assert growth_between(8, 16, degree) * growth_between(16, 100, degree) == pytest.approx(
        growth_between(8, 100, degree)
    )
    assert growth_between(5, 5, degree) == 1.0


def test_what_growth_leaves_open_is_a_power_of_the_parts() -> None:
    assert open_growth(4, 4) == (1.0, 1.0, 1.0)
    low, middle, high = open_growth(4, 16)
    assert middle == 1.0
    assert low * high == pytest.approx(1.0)
    assert open_growth(4, 1).high == pytest.approx(high), "fewer parts are as open"
    assert open_growth(4, 256).high == pytest.approx(high**3)


def test_no_node_borders_on_more_parts_than_it_has_neighbours() -> None:
    assert assumed_ratio(1_000, 20_000, 1_000).high == 20.0
    assert assumed_ratio(1_000, 900_000, 2).high == 1.0
    assert assumed_ratio(5, 0, 2) == assumed_ratio(5, 5, 2)


def test_graphs_of_the_web_border_on_little_unless_they_do_not() -> None:
    web, other = (assumed_ratio(77_741_046, 5_930_394_680, 8, kind) for kind in (WEB, ""))
    assert web.low < web.likely < 0.1 * other.likely
    assert web.high == pytest.approx(other.likely)


def test_few_entries_cross_where_few_nodes_border() -> None:
    assert crossing_fraction(0.0, REDDIT) == (0.0, 0.0, 0.0)
    few, many = crossing_fraction(0.1, REDDIT), crossing_fraction(20.0, REDDIT)
    assert crossing_fraction(0.1, 15.0) == few, "more so in sparse graphs alone"
    assert few.likely < crossing_fraction(0.1, 5.0).likely < 0.1
    assert few.low < few.likely < few.high < 0.05
    assert many.low < many.likely == many.high == 0.95


@pytest.mark.parametrize("figure", ["boundary", "entries"])
def test_the_largest_part_grows_with_their_number(figure: str) -> None:
    assert largest_of(figure, 1) == (1.0, 1.0, 1.0)
    ends = [largest_of(figure, parts) for parts in (4, 8, 64)]
    assert all(1.0 <= low < likely < high for low, likely, high in ends)
    assert [end.likely for end in ends] == sorted(end.likely for end in ends)
    assert largest_of(figure, 1024) == largest_of(figure, 64)
