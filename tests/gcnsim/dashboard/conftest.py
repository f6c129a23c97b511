"""A dashboard under way, and a browser to look at it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("dash", reason="the dashboard's packages are not installed")
pytest.importorskip("waitress", reason="the dashboard's packages are not installed")

TOKEN = "a-token-of-some-length"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


def begun(folder: Path, *options: str) -> tuple[subprocess.Popen[str], str]:
    """A dashboard of its own process, and its address."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gcnsim", "dashboard", "--port", "0", "--files", str(folder), *options],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    assert process.stdout is not None
    return process, process.stdout.readline().split()[0]


def served(folder: Path, *options: str) -> Iterator[str]:
    process, address = begun(folder, *options)
    yield address
    process.terminate()
    process.communicate(timeout=60)
    assert process.returncode == 143


@pytest.fixture(scope="session")
def dashboard(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a dashboard on loopback."""
    yield from served(tmp_path_factory.mktemp("files"))


@pytest.fixture(scope="session")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of one that asks for its token."""
    yield from served(tmp_path_factory.mktemp("files"), "--token", TOKEN)


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """Debian's Chromium without a window."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("chromium is not installed")
    with sync_api.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


def command_line(*options: str) -> dict[str, Any]:
    """What `gcnsim what-if --json` says."""
    done = subprocess.run(
        [sys.executable, "-m", "gcnsim", "what-if", *options, "--json"],
        capture_output=True,
        text=True,
        check=True,
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])},
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found
