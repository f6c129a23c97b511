"""One simulated scenario as text, whole and in two lines."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from gcnsim.cost import Memory
from gcnsim.report.result import render_result, render_short_result
from gcnsim.results import SimulationReport, from_plain
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
            "calibration": "none: figures of data sheets",
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
  calibration: none: figures of data sheets
  engine: reference
  version: 0.1.0
  seed: 0
  scenario hash: 8c5f
  warning: mind the gap
"""


def test_the_whole_text() -> None:
    assert render_result(payload()) == WHOLE


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


def test_iterations_that_were_not_simulated_are_told() -> None:
    run = {"iterations": 40, "measured": 20, "settled": True, "simulated": 12, "by_period": 28}
    assert "\n  12 iterations simulated, 28 more by their period, the last 20 measured\n" in render_result(
        payload(run=run)
    )
    # Older results tell of simulated ones alone.
    assert payload().run.by_period == 0


def test_two_lines_say_what_it_is_and_what_limits_it() -> None:
    lines = render_short_result(payload()).splitlines()
    assert lines == [*WHOLE.splitlines()[:2], "  limited by NIC of server 1: 42 % less time if infinitely fast"]
    unknown = render_short_result(payload({"limited_by": None})).splitlines()
    assert unknown[-1] == "  limited by nic1.tx"


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
