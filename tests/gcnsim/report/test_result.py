"""Results as text: a run, a cache curve, a comparison."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from gcnsim.cost import Memory
from gcnsim.report.cache_curve import cache_curve_payload, cache_hits_data, cache_hits_figure, render_cache_curve
from gcnsim.report.comparison import render_comparison
from gcnsim.report.result import render_result, render_short_result
from gcnsim.results import SimulationReport, from_plain
from gcnsim.trace import CacheCurve, CachePoint, CacheTally, Replay, TraceOrigin
from tests.gcnsim.results.made import DOCUMENT

ROW = DOCUMENT | {
    "method": "psc-gcn",
    "tau": 2,
    "epsilon": 0.1,
    "rate": 1.0,
    "cache_fraction": 0.3,
    "iteration_s": 0.5,
    "iteration_s_low": 0.4,
    "iteration_s_high": 0.75,
    "iterations_per_epoch": 1,
    "epoch_s": 0.5,
    "compute_s": 0.3,
    "exposed_comm_s": 0.1996,
    "exposed_other_s": 0.0004,
    "hidden_comm_s": 0.0,
    "sampling_s": 0.125,
    "speedup_vs_full_graph": 2.5,
    "limited_by": {"text": "NIC of server 1", "kind": "nic", "share": 0.42, "kind_share": 0.425, "worker": 3},
    "bottleneck": "nic1.tx",
    "gpu_utilization": 0.6,
    "nic_utilization": 0.98,
    "nic_bytes": 3 * 2**20,
    "cache_hit_rate": 0.45,
}
NOTHING = Memory(0, 0, 0, 0, 0, 0, 0, 0, 0)
MEMORY = {
    "workers": [
        asdict(replace(NOTHING, features=2**30)),
        asdict(replace(NOTHING, features=2**31, cache=2**20)),
    ],
    "tightest": 1,
    "device_bytes": 16e9,
    "devices_bytes": [16e9, 16e9],
    "reserved_bytes": 1e9,
    "least_gpus": None,
    "fits": True,
}


def payload(row: dict[str, Any] | None = None, **changes: Any) -> SimulationReport:
    content = {
        "scenario": {"name": "mine"},
        "result": ROW | (row or {}),
        "run": {"iterations": 12, "measured": 8, "settled": True},
        "links": {"nic0.tx": {"bytes": 2**20, "utilization": 0.0004}, "pcie0": {"bytes": 0, "utilization": 0.0}},
        "memory": MEMORY,
        "provenance": {
            "graph": {"text": "reddit", "kind": "surrogate"},
            "model": "GCN of 2 layers",
            "device": "2 x NVIDIA T4",
            "interval": "90 % of random draws",
            "assumptions": [],
            "measured": [],
            "calibration": "none: figures of datasheets",
            "engine": "reference",
            "version": "0.1.0",
            "seed": 0,
            "scenario_hash": "8c5f",
            "bounds": [],
            "warnings": ["mind the gap"],
        },
    }
    return from_plain(SimulationReport, content | changes)


WHOLE = """\
mine: psc-gcn, tau 2, epsilon 0.1, cache 30%  UNCALIBRATED
  iteration  500 ms  (90 % interval 400 ms to 750 ms)
  300 ms   60.0 %  compute
  200 ms   39.9 %  exposed communication
  400 us  < 0.1 %  the rest
     0 s      0 %  hidden communication (overlaps the above)
  125 ms   25.0 %  sampling (may overlap)
  speed-up over full-graph 2.50x, limited by NIC of server 1: 42 % less time if infinitely fast
  GPU busy 60.0 %, busiest NIC 98.0 %, 3.00 MiB sent per iteration, cache hits 45.0 %
  12 iterations simulated, the last 8 measured
  memory of worker 1: 2.00 GiB of 14.9 GiB
    features 2.00 GiB, cache 1.00 MiB

Links per iteration
              bytes     busy
  nic0.tx  1.00 MiB  < 0.1 %
  pcie0         0 B      0 %

Provenance
  graph: reddit (surrogate)
  model: GCN of 2 layers
  device: 2 x NVIDIA T4
  interval: 90 % of random draws
  calibration: none: figures of datasheets
  engine: reference
  version: 0.1.0
  seed: 0
  scenario hash: 8c5f
  warning: mind the gap
"""


def test_the_whole_text() -> None:
    assert render_result(payload()) == WHOLE


def test_iterations_that_were_not_simulated_are_told() -> None:
    run = {"iterations": 40, "measured": 20, "settled": True, "simulated": 12, "by_period": 28}
    assert "\n  12 iterations simulated, 28 more by their period, the last 20 measured\n" in render_result(
        payload(run=run)
    )
    # Older results tell of simulated ones alone.
    assert payload().run.by_period == 0


@pytest.mark.parametrize(
    ("limit", "text"),
    [
        (
            {"share": 0.3, "kind_share": 0.8},
            "NIC of server 1: 30 % less time if this NIC were infinitely fast, 80 % if all NICs were",
        ),
        ({"share": 0.3, "kind_share": 0.3}, "NIC of server 1: 30 % less time if infinitely fast"),
        (
            {"share": 0.02, "kind_share": 0.04},
            "NIC of server 1: 2.0 % less time if this NIC were infinitely fast, 4.0 % if all NICs were, "
            "because other work at the same time takes nearly as long",
        ),
        (
            {"share": 0.004, "kind_share": 0.004},
            "NIC of server 1; less than 1 % less time if any one of them is infinitely fast",
        ),
        # Version 0.1 told in which share of the iteration it is busy.
        ({"share": 0.98}, "NIC of server 1"),
    ],
)
def test_what_limits_is_told_by_what_would_be_without_it(limit: dict[str, float], text: str) -> None:
    document = {"text": "NIC of server 1", "kind": "nic", "worker": 3} | limit
    assert render_short_result(payload({"limited_by": document})).splitlines()[-1] == f"  limited by {text}"


def test_epochs_are_told_where_they_have_several_iterations() -> None:
    assert "  epoch      10.0 s, 20 iterations" in render_result(payload({"iterations_per_epoch": 20, "epoch_s": 10.0}))


def test_what_is_not_known_or_does_not_hold_is_said() -> None:
    text = render_result(
        payload({"speedup_vs_full_graph": None}, run={"iterations": 9, "measured": 1, "settled": False})
    )
    assert "speed-up over full-graph not known" in text
    assert "9 iterations simulated, the last 1 measured; NOT steady: see warnings" in text
    assert "memory of worker 1: 2.00 GiB of 14.9 GiB; DOES NOT FIT" in render_result(
        payload(memory=MEMORY | {"fits": False})
    )
    assert "GiB of" not in render_result(payload(memory=MEMORY | {"device_bytes": None}))
    assert "memory of worker" not in render_result(payload(memory=None))


@pytest.fixture
def curve() -> CacheCurve:
    """Two rules at two sizes on three workers, the last without a boundary."""
    none = CacheTally(0, 0, 0, 0, 0, 0)
    points = tuple(
        CachePoint(
            policy, size, (CacheTally(10, held, 40, first, fill, 0), CacheTally(10, held, 60, second, fill, 3), none)
        )
        for policy, size, held, first, second, fill in (
            ("inclusion-refresh", 0.1, 1, 10, 30, 1),
            ("inclusion-refresh", 0.5, 5, 20, 50, 5),
            ("lru", 0.1, 1, 2, 3, 0),
            ("lru", 0.5, 5, 8, 30, 0),
        )
    )
    origin = TraceOrigin("made", "0" * 64, "block", 0, "uniform", 0.1, 0, None, 0)
    return CacheCurve(origin, 30, Replay(warm_up=10), points, ("something was left out",))


def test_info_is_the_curve_by_value(curve: CacheCurve) -> None:
    info = cache_hits_data(curve)
    assert info.title == "made, uniform at 0.1, 20 graphs"
    assert info.sizes == (0.1, 0.5)
    refreshed, lru = info.lines
    assert refreshed == ("inclusion-refresh", "refreshed", (0.4, 0.7), (0.25, 0.5), (0.5, 50 / 60))
    assert lru == ("lru", "demand", (0.05, 0.38), (0.05, 0.2), (0.05, 0.5))


def test_figure_has_a_line_for_each_rule(curve: CacheCurve) -> None:
    figure = cache_hits_figure(cache_hits_data(curve))
    assert [trace.name for trace in figure.data] == ["inclusion-refresh (refreshed)", "lru (demand)"]
    assert [trace.line.dash for trace in figure.data] == ["6px,3px", "2px,2px"]
    assert [name for name, _, _ in cache_hits_data(curve).legend] == [trace.name for trace in figure.data]
    assert list(figure.data[0].y) == pytest.approx([40, 70])
    assert list(figure.data[0].x) == pytest.approx([10, 50])


def test_payload_holds_totals_and_workers(curve: CacheCurve) -> None:
    payload = cache_curve_payload(curve)
    assert payload["notes"] == ["something was left out"]
    first = payload["points"][0]
    counts = {"boundary_nodes": 20, "cached_rows": 2, "requests": 100, "hits": 40, "fill_rows": 2, "refresh_rows": 3}
    assert {name: first[name] for name in counts} == counts
    assert [worker["hit_rate"] for worker in first["workers"]] == [0.25, 0.5, 0.0]


def test_text_says_totals_workers_and_notes(curve: CacheCurve) -> None:
    lines = render_cache_curve(curve, workers=True).splitlines()
    assert "20 graphs, after 10 of warm-up" in lines[0]
    assert lines[2].split() == ["inclusion-refresh", "refreshed", "10%", "all", "2", "100", "40", "40.0%", "2", "3"]
    assert lines[4].split() == ["inclusion-refresh", "refreshed", "10%", "1", "1", "60", "30", "50.0%", "1", "3"]
    assert lines[-1] == "note: something was left out"
    assert len(lines) == 2 + 4 * 4 + 1
    assert len(render_cache_curve(curve).splitlines()) == 2 + 4 + 1


WORKER = {"handling_s": 0.001, "network_s": 0.02, "copies_s": 0.003, "reduce_s": 0.0004, "waiting_s": 0.05}


def part(name: str, within: str | None, a: float, b: float) -> dict[str, Any]:
    return {"part": name, "within": within, "a": a, "b": b, "difference": b - a, "share": (b - a) / -0.5}


def compared(**changes: Any) -> dict[str, Any]:
    """One second against half of it; the second worker is known of A alone."""
    worker = WORKER | {"compute_s": 0.4, "exposed_sampling_s": 0.06}
    sides = {
        key: {"label": f"{key}.yaml", "setting": f"setting of {key}", "slowest": rank}
        for key, rank in (("a", 1), ("b", 0))
    }
    return {
        **sides,
        "per": "iteration",
        "differs": [{"field": "method.tau", "a": "0", "b": "1"}, {"field": "cluster.gpus", "a": "2", "b": "1"}],
        "iteration_s": {"a": 1.0, "b": 0.5, "difference": -0.5},
        "parts": [part("exposed_comm_s", None, 0.6, 0.1), part("network_s", "exposed_comm_s", 0.6, 0.6 + 1e-15)],
        "beneath": [{"name": "sampling_s", "a": 0.0, "b": 0.2, "difference": 0.2}],
        "links": [
            {
                "link": "nic0.tx",
                "a": {"bytes": 3 * 2**20, "busy": 0.25, "seconds": 0.25},
                "b": {"bytes": None, "busy": None, "seconds": None},
            }
        ],
        "workers": {"a": [worker, worker], "b": [worker]},
        "says": ["B takes half as long."],
        "notes": ["one side is measured"],
    } | changes


COMPARED = """\
A  a.yaml: setting of a
B  b.yaml: setting of b
differ in: method.tau 0 | 1; cluster.gpus 2 | 1

B takes half as long.

Seconds per iteration, slowest worker (1 and 0)
                                       A       B  difference    share
  iteration                       1.00 s  500 ms     -500 ms  100.0 %
    exposed communication         600 ms  100 ms     -500 ms  100.0 %
      row messages in flight      600 ms  600 ms        +0 s    0.0 %
  at the same time: all sampling     0 s  200 ms     +200 ms

Links per iteration: bytes, share of the time and seconds that they need
                  A    busy  seconds  B  busy  seconds
  nic0.tx  3.00 MiB  25.0 %   250 ms  -     -        -

Workers, seconds per iteration: computing, exposed communication, waits in it, sampling
            A compute   A comm  A waits  A samples  B compute   B comm  B waits  B samples
  worker 0     400 ms  74.4 ms  50.0 ms    60.0 ms     400 ms  74.4 ms  50.0 ms    60.0 ms
  worker 1     400 ms  74.4 ms  50.0 ms    60.0 ms          -        -        -          -

note: one side is measured
"""


def test_the_whole_text_of_a_comparison() -> None:
    text = render_comparison(compared())
    assert text == COMPARED


def test_of_very_many_links_the_busiest_and_the_median_are_listed() -> None:
    links = {f"nic{k}.tx": {"bytes": 1024.0 * k, "utilization": k / 100} for k in range(65)}
    text = render_result(payload(links=links)).split("Links per iteration\n")[1].split("\n\n")[0]
    lines = [line.split() for line in text.splitlines()]
    assert [line[0] for line in lines[1:9]] == [f"nic{k}.tx" for k in range(64, 56, -1)]
    assert lines[9] == ["median", "of", "65", "32.0", "KiB", "32.0", "%"]
    assert text.splitlines()[10:] == ["  57 more links, all of them with --json"]
    some = dict(list(links.items())[:64])
    each = render_result(payload(links=some)).split("Links per iteration\n")[1].split("\n\n")[0]
    assert len(each.splitlines()) == 65
    assert "more links" not in each
