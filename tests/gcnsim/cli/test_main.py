from __future__ import annotations

import importlib
import os
import subprocess
import sys

import click
import pytest

from gcnsim import __version__, cli
from gcnsim.errors import ScenarioError


def raising(error: BaseException) -> click.Command:
    def body() -> None:
        raise error

    return click.Command("doctor", callback=body)


def fake(monkeypatch: pytest.MonkeyPatch, command: click.Command) -> None:
    module = importlib.import_module("gcnsim.cli.doctor")
    monkeypatch.setattr(module, "command", command)


def test_help_lists_every_command_without_importing_any() -> None:
    script = (
        "import sys; from gcnsim.cli import main; code = main(['--help']);"
        "loaded = [m for m in sys.modules if m.startswith('gcnsim.cli.') or m in ('numpy', 'scipy', 'torch')];"
        "print(loaded, file=sys.stderr); sys.exit(code)"
    )
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert run.returncode == 0
    assert run.stderr.strip() == "[]"
    assert all(name in run.stdout for name in cli.COMMANDS)


def test_every_command_is_registered_under_a_module_of_this_room() -> None:
    for target, text in cli.COMMANDS.values():
        assert target.startswith("gcnsim.cli.")
        assert text.endswith(".")


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"gcnsim {__version__}\n"


@pytest.mark.parametrize("argv", [[], ["catalog"], ["catalog", "list", "--help"]])
def test_help_is_not_an_error(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 0
    assert "Usage: gcnsim" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["what-iff"], "unknown command 'what-iff'; did you mean 'what-if'?"),
        (["--bogus"], "--bogus"),
        (["catalog", "show"], "NAME"),
        (["catalog", "list", "--jsn"], "--jsn"),
        (["catalog", "show", "t5"], "did you mean 't4'?"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(argv: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("gcnsim: ")
    assert captured.err.count("\n") == 1
    assert said in captured.err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (ScenarioError("cluster.gpus: 0\n is wrong"), 2, "gcnsim: cluster.gpus: 0 is wrong\n"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (ValueError("two\nlines"), 1, "internal error: ValueError: two lines (GCNSIM_DEBUG=1"),
        (PermissionError(13, "denied"), 1, "internal error: PermissionError"),
    ],
)
def test_errors_become_one_line(
    error: BaseException, code: int, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GCNSIM_DEBUG", raising=False)
    fake(monkeypatch, raising(error))
    assert cli.main(["doctor"]) == code
    err = capsys.readouterr().err
    assert said in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GCNSIM_DEBUG", "1")
    fake(monkeypatch, raising(ValueError("x")))
    assert cli.main(["doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err


def test_a_reader_that_left_is_not_an_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as out:
        command = [sys.executable, "-m", "gcnsim", "catalog", "list"]
        run = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
