from __future__ import annotations

import importlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from gcnsim import __version__, cli
from gcnsim.core.errors import ScenarioError
from tests.gcnsim.cli.conftest import Refused


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


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"gcnsim {__version__}\n"


@pytest.mark.parametrize("argv", [[], ["catalog"], ["catalog", "list", "--help"]])
def test_help_is_not_an_error(argv: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(argv) == 0
    assert "Usage: gcnsim" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["what-iff"], "unknown command 'what-iff'; did you mean 'what-if'?"),
        (["--bogus"], "--bogus"),
        (["catalog", "show"], "NAME"),
        (["catalog", "list", "--jsn"], "--jsn"),
        (["catalog", "show", "rxt-4090"], "did you mean 'rtx-4090'?"),
    ],
)
def test_misuse_is_one_line_and_exit_code_2(argv: list[str], message: str, refused: Refused) -> None:
    assert message in refused(*argv)


def test_what_is_gone_says_what_to_do(refused: Refused) -> None:
    for option, hint in cli.GONE.items():
        assert refused("what-if", option, "1") == f"gcnsim: {option} is gone: {hint}\n"
    for name, hint in cli.GONE_COMMANDS.items():
        assert refused(name, "page.html") == f"gcnsim: {name} is gone: {hint}\n"


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (ScenarioError("cluster.gpus: 0\n is wrong"), 2, "gcnsim: cluster.gpus: 0 is wrong\n"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (click.Abort(), 130, "interrupted"),
        (ValueError("two\nlines"), 1, "internal error: ValueError: two lines (GCNSIM_DEBUG=1"),
        (OSError(36, "File name too long", "a" * 500), 2, f"gcnsim: {'a' * 60}...: File name too long"),
        (PermissionError(13, "denied"), 1, "internal error: PermissionError"),
    ],
)
def test_errors_become_one_line(
    error: BaseException, code: int, message: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("GCNSIM_DEBUG", raising=False)
    fake(monkeypatch, raising(error))
    assert cli.main(["doctor"]) == code
    err = capsys.readouterr().err
    assert message in err
    assert "Traceback" not in err


def test_debug_shows_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("GCNSIM_DEBUG", "1")
    fake(monkeypatch, raising(ValueError("x")))
    assert cli.main(["doctor"]) == 1
    assert "Traceback" in capsys.readouterr().err


LONG = "what-if --method psc-gcn --tau 0,1,2,3,4,5,6,7,8 --epsilon 0.1,0.2,0.3,0.4,0.5 --iterations 300"
SIGNALS = [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
ASKING = """
import functools, os, signal, sys
from gcnsim.cli import main

class Dropped:
    def __del__(self):
        os.kill(os.getpid(), {number})
        functools.partial(int)

class Wrapped:
    def __set_name__(self, owner, name):
        os.kill(os.getpid(), {number})

class Asking:
    def find_spec(self, name, path=None, target=None):
        if name == "gcnsim.cli.doctor":
            {how}

sys.meta_path.insert(0, Asking())
sys.exit(main(["doctor"]))
"""


@pytest.fixture
def usual_signals() -> Iterator[None]:
    """What started the tests may ignore Ctrl-C (a shell does, of what it starts with `&`): a program would as well."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(("number", "code", "message"), SIGNALS)
@pytest.mark.usefixtures("usual_signals")
def test_asked_to_end_it_says_so_in_one_line(number: int, code: int, message: str, tmp_path: Path) -> None:
    """In the middle of its work, with processes of its own; no half-written file is left."""
    command = [sys.executable, "-m", "gcnsim", *LONG.split(), "--csv", "rows.csv"]
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    while not _imported(run.pid):
        time.sleep(0.02)
        assert run.poll() is None
    run.send_signal(number)
    out, err = run.communicate(timeout=30)
    assert (run.returncode, out, err) == (code, "", f"gcnsim: {message}\n")
    assert list(tmp_path.iterdir()) == []


def _imported(pid: int) -> bool:
    """Whether the process has come as far as importing the simulation (its compiled parts are mapped)."""
    return b"numpy" in Path(f"/proc/{pid}/maps").read_bytes()


@pytest.mark.parametrize(("number", "code", "message"), SIGNALS)
@pytest.mark.parametrize(
    "how",
    [
        pytest.param("Dropped()", id="in a destructor"),
        pytest.param("type('Made', (), {'wrapped': Wrapped()})", id="as a class is made"),
        pytest.param("exec('import os; os.kill(os.getpid(), NUMBER); 1')", id="in text that is executed"),
    ],
)
@pytest.mark.usefixtures("usual_signals")
def test_no_request_to_end_is_lost_in_an_import(how: str, number: int, code: int, message: str, tmp_path: Path) -> None:
    """Python drops what a destructor raises, wraps it as it makes a class, and notes it in text that it executes."""
    (tmp_path / "asking.py").write_text(ASKING.format(how=how.replace("NUMBER", str(int(number))), number=int(number)))
    path = os.pathsep.join([str(tmp_path), str(Path(cli.__file__).parents[2])])
    run = subprocess.run(
        [sys.executable, "-m", "asking"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
        env=os.environ | {"PYTHONPATH": path},
    )
    assert (run.returncode, run.stdout, run.stderr) == (code, "", f"gcnsim: {message}\n")


def test_sigterm_is_ours_only_while_a_command_runs() -> None:
    before = signal.getsignal(signal.SIGTERM)
    assert cli.main(["--version"]) == 0
    assert signal.getsignal(signal.SIGTERM) == before


def test_standard_streams_that_are_closed_take_nothing() -> None:
    command = f"exec {sys.executable} -m gcnsim catalog list devices >&- 2>&-"
    assert subprocess.run(["sh", "-c", command], check=False).returncode == 0


def test_a_reader_that_left_is_not_an_error() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as out:
        command = [sys.executable, "-m", "gcnsim", "catalog", "list"]
        run = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
