"""A dashboard under way, and a browser to look at it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.dashboards import CHROMIUM, TOKEN, served

pytest.importorskip("dash", reason="the dashboard's packages are not installed")
pytest.importorskip("waitress", reason="the dashboard's packages are not installed")


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
