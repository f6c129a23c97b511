"""The timeline of a recorded run: its tracks are those of a simulated one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.records.recorded_run import read_recorded_run
from gcnsim.report.figures.timeline import facts_of_run, in_one_unit, timeline_of_run
from gcnsim.timeline import Phase
from gcnsim.timeline.parquet import write_spans
from tests.gcnsim.evidence.conftest import WriteRun, write_run
from tests.gcnsim.evidence.test_compare import recorded

__all__ = ["write_run"]


def test_a_recorded_run_has_the_tracks_of_a_simulated_one(write_run: WriteRun) -> None:
    run = read_recorded_run(recorded(write_run, "run"))
    facts = facts_of_run(run, run.timeline())
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


def test_two_timelines_have_one_unit(write_run: WriteRun, tmp_path: Path) -> None:
    data = timeline_of_run(read_recorded_run(recorded(write_run, "run")))
    short, long = in_one_unit(data, replace(data, length_s=3.0))
    assert (short.unit, short.unit_s) == (long.unit, long.unit_s) == ("s", 1.0)
