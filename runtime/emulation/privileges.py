"""What limits the rate between hosts: namespaces of root, namespaces of a user's own, or the exchange itself."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NoReturn

from gcnsim.core.errors import ScenarioError
from runtime.emulation.network import refused

INSIDE: Final = "GCNSIM_USERNS"
"""Set to 1 in the process that was started again inside a user namespace."""

_UNSHARE: Final = ("unshare", "--user", "--map-root-user", "--net", "--mount")


def inside() -> bool:
    """Whether this process runs in the user namespace that `enter` made."""
    return os.environ.get(INSIDE) == "1"


def limiter_of(limiter: str) -> str:
    """The limiter to use: the one asked for, or for `auto` the first that works here.

    Raises ScenarioError, with the system's words, when the one asked for does not work.
    """
    if inside():
        _make_room()
        limiter = "netns"
    if limiter == "exchange":
        return limiter
    root = refused() if limiter in ("auto", "netns") else None
    if limiter == "netns" and root is not None:
        raise ScenarioError(f"--limiter: netns is not possible here: {root}; allowed: auto, userns, exchange")
    if limiter in ("auto", "netns") and root is None:
        return "userns" if inside() else "netns"
    own = _refused_own()
    if limiter == "userns" and own is not None:
        raise ScenarioError(f"--limiter: userns is not possible here: {own}; allowed: auto, netns, exchange")
    return "exchange" if own is not None else "userns"


def enter(argv: Sequence[str]) -> NoReturn:
    """Run `python -m runtime.emulate` with `argv` in a user namespace, in place of this process."""
    os.environ[INSIDE] = "1"
    os.execvp(_UNSHARE[0], [*_UNSHARE, sys.executable, "-m", "runtime.emulate", *argv])


def _refused_own() -> str | None:
    """Why no user namespace with namespaces in it can be made; None when it can."""
    code = "from runtime.emulation.privileges import limiter_of; limiter_of('netns')"
    try:
        command = [*_UNSHARE, sys.executable, "-c", code]
        env = {**os.environ, INSIDE: "1"}
        done = subprocess.run(command, env=env, check=False, capture_output=True, text=True, process_group=0)
    except OSError as error:
        return f"{_UNSHARE[0]}: {error.strerror}"
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["unshare failed"])[-1]


def _make_room() -> None:
    """A folder for the names of namespaces that this mount namespace alone sees."""
    names = Path("/run/netns")
    over = names if names.is_dir() else names.parent
    done = subprocess.run(["mount", "-t", "tmpfs", "gcnsim", str(over)], check=False, capture_output=True, text=True)
    if done.returncode:
        raise ScenarioError(f"--limiter: userns is not possible here: {' '.join(done.stderr.split())}")
