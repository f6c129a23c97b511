"""Figures' data by value: links, memory, differences, assumptions, runs, sweeps."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.cost import Memory
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.report.figures.breakdown import difference_data, difference_figure
from gcnsim.report.figures.links import LinkBar, links_data, pairs_data, pairs_figure
from gcnsim.report.figures.memory import memory_data, memory_figure
from gcnsim.report.figures.parallel import MOST_DRAWN, parallel_data, parallel_figure
from gcnsim.report.figures.timeline import in_one_unit, timeline_of_run
from gcnsim.report.figures.tornado import Swing, Tornado, tornado_data, tornado_figure, tornado_lines
from gcnsim.report.palette import DARK, LIGHT, darkened
from gcnsim.results import LinkTraffic, MemoryReport
from gcnsim.timeline import Phase
from gcnsim.timeline.span import write_spans
from tests.gcnsim.evidence.conftest import WriteRun, write_run
from tests.gcnsim.evidence.test_compare import recorded
from tests.gcnsim.report.figures.spans import small_run
from tests.gcnsim.report.test_result import compared, part
from tests.gcnsim.results.made import answer_of


def test_links_the_busiest_first_and_how_many_besides() -> None:
    link_traffics = {f"nic{k}.tx": LinkTraffic(2.0**20 * k, k / 10) for k in range(4)}
    data = links_data(link_traffics, 2)
    assert data.bars == (LinkBar("nic3.tx", 3 * 2.0**20, 0.3), LinkBar("nic2.tx", 2.0**21, 0.2))
    assert data.left_out == 2


def test_bytes_of_each_pair_are_means_of_the_measured_iterations() -> None:
    timeline, _ = small_run()
    data = pairs_data(timeline, 1, 3)
    assert np.array_equal(data.nbytes, [[0.0, 3000.0, 0.0], [500.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert pairs_data(timeline, 2, 3).nbytes[0, 1] == 4000.0
    drawn = pairs_figure(data).to_dict()["data"][0]
    assert drawn["z"][0][0] is None
    assert drawn["z"][0][1] == pytest.approx(3000 / 1024)
    assert drawn["customdata"][0][1] == "worker 0 to worker 1: 2.93 KiB per iteration"


GIB = 2.0**30
ONE = Memory(1 * GIB, 0.5 * GIB, 2 * GIB, 0.25 * GIB, 0.0, 0.01 * GIB, 0.01 * GIB, 0.02 * GIB, 0.5 * GIB)
TWO = Memory(2 * GIB, 0.5 * GIB, 2 * GIB, 0.25 * GIB, 0.0, 0.01 * GIB, 0.01 * GIB, 0.02 * GIB, 0.5 * GIB)
REPORT = MemoryReport(16 * GIB, (16 * GIB, 16 * GIB), 1, 0.5 * GIB, True, None, (ONE, TWO))


def test_memory_by_value() -> None:
    data = memory_data(REPORT)
    assert [worker.worker for worker in data.workers] == [0, 1]
    assert data.workers[1].total == pytest.approx(TWO.total + 0.5 * GIB)
    assert data.workers[0].nbytes["activations"] == 2 * GIB
    assert (data.unit, data.unit_size, data.left_out) == ("GiB", GIB, 0)
    assert "cache" not in [name for name, _, _ in data.legend]


def test_bars_stack_up_to_the_total_and_the_device_is_marked() -> None:
    traces = memory_figure(memory_data(REPORT)).to_dict()["data"]
    bars = [trace for trace in traces if trace["type"] == "bar"]
    assert sum(trace["x"][1] for trace in bars) == pytest.approx(TWO.total / GIB + 0.5)
    assert tuple(traces[-1]["x"]) == (16.0, 16.0)
    assert traces[-1]["customdata"][0] == "worker 0: the device has 16.0 GiB"


PARTS = [
    part("compute_s", None, 0.4, 0.3),
    part("exposed_comm_s", None, 0.6, 0.2),
    part("network_s", "exposed_comm_s", 0.5, 0.05),
    part("waiting_s", "exposed_comm_s", 0.1, 0.15),
    part("optimizer_s", None, 0.01, 0.0102),
]


def test_the_finest_parts_are_drawn_by_what_they_changed() -> None:
    data = difference_data(compared(parts=PARTS))
    assert [change.part for change in data.changes] == ["network", "compute", "waiting"]
    assert [change.seconds for change in data.changes] == pytest.approx([-0.45, -0.1, 0.05])
    assert data.still == ("optimizer",)
    assert (data.whole_s, data.per, data.unit) == (-0.5, "iteration", "ms")
    figure = difference_figure(data)
    assert [bar.x[0] for bar in figure.data] == pytest.approx([-450, -100, 50, -500])
    assert figure.data[1].marker.color == LIGHT.compute
    assert figure.data[0].customdata[0].endswith("A 500 ms, B 50.0 ms per iteration<br>-450 ms")


def test_the_longest_first_and_what_changes_nothing_by_name(answered: dict[str, Any]) -> None:
    tornado = tornado_data(answer_of(answered))
    assert [swing.name for swing in tornado.swings] == ["t4.spmm_efficiency", "cross_edges"]
    assert tornado.swings[0][1:] == ("60%", "40% to 80%", 0.31, 0.21, 0.5, None)
    assert tornado.still == ("ethernet.latency_s",)
    assert tornado.center_s == 0.25


def test_bars_share_one_scale_with_the_answer_at_the_mark(answered: dict[str, Any]) -> None:
    lines = tornado_lines(tornado_data(answer_of(answered)), 60)
    (first, second), still = (line for line in lines if "|" in line), lines[-1]
    assert max(map(len, lines)) <= 60
    place = first.index("|")
    assert second.index("|") == place
    assert 0 < first.count("#") > second.count("#") > 0
    assert still == "less than 0.1 % each: ethernet.latency_s"


def test_without_assumptions_there_are_no_lines(payload: dict[str, Any]) -> None:
    assert tornado_lines(tornado_data(answer_of(payload)), 80) == []
    assert tornado_lines(Tornado(1.0, (), ("x",)), 80) == ["no assumption changes the time by 0.1 % or more"]


def test_the_time_and_the_choice_have_each_what_to_measure_first() -> None:
    time = Swing("gpu", "1", "0.5 to 2", 0.9, 0.3, 0.8, 0.1)
    own, rival = Swing("nic", "1", "0.5 to 2", 0.6, 0.4, 0.2, 0.4), Swing("host", "1", "0.5 to 2", 0.5, 0.5, 0.0, 0.4)

    def text(*swings: Swing) -> str:
        return " ".join(" ".join(tornado_lines(Tornado(0.5, swings, ()), 100)).split())

    assert "to know the time, measure gpu; to be sure of the choice, measure nic: it decides in 40% of" in text(
        time, own
    )
    assert "host (of rivals) 1" in text(time, rival)
    assert "to be sure of the choice, measure host: it decides in 40% of the draws" in text(time, rival)
    both = "to know the time and to be sure of the choice, measure gpu: it moves the time most and decides in 10% of"
    assert both in text(time)
    assert "(of rivals)" not in text(time, own)


def test_the_figure_has_a_bar_for_each_swing() -> None:
    swings = (Swing("gpu", "1", "0.5 to 2", 0.9, 0.3, 0.8), Swing("knob tau", "1", "0 to 2", 0.4, 0.6, None))
    figure = tornado_figure(Tornado(0.5, swings, ())).to_dict()
    assert [trace["base"][0] for trace in figure["data"]] == pytest.approx([300.0, 400.0])
    assert [trace["x"][0] for trace in figure["data"]] == pytest.approx([600.0, 200.0])
    assert [trace["marker"]["color"] for trace in figure["data"]] == [LIGHT.assumption, LIGHT.compute]
    assert figure["layout"]["shapes"][0]["x0"] == pytest.approx(500.0)
    assert figure["layout"]["xaxis"]["title"]["text"] == "Time (ms)"


__all__ = ["write_run"]


def test_a_recorded_run_has_the_tracks_of_a_simulated_one(write_run: WriteRun) -> None:
    run = read_recorded_run(recorded(write_run, "run"))
    facts = run.facts(run.timeline())
    assert facts.ends.tolist() == [(100 * t + 98) * 10**9 for t in range(10)]
    assert facts.measured == 5
    data = timeline_of_run(run)
    assert data.iteration == 9, "the last of iterations that are all as long"
    assert data.length_s == pytest.approx(0.1)
    assert data.rows == tuple(
        f"worker {worker}: {track}"
        for worker, tracks in ((0, ("compute", "send", "receive", "all-reduce")), (1, ("compute", "send", "receive")))
        for track in (*tracks, *(["all-reduce"] if worker else []))
    )
    blocks = [block for block in data.blocks if data.rows[block.row] == "worker 0: compute"]
    assert [block.phase for block in blocks] == [Phase.COMPUTE, Phase.WAIT]
    assert [block.start_s for block in blocks] == pytest.approx([0.002, 0.072])


def test_a_receiver_that_only_waits_has_no_block_of_its_own(write_run: WriteRun) -> None:
    folder = recorded(write_run, "run")
    spans = read_recorded_run(folder).timeline()
    receives = np.array([".rx" in name for name in spans.streams])[spans.stream]
    write_spans(folder / "timeline.parquet", replace(spans, nbytes=np.where(receives, 0.0, spans.nbytes)), {})
    data = timeline_of_run(read_recorded_run(folder))
    assert not any("pack" in row for row in data.rows)
    assert "worker 1: send" not in data.rows
    assert "worker 1: receive" in data.rows


def test_an_iteration_without_a_training_thread_is_a_line(write_run: WriteRun) -> None:
    folder = recorded(write_run, "run")
    spans = read_recorded_run(folder).timeline()
    iteration = np.where(spans.iteration == 7, 6, spans.iteration).astype(np.int32)
    write_spans(folder / "timeline.parquet", replace(spans, iteration=iteration), {})
    with pytest.raises(FileError, match=r"timeline.parquet: has no span of a training thread in iteration 7"):
        timeline_of_run(read_recorded_run(folder))


AXES = ("cluster.bandwidth", "method.name", "method.tau", "run.seed")


def point(index: int, bandwidth: str, name: str, tau: int | None, seconds: float) -> dict[str, Any]:
    content = {"point": index, "cluster.bandwidth": bandwidth, "method.name": name, "method.tau": tau}
    return content | {"run.seed": 0, "iteration_s": seconds}


POINTS = [
    point(3, "100Gbps", "psc-gcn", 2, 0.1),
    point(1, "10Gbps", "psc-gcn", 0, 0.2),
    point(0, "1Gbps", "a<b", None, 0.4),
]


def test_values_are_placed_by_size_and_names_evenly() -> None:
    data = parallel_data(POINTS, AXES, "iteration_s")
    assert [row.name for row in data.rows] == ["cluster.bandwidth", "method.name", "method.tau", "iteration_s (ms)"]
    places = [line.places for line in data.lines]
    assert [place[0] for place in places] == pytest.approx([1.0, 0.5, 0.0])  # logarithmic: 1 to 100
    assert [place[1] for place in places] == [1.0, 1.0, 0.0]
    assert [place[2] for place in places] == pytest.approx([0.86, 0.0, 1.0])  # nothing lies right of all values
    assert [place[3] for place in places] == pytest.approx([0.0, 1 / 3, 1.0])  # 0.1 to 0.4 is within a factor of six
    assert data.lines[0].hover_text == (
        "cluster.bandwidth: 100Gbps",
        "method.name: psc-gcn",
        "method.tau: 2",
        "iteration_s (ms): 100",
    )
    assert [tick.text for tick in data.rows[2].ticks] == ["0", "2", "none"]
    assert [(line.point, line.fast) for line in data.lines] == [(3, True), (1, False), (0, False)]
    assert [name for name, _, _ in data.legend] == ["the first", "others"]


def test_of_many_points_the_first_and_evenly_spread_others_are_drawn() -> None:
    many = [point(index, f"{index + 1}Gbps", "x", 0, 1.0 + index) for index in range(1000)]
    data = parallel_data(many, AXES, "iteration_s")
    assert len(data.lines) == MOST_DRAWN
    assert data.left_out == 600
    assert [data.lines[0].point, data.lines[-1].point] == [0, 999]
    assert sum(line.fast for line in data.lines) == math.ceil(MOST_DRAWN / 10)


def test_the_figure_has_a_line_per_point_and_reads_no_tags() -> None:
    data = parallel_data(POINTS, AXES, "iteration_s")
    figure = parallel_figure(data)
    others, fast, first = figure.data
    assert [len(trace.x) for trace in (others, fast, first)] == [10, 0, 5]
    assert list(first.y) == [0, 1, 2, 3, None]
    assert first.line.color == LIGHT.recommended
    assert "a<b" not in str(figure.to_plotly_json())
    assert "a&lt;b" in str(figure.to_plotly_json())
    dark = json.loads(darkened(figure.to_json()))
    assert dark["data"][2]["line"]["color"] == DARK.recommended
    assert dark["layout"]["paper_bgcolor"] == DARK.paper
    assert dark["layout"]["height"] == figure.layout.height


def test_two_timelines_have_one_unit(write_run: WriteRun, tmp_path: Path) -> None:
    data = timeline_of_run(read_recorded_run(recorded(write_run, "run")))
    short, long = in_one_unit(data, replace(data, length_s=3.0))
    assert (short.unit, short.unit_s) == (long.unit, long.unit_s) == ("s", 1.0)
