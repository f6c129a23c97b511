"""A dashboard under way, and a browser to look at it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.dashboard_pictures import fill
from tests.dashboards import CHROMIUM, TOKEN, Looking, served
from tests.gcnsim.evidence.conftest import runs_in
from tests.gcnsim.evidence.test_compare import recorded

pytest.importorskip("dash", reason="the dashboard's packages are not installed")
pytest.importorskip("waitress", reason="the dashboard's packages are not installed")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pages may open: what those of pictures do (a sweep `points`), and a recorded run `run`."""
    found = tmp_path_factory.mktemp("files")
    recorded(runs_in(found), "run")
    fill(found)
    return found


@pytest.fixture(scope="session")
def dashboard(folder: Path) -> Iterator[str]:
    """The address of a dashboard on loopback."""
    yield from served(folder)


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


@pytest.fixture
def looking(chromium: Any, dashboard: str) -> Iterator[Looking]:
    context = chromium.new_context(viewport={"width": 1280, "height": 900})
    seen = Looking(context.new_page(), dashboard)
    yield seen
    context.close()
    assert seen.said == []
