"""What is refused before any worker starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.errors import FileError
from gcnsim.resources import Resources
from runtime.launch import Place
from runtime.options import Options
from runtime.train import preflight
from runtime.train.preflight import check_outputs, quota_warning, threads_of


def test_a_trace_may_go_into_the_run_folder_that_will_be_made(tmp_path: Path) -> None:
    out = tmp_path / "newrun"
    check_outputs(Options(out=str(out), save_trace=str(out / "access.trace")))
    check_outputs(Options(out=str(out / "deep"), save_trace=str(out / "deep" / "access.trace")))
    assert not out.exists()


@pytest.mark.parametrize("record", [True, False])
def test_a_trace_in_no_folder_is_refused(tmp_path: Path, record: bool) -> None:
    inside = tmp_path / ("other" if record else "newrun") / "access.trace"
    with pytest.raises(FileError, match=r"--save-trace: .*access\.trace: cannot be written: No such file"):
        check_outputs(Options(out=str(tmp_path / "newrun"), save_trace=str(inside), record=record))


@pytest.mark.parametrize(
    ("quota", "workers", "asked", "threads", "warned"),
    [
        (4.0, 1, None, 4, False),
        (4.5, 2, None, 2, False),
        (0.5, 1, None, 1, True),
        (4.0, 1, 8, 8, True),
        (4.0, 6, None, 1, True),
        (None, 6, 64, 64, False),
    ],
)
def test_threads_are_what_a_container_leaves(
    monkeypatch: pytest.MonkeyPatch, quota: float | None, workers: int, asked: int | None, threads: int, warned: bool
) -> None:
    usable = Resources(4 if quota is None else max(1, int(quota)), quota, None)
    monkeypatch.setattr("gcnsim.processes.usable_resources", lambda: usable)
    monkeypatch.setattr(preflight, "usable_resources", lambda: usable)
    options, place = Options(threads=asked), Place(0, workers, 0, workers, True)
    assert threads_of(options, place) == threads
    line = quota_warning(options, place)
    assert (line is not None) == warned
    if line:
        assert line.startswith(
            f"the CPU quota of this container is {quota:g} CPUs, less than {workers * threads} thread"
        )
