"""The benchmark of faults on an emulated cluster: a tiny one runs from end to end, and an interrupt leaves nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.emulated_faults import TrainingRequest, main, trained
from tests.runtime.emulation.places import namespaces, needs_namespaces

TINY = TrainingRequest(("--dataset", "digits", "--layers", "2", "--hidden", "16"), "20Mbps", 50, 0.3)


@pytest.mark.slow
@needs_namespaces
def test_two_faults_are_measured_and_predicted(capsys: pytest.CaptureFixture[str]) -> None:
    before = namespaces()
    assert main(["--quick"]) == 0
    lines = capsys.readouterr().out.splitlines()
    added = [float(line.split("mean ")[1].split()[0]) for line in lines if "pause" in line]
    assert len(added) == 2
    assert all(0.1 < seconds < 0.6 for seconds in added), "of a pause of 0.3 s"
    slower = [float(line.split("(")[1].split()[0]) for line in lines if "half the link" in line]
    assert all(1.3 < times < 3.0 for times in slower)
    assert namespaces() == before


@pytest.mark.slow
@needs_namespaces
def test_an_interrupt_leaves_no_namespace(tmp_path: Path) -> None:
    before, made = namespaces(), []

    def interrupt(pid: int, iteration: int) -> None:
        made.append(namespaces(pid))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        trained(TINY, ("--method", "full-graph"), tmp_path / "run", interrupt)
    assert made[0]
    assert namespaces() == before
