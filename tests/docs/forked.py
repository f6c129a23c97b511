"""Commands in processes of their own that need not import the program: they are forked from one that has.

`Forked` starts that process (this module as a program). It waits at a socket; for each request it forks a process that
runs the command, and answers the exit code. It ends when whoever started it closes its standard input.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import NoReturn, Self

ROOT = Path(__file__).resolve().parents[2]
APART = ("gcnsim.__main__", "gcnsim.dashboard")
"""Not imported beforehand: what runs when it is imported, and what few commands need and takes long."""


class Forked:
    """The process that forks, with the environment `env`; `folder` holds its socket."""

    def __init__(self, folder: Path, env: Mapping[str, str]) -> None:
        self._address = str(folder / "forked")
        command = [sys.executable, "-m", "tests.docs.forked", self._address]
        self._process = subprocess.Popen(
            command, cwd=ROOT, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._process.communicate()

    def run(self, module: str, arguments: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[str]:
        """As `python -m module arguments` in the folder `cwd`: its exit code, standard output and standard error."""
        result, errors = cwd.with_name(f"{cwd.name}.out"), cwd.with_name(f"{cwd.name}.err")
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(self._address)
            requested = {"argv": [module, *arguments], "cwd": str(cwd), "out": str(result), "err": str(errors)}
            line.sendall(json.dumps(requested).encode() + b"\n")
            code = int(line.makefile().read())
        out, err = result.read_text(encoding="utf-8"), errors.read_text(encoding="utf-8")
        return subprocess.CompletedProcess([module, *arguments], code, out, err)


def serve(address: str) -> None:
    """Answer requests until standard input is closed."""
    for found in pkgutil.walk_packages(importlib.import_module("gcnsim").__path__, "gcnsim."):
        if not found.name.startswith(APART):
            importlib.import_module(found.name)
    importlib.import_module("runtime.train.tasks")
    gc.freeze()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for a command
    with socket.socket(socket.AF_UNIX) as door:
        door.bind(address)
        door.listen()
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        while door in select.select([door, sys.stdin], [], [])[0]:
            line, _ = door.accept()
            if os.fork() == 0:
                door.close()
                _answer(line)
            line.close()


def _answer(line: socket.socket) -> NoReturn:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    requested = json.loads(line.makefile().readline())
    pid = os.fork()
    if pid == 0:
        line.close()
        _become(**requested)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    line.sendall(str(code).encode())
    line.close()
    os._exit(0)


def _become(argv: list[str], cwd: str, out: str, err: str) -> NoReturn:
    """Run the command in this process, which ends as any program does."""
    os.chdir(cwd)
    for number, path in ((0, os.devnull), (1, out), (2, err)):
        opened = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.path[0] = cwd
    sys.argv[:] = argv
    runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
    raise SystemExit(0)


if __name__ == "__main__":
    serve(sys.argv[1])
