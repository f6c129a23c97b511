"""What is refused before any worker starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from gcnsim.errors import FileError
from runtime.options import Options
from runtime.train.preflight import check_outputs


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
