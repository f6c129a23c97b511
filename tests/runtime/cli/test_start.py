"""How commands start and end: without torch, and interrupted."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from importlib.util import find_spec

import pytest

from runtime import measure, profile
from runtime.emulate import command as emulate
from runtime.launch import worker
from runtime.survey import __main__ as survey
from runtime.train import __main__ as train
from tests.runtime.shell import ROOT

LINE = "training needs torch and safetensors; pip install 'gcnsim[runtime]'"


def _refused(name: str) -> ModuleSpec | None:
    return None if name in ("torch", "safetensors") else find_spec(name)


@pytest.mark.parametrize(
    ("main", "arguments"),
    [
        (train.main, ["--workers", "2"]),
        (train.main, []),
        (survey.main, []),
        (profile.main, ["--quick"]),
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


HEAD = "import os, signal, runtime.emulate.__main__ as i; i.leave_quietly('p'); "
EARLY = HEAD + "os.kill(os.getpid(), signal.SIGINT); print('on')"
LATE = HEAD + (
    "i.interrupt_again()\ntry: os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt: print('raised')"
)


def ran(code: str, ignored: bool = False) -> tuple[int, str, str]:
    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN if ignored else signal.SIG_DFL)

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True, preexec_fn=ignore
    )
    return done.returncode, done.stdout, done.stderr


def test_an_early_interrupt_is_one_line() -> None:
    assert ran(EARLY) == (130, "", "p: stopped by SIGINT\n")


def test_an_early_interrupt_is_not_lost_where_exceptions_are_dropped() -> None:
    inside = "type('Gone', (), {'__del__': lambda self: (os.kill(os.getpid(), signal.SIGINT), int())})(); print('on')"
    assert ran(HEAD + inside) == (130, "", "p: stopped by SIGINT\n")


def test_a_later_one_is_raised_as_usual() -> None:
    assert ran(LATE) == (0, "raised\n", "")


def test_where_interrupts_are_ignored_they_stay_so() -> None:
    assert ran(EARLY, ignored=True) == (0, "on\n", "")


def test_an_interrupt_while_emulate_imports_is_one_line() -> None:
    code = (
        "import os, runpy, signal, sys\n"
        "class Interrupting:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'gcnsim.core.errors': os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupting())\n"
        "sys.argv = ['emulate', '--help']\n"
        "runpy.run_module('runtime.emulate', run_name='__main__', alter_sys=True)\n"
    )
    assert ran(code) == (130, "", "runtime.emulate: stopped by SIGINT\n")
