from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from gcnsim.api import simulate
from gcnsim.core.errors import ScenarioError
from gcnsim.report.figures.timeline import (
    BINS,
    TimelineBlock,
    pairs_of_result,
    steady_iteration,
    timeline_data,
    timeline_figure,
    timeline_of_result,
)
from gcnsim.timeline import Phase, Timeline
from tests.gcnsim.report.figures.spans import MS, small_run

SCENARIO = {
    "schema": "gcnsim.scenario/1",
    "name": "small",
    "workload": {"dataset": "reddit"},
    "cluster": {"gpus": 2, "device": "t4", "bandwidth": "15Gbps", "gpus_per_server": 1},
    "method": {"name": "full-graph"},
    "run": {"iterations": 2},
}


def test_it_opens_at_one_steady_iteration() -> None:
    ends = np.array([10, 30, 50, 71, 90], np.int64)
    assert steady_iteration(ends, 1) == 2
    assert steady_iteration(ends, 4) == 4
    timeline, instants = small_run()
    data = timeline_data(timeline, instants, 1)
    assert data.iteration == 2
    assert data.length_s == pytest.approx(0.02)


def test_rows_and_blocks_by_value() -> None:
    timeline, ends = small_run()
    data = timeline_data(timeline, ends, 1, waited=lambda span: f"waited for {span}")
    assert data.rows == (
        "worker 0: compute",
        "worker 0: send",
        "worker 0: receive",
        "worker 1: compute",
        "worker 1: send",
        "worker 1: receive",
    )
    first = min(data.blocks, key=lambda block: (block.row, block.start_s))
    text = "aggregate, layer 1, forward: 4.00 ms, iteration 2\n  waited for 8"
    assert first._replace(end_s=0.004) == TimelineBlock(0, Phase.COMPUTE, 0.0, 0.004, text)
    assert first.end_s == pytest.approx(0.004)
    received = next(block for block in data.blocks if block.row == 5)
    assert received.hover_text == "received wire, layer 1, forward, from 0, 3.91 KiB: 16.0 ms, iteration 2"
    assert [received.start_s, received.end_s] == pytest.approx([0.004, 0.02])


def test_links_are_told_as_shares_of_their_capacity() -> None:
    timeline, ends = small_run()
    rates = {"nic0.tx": (np.array([0, 40, 50]) * MS, np.array([1000.0, 3000.0, 0.0]))}
    data = timeline_data(timeline, ends, 1, rates=rates, capacity={"nic0.tx": 4000.0})
    assert (data.links, data.shares) == (("nic0.tx",), True)
    assert len(data.rates[0]) == BINS
    assert data.rates[0][0] == pytest.approx(0.25)
    assert data.rates[0][-1] == pytest.approx(0.75)
    bare = timeline_data(timeline, ends, 1, rates=rates)
    assert not bare.shares
    assert bare.rates[0][0] == pytest.approx(1000.0)


def test_of_many_workers_six_are_shown_those_asked_for_among_them() -> None:
    timeline, ends = small_run()
    count = 9
    every = {
        name: np.concatenate([getattr(timeline, name)[:1]] * count)
        for name in ("kind", "stream", "iteration", "layer", "direction", "peer", "start_ps", "end_ps", "nbytes")
    }
    many = Timeline(**every, worker=np.arange(count, dtype=np.int32), streams=timeline.streams)
    data = timeline_data(many, ends[:1], 0, slowest=7)
    assert data.workers_left_out == 3
    assert [name.split(":")[0] for name in data.rows] == [f"worker {k}" for k in (0, 1, 2, 3, 4, 7)]
    assert timeline_data(many, ends[:1], 0, only=8).rows == ("worker 8: compute",)
    with pytest.raises(ScenarioError, match="worker: 9 is not allowed; one of 0 to 8"):
        timeline_data(many, ends[:1], 0, only=9)


def test_the_slowest_worker_and_the_limit_are_bold() -> None:
    timeline, ends = small_run()
    rates = {name: (np.array([0, 50]) * MS, np.array([1000.0, 0.0])) for name in ("nic1.tx", "nic12.tx", "pcie1.up")}
    for limited_by, bold in (
        ("NIC of server 1", ["nic1.tx"]),
        ("NICs of all servers", ["nic1.tx", "nic12.tx"]),
        ("", []),
    ):
        data = timeline_data(timeline, ends, 1, rates=rates, slowest=1, limited_by=limited_by)
        figure = timeline_figure(data).to_dict()
        names = [*figure["layout"]["yaxis"]["ticktext"], *figure["data"][-1]["y"]]
        workers = [f"1 {track}" for track in ("compute", "send", "receive")]
        assert [name[3:-4] for name in names if name.startswith("<b>")] == [*workers, *bold]


def test_a_simulated_run_says_what_its_ops_waited_for() -> None:
    result = simulate(SCENARIO).result
    data = timeline_of_result(result)
    assert any(re.search(r"waited [\d.]+ m?s for wire of worker [01]", block.hover_text) for block in data.blocks)
    assert any("nothing but its own stream" in block.hover_text for block in data.blocks)
    assert {name.split(": ")[1] for name in data.rows} >= {"compute", "send", "receive"}
    assert max(block.end_s for block in data.blocks) <= data.length_s * (1 + 1e-9)
    sent = pairs_of_result(result).nbytes
    assert sent[0, 1] > 0
    assert sent[0, 0] == 0
    alone = timeline_of_result(result, only=1)
    assert {name.split(":")[0] for name in alone.rows} == {"worker 1"}
    assert {link[:4] for link in data.links} >= {"nic0", "nic1"}
    assert {re.sub(r"[^0-9]", "", link) for link in alone.links} == {"1"}, "servers have one GPU each"


def test_a_figure_has_a_row_per_track_and_time_in_its_unit(tmp_path: Path) -> None:
    timeline, ends = small_run()
    figure = timeline_figure(timeline_data(timeline, ends, 1)).to_dict()
    assert tuple(figure["layout"]["yaxis"]["ticktext"][:2]) == ("0 compute", "0 send")
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time in iteration 2 (ms)"
    compute = next(trace for trace in figure["data"] if trace["name"] == "compute")
    assert tuple(compute["x"]) == pytest.approx((4.0, 3.0))
    assert {trace["width"] for trace in figure["data"]} == {0.82}
