"""Where the extra `runtime` is not installed every command of the runtime says so in one line, and starts nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import pytest

from runtime.cli import emulate, measure, microbench, survey, train
from runtime.launch import worker

LINE = "training needs torch and safetensors; pip install 'gcnsim[runtime]'"


def _refused(name: str) -> ModuleSpec | None:
    return None if name in ("torch", "safetensors") else find_spec(name)


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        (train.main, ["--workers", "2"]),
        (train.main, []),
        (survey.main, []),
        (microbench.main, ["--quick"]),
        (measure.main, []),
        (emulate.main, ["--hosts", "2", "--bandwidth", "1Gbps"]),
    ],
)
def test_a_command_says_what_to_install(
    main: Callable[[Sequence[str]], int],
    arguments: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(worker, "find_spec", _refused)
    assert main(arguments) == 2
    printed = capfd.readouterr()
    (line,) = printed.err.splitlines()
    assert line.endswith(f": {LINE}")
    assert printed.out == ""


def test_help_needs_no_torch(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(worker, "find_spec", _refused)
    assert train.main(["--help"]) == 0
    assert "Usage" in capfd.readouterr().out


def test_what_is_installed_is_not_refused() -> None:
    worker.check_libraries()
