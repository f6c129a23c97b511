"""A dashboard of a process of its own, and what the command line says."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

TOKEN = "a-token-of-some-length"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def begun(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """A dashboard of its own process, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gcnsim", "dashboard", "--port", "0", "--files", str(folder), *options],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[0]


def served(folder: Path, *options: str) -> Iterator[str]:
    process, address = begun(folder, *options)
    yield address
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143


def command_line(*options: str) -> dict[str, Any]:
    """What `gcnsim what-if --json` says."""
    done = subprocess.run(
        [sys.executable, "-m", "gcnsim", "what-if", *options, "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
