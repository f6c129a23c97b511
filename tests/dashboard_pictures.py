"""Pictures of the dashboard's pages for its documents, and what each of them shows.

`python -m tests.dashboard_pictures` takes them again, with names only those; it needs Chromium. A picture is stale once
its page shows another text than is written down beside it (docs/pictures/pages.json): pixels are not compared, since
they differ between machines.
"""

from __future__ import annotations

import hashlib
import json
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.dashboards import CHROMIUM, served

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures"
RECORD: Final = FOLDER / "pages.json"
MOST_BYTES: Final = 150_000
PATIENCE_MS: Final = 120_000
WIDTH, HEIGHT = 1100, 820


BEGINS: Final = "/timeline"
"""The page that begins its work by itself."""


class Picture(NamedTuple):
    """address: of the page and its state. answered: its long work is done first."""

    address: str
    answered: bool = False


PICTURES: Final = {
    "what-if": Picture("/?beside=25"),
    "what-if-bandwidth": Picture("/?figure=bandwidth"),
    "compare": Picture("/compare?a=a.yaml&b=b.yaml", answered=True),
    "plan": Picture("/plan"),
    "sweep": Picture("/sweep"),
    "timeline": Picture(BEGINS, answered=True),
    "validation": Picture("/validation"),
}
"""By the name of the file. Every page of the dashboard has one at least (`tests/gcnsim/dashboard/test_pictures.py`)."""

FILES: Final = {
    "a.yaml": "schema: gcnsim.scenario/1\ncluster: {gpus: 6, bandwidth: 15Gbps}\nmethod: {name: full-graph}\n",
    "b.yaml": "schema: gcnsim.scenario/1\ncluster: {gpus: 6, bandwidth: 15Gbps}\nmethod: {name: pipegcn}\n",
}
"""What pages open."""

SHOWN: Final = """() => {
  const kept = document.querySelector("#page").innerText.split("\\n");
  const drawn = [...document.querySelectorAll("#page svg text")].map((each) => each.textContent);
  return [...kept, ...drawn].map((each) => each.replace(/\\s+/g, " ").trim()).filter(Boolean);
}"""


@contextmanager
def looking(browser: Any) -> Iterator[tuple[Any, str]]:
    """A page of a browser, and the address of a dashboard with the files that pictures need."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in FILES.items():
            Path(folder, name).write_text(text, encoding="utf-8")
        size: Any = {"width": WIDTH, "height": HEIGHT}
        page = browser.new_page(viewport=size, color_scheme="light", reduced_motion="reduce", bypass_csp=True)
        page.set_default_timeout(PATIENCE_MS)
        with contextmanager(served)(Path(folder)) as address:
            yield page, address
        page.close()


def show(page: Any, address: str, picture: Picture) -> list[str]:
    """Open the page and wait until it is all there; every line of text that it shows."""
    page.goto(address.rstrip("/") + picture.address)
    page.wait_for_selector("#command:has-text('gcnsim')")
    if picture.address.startswith("/?"):
        page.wait_for_selector("#headline:not(:empty)")
        page.wait_for_selector("#picture .main-svg")
    if picture.answered:
        if picture.address != BEGINS:
            page.click("#job-start")
        page.wait_for_selector("#job-result .files a")
    page.wait_for_timeout(300)
    found: list[str] = page.evaluate(SHOWN)
    return found


def take(names: Sequence[str]) -> None:
    """Take the pictures of these names, and write down what they show."""
    FOLDER.mkdir(exist_ok=True)
    record = recorded()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started, looking(_browser(started)) as (page, address):
        for name in names:
            shown = show(page, address, PICTURES[name])
            path = FOLDER / f"{name}.png"
            page.screenshot(path=str(path))
            record[name] = {"address": PICTURES[name].address, "file": digest(path), "shows": shown}
            sys.stdout.write(f"{path.name}: {path.stat().st_size:,} bytes\n")
    kept = {name: record[name] for name in sorted(record) if name in PICTURES}
    RECORD.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def _browser(started: Any) -> Any:
    return started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])


def recorded() -> dict[str, dict[str, Any]]:
    """What the pictures show, by name: `address`, `file` (SHA-256 of the picture) and `shows`."""
    found: dict[str, dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8")) if RECORD.exists() else {}
    return found


def digest(path: Path) -> str:
    """SHA-256 (hex) of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    take(sys.argv[1:] or list(PICTURES))
