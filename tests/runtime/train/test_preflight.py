"""What is refused before any worker starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.core.errors import FileError
from gcnsim.core.resources import Resources
from runtime.launch import Place
from runtime.options import Options
from runtime.train import preflight
from runtime.train.preflight import check_outputs, free_folder, quota_warning, threads_of


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
    ("quota", "workers", "count", "threads", "warned"),
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
    monkeypatch: pytest.MonkeyPatch, quota: float | None, workers: int, count: int | None, threads: int, warned: bool
) -> None:
    usable = Resources(4 if quota is None else max(1, int(quota)), quota, None)
    monkeypatch.setattr("gcnsim.core.processes.usable_resources", lambda: usable)
    monkeypatch.setattr(preflight, "usable_resources", lambda: usable)
    options, place = Options(threads=count), Place(0, workers, 0, workers, True)
    assert threads_of(options, place) == threads
    line = quota_warning(options, place)
    assert (line is not None) == warned
    if line:
        assert line.startswith(
            f"the CPU quota of this container is {quota:g} CPUs, less than {workers * threads} thread"
        )


def made_run(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "run.json").write_text('{"schema": "gcnsim.run/1"}')
    return folder


def test_a_folder_with_a_run_is_refused_in_one_line(tmp_path: Path) -> None:
    out = made_run(tmp_path / "mine")
    with pytest.raises(FileError) as caught:
        check_outputs(Options(out=str(out)))
    assert str(caught.value) == (
        f"--out: {out}: holds a run already; allowed: another folder, --overwrite (replaces that run) or "
        f"--resume {out} (continues it)"
    )
    with pytest.raises(FileError, match="holds a run already"):
        check_outputs(Options(out=str(out), record=False, checkpoint_every=5))


def test_a_run_is_written_over_as_asked_where_it_goes_on_and_where_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = made_run(tmp_path / "mine")
    check_outputs(Options(out=str(out), overwrite=True))
    check_outputs(Options(out=str(out), resume=str(out)))
    check_outputs(Options(out=str(out), resume=str(out / "checkpoints" / "000010")))
    check_outputs(Options(resume=str(out)))
    check_outputs(Options(out=str(out), record=False))
    with pytest.raises(FileError, match=rf"{out}: holds a run already"):
        check_outputs(Options(out=str(out), resume=str(made_run(tmp_path / "other"))))
    monkeypatch.setenv("TORCHELASTIC_RESTART_COUNT", "1")
    check_outputs(Options(out=str(out)))


def test_the_default_folder_is_the_first_that_holds_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert free_folder(Options()) is None
    (tmp_path / "run").mkdir()
    assert free_folder(Options()) is None, "an empty folder is free"
    (tmp_path / "run").rmdir()
    made_run(tmp_path / "run")
    assert free_folder(Options()) == Path("run-2")
    made_run(tmp_path / "run-2")
    (tmp_path / "run-3").write_text("a file")
    assert free_folder(Options()) == Path("run-4")
    for own in (Options(out="run"), Options(overwrite=True), Options(record=False), Options(resume="run")):
        assert free_folder(own) is None
