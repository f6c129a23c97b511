"""What tests of emulation share: whether namespaces can be made here, and emulations as a user's shell runs them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from runtime.emulation.network import refused
from tests.runtime.shell import Shell

EMULATE = [sys.executable, "-m", "runtime.emulate"]
NETNS = Path("/run/netns")

_why = refused()
needs_namespaces = pytest.mark.skipif(_why is not None, reason=f"no network namespaces: {_why}")


def emulated(folder: Path, *words: str) -> Shell:
    """`python -m runtime.emulate` with `words`, started in `folder`."""
    return Shell(folder, *words, command=EMULATE)


def namespaces(pid: int | None = None) -> list[str]:
    """Names of the namespaces that process `pid` made; of all emulations without one."""
    start = "gcnsim-" if pid is None else f"gcnsim-{pid}-"
    return sorted(name for name in (os.listdir(NETNS) if NETNS.is_dir() else []) if name.startswith(start))
