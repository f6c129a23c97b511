"""What measured runs say of their iterations in a few numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from gcnsim.core.errors import FileError
from gcnsim.records.measured_run import interval_of_mean, read_measured
from gcnsim.records.recorded_run import read_recorded_run
from tests.gcnsim.evidence.conftest import WriteRun, write_run
from tests.gcnsim.records.made_traces import cuda_events, document, folder, write

__all__ = ["write_run"]


def test_a_run_of_ours(write_run: WriteRun) -> None:
    path = write_run("run", seconds=[9.0] * 5 + [0.1, 0.2, 0.3])
    measured = read_measured(path)
    assert (measured.kind, measured.workers, measured.iterations) == ("run", 2, 3)
    assert measured.iteration_s == pytest.approx(0.2)
    assert measured.spread_s == pytest.approx(0.1)
    half = 2.919986 * 0.1 / 3**0.5
    assert (measured.low_s, measured.high_s) == pytest.approx((0.2 - half, 0.2 + half)), "Student's, 2 degrees"
    assert measured.error_s == pytest.approx(0.1 / 3**0.5)
    assert measured.phases == read_recorded_run(path).phases


def test_traces_of_a_profiler(tmp_path: Path) -> None:
    measured = read_measured(folder(tmp_path / "traces"))
    assert (measured.kind, measured.workers, measured.iterations) == ("trace", 2, 4)
    assert (measured.iteration_s, measured.low_s, measured.high_s) == pytest.approx((0.1, 0.1, 0.1))
    assert measured.phases == pytest.approx({"compute": 0.05, "exposed_comm": 0.025, "exposed_other": 0.025})
    assert any("left out" in note for note in measured.notes)
    alone = read_measured(write(tmp_path / "t.json", document(cuda_events(steps=1))))
    assert (alone.iterations, alone.spread_s, alone.error_s) == (1, 0.0, 0.0)
    assert alone.low_s == alone.high_s == alone.iteration_s


def test_what_is_neither_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileError, match=r"run\.json: cannot be read"):
        read_measured(tmp_path)
    (tmp_path / "t.txt").write_text("hello")
    with pytest.raises(FileError, match=r"t\.txt: not a JSON document"):
        read_measured(tmp_path / "t.txt")


def test_an_interval_gets_narrower_with_more_iterations() -> None:
    rng = np.random.default_rng(1)
    times = rng.uniform(0.9, 1.1, 400)
    held = [low <= 1.0 <= high for low, high in (interval_of_mean(item) for item in times.reshape(40, 10))]
    assert 0.8 <= np.mean(held) <= 1.0
    few, many = interval_of_mean(times[:10]), interval_of_mean(times)
    assert many[1] - many[0] < 0.3 * (few[1] - few[0])


@pytest.mark.parametrize("count", [2, 3, 5])
def test_an_interval_of_few_iterations_holds_the_mean_nine_times_in_ten(count: int) -> None:
    times = np.random.default_rng(2).normal(1.0, 0.05, (2000, count))
    held = [low <= 1.0 <= high for low, high in (interval_of_mean(time) for time in times)]
    # 2,000 trials: a standard error of 0.7 %.
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)


def test_an_interval_of_times_begins_at_nothing_at_the_earliest() -> None:
    low, high = interval_of_mean(np.array([0.1, 1.0]))
    assert low == 0.0
    assert high > 1.0
