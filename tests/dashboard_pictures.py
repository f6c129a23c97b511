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
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

from gcnsim import api
from runtime.methods import method_type
from tests.dashboards import CHROMIUM, served
from tests.gcnsim.evidence.conftest import parts_measured, runs_in

FOLDER: Final = Path(__file__).resolve().parents[1] / "docs" / "pictures"
RECORD: Final = FOLDER / "pages.json"
MOST_BYTES: Final = 150_000
PATIENCE_MS: Final = 120_000
STILL_MS, LOOKS = 300, 40
"""A page is all there when it shows the same after so long; how often that is looked at."""

WIDTH, HEIGHT = 1100, 820


class Picture(NamedTuple):
    """address: of the page and its state. answered: the long work that it begins is done first. height: in pixels."""

    address: str
    answered: bool = False
    height: int = HEIGHT


PICTURES: Final = {
    "what-if": Picture("/?beside=25"),
    "what-if-bandwidth": Picture("/?figure=bandwidth", height=750),
    "compare": Picture("/compare?a=a.yaml&b=b.yaml", answered=True, height=860),
    "plan": Picture("/plan?target_iteration=0.75s&gpus=4,6,8", answered=True, height=1150),
    "sweep": Picture("/sweep?folder=points"),
    "timeline": Picture("/timeline?gpus=2", answered=True, height=1100),
    "validation": Picture(
        "/validation?runs=pipegcn,full-graph,bns-gcn&measured_compute=measured", answered=True, height=1240
    ),
}
"""By the name of the file. Every page of the dashboard has one at least (`tests/gcnsim/dashboard/test_pictures.py`)."""

FILES: Final = {
    "a.yaml": "schema: gcnsim.scenario/1\ncluster: {gpus: 6, bandwidth: 15Gbps}\nmethod: {name: full-graph}\n",
    "b.yaml": "schema: gcnsim.scenario/1\ncluster: {gpus: 6, bandwidth: 15Gbps}\nmethod: {name: pipegcn}\n",
}
"""What Compare opens."""

AXES: Final = {"cluster.bandwidth": "5Gbps,25Gbps", "method.name": "psc-gcn,pipegcn", "method.tau": "0,1"}
SMALL: Final = ("cluster.gpus=2", "cluster.gpus_per_server=1", "run.iterations=4")
RUNS: Final[Mapping[str, tuple[float, dict[str, float]]]] = {
    "pipegcn": (0.0241, {}),
    "full-graph": (0.0262, {}),
    "bns-gcn": (0.0098, {"rate": 0.3}),
}
"""What Validation opens, made up: seconds of an iteration and knobs by method, on a graph of the tests."""

SHOWN: Final = """() => {
  const kept = document.querySelector("#page").innerText.split("\\n");
  const drawn = [...document.querySelectorAll("#page svg text")].map((each) => each.textContent);
  return [...kept, ...drawn].map((each) => each.replace(/\\s+/g, " ").trim()).filter(Boolean);
}"""


def fill(folder: Path) -> None:
    """Write what the pages open."""
    for name, text in FILES.items():
        Path(folder, name).write_text(text, encoding="utf-8")
    api.sweep(axes=AXES, overrides=SMALL, out=folder / "points", processes=1)
    for method, (seconds, knobs) in RUNS.items():
        spread = (seconds, seconds * 1.02)
        runs_in(folder)(method, method=method, knobs=method_type(method).settled(knobs), seconds=spread * 5)
    (folder / "measured").mkdir()
    parts_measured(folder / "measured", *(folder / method for method in RUNS))


@contextmanager
def looking(browser: Any) -> Iterator[Any]:
    """A page of a browser."""
    size: Any = {"width": WIDTH, "height": HEIGHT}
    page = browser.new_page(viewport=size, color_scheme="light", reduced_motion="reduce", bypass_csp=True)
    page.set_default_timeout(PATIENCE_MS)
    yield page
    page.close()


def show(page: Any, address: str, picture: Picture) -> list[str]:
    """Open the page and wait until it is all there; every line of text that it shows."""
    page.set_viewport_size({"width": WIDTH, "height": picture.height})
    page.goto(address.rstrip("/") + picture.address)
    page.wait_for_selector("#command:has-text('gcnsim')")
    if picture.address.startswith("/?"):
        page.wait_for_selector("#headline:not(:empty)")
        page.wait_for_selector("#picture .main-svg")
    if picture.answered:
        page.wait_for_selector("#job-result .files a")
        page.wait_for_selector("#job-result .main-svg")
    if picture.address.startswith("/sweep"):
        page.wait_for_selector("#page .main-svg")
    found: list[str] = []
    for _ in range(LOOKS):
        page.wait_for_timeout(STILL_MS)
        before, found = found, page.evaluate(SHOWN)
        if found == before:
            break
    return found


def take(names: Sequence[str]) -> None:
    """Take the pictures of these names, and write down what they show."""
    FOLDER.mkdir(exist_ok=True)
    record = recorded()
    from playwright.sync_api import sync_playwright

    with (
        tempfile.TemporaryDirectory() as folder,
        sync_playwright() as started,
        looking(_browser(started)) as page,
        contextmanager(served)(Path(folder)) as address,
    ):
        fill(Path(folder))
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
