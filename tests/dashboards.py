"""A dashboard of a process of its own, and what the command line says."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from gcnsim.cli import main

TOKEN = "a-token-of-some-length"
PATIENCE_MS = 60_000
"""Other work on the machine may stop everything for a while."""

ON_REQUEST = ("/compare", "/plan", "/validation")
"""Pages whose work begins where the address asks a question."""
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
    try:
        yield address
    finally:
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == 143


def command_line(*options: str) -> dict[str, Any]:
    """What `gcnsim what-if --json` says."""
    found: dict[str, Any] = json_of("gcnsim", "what-if", *options)
    return found


def json_of(*words: str, folder: Path | None = None) -> Any:
    """What a command line of gcnsim says, begun in `folder`, with --json."""
    content = io.StringIO()
    with contextlib.chdir(folder or Path.cwd()), contextlib.redirect_stdout(content):
        assert (words[0], main([*words[1:], "--json"])) == ("gcnsim", 0)
    return json.loads(content.getvalue())


class Looking:
    """A page, and what its console said."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.said: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda line: self.said.append(line.text) if line.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.said.append(str(error)))

    def open(self, path: str) -> None:
        self.page.goto(self.address.rstrip("/") + path)
        self.page.wait_for_selector("#command:has-text('gcnsim')")
        if urlsplit(path).path == "/":
            self.page.wait_for_selector("#picture .main-svg")

    def settled(self, path: str) -> None:
        """Wait for what a page shows without being asked for more."""
        if urlsplit(path).path == "/":
            self.headline()
        if urlsplit(path).path == "/sweep":
            self.page.wait_for_selector("#parallel .main-svg")
        if urlsplit(path).path == "/timeline" or (urlsplit(path).path in ON_REQUEST and urlsplit(path).query):
            self.page.wait_for_selector("#figure-0 .main-svg")

    def kept(self, path: str) -> None:
        """Keep a picture of the whole page in the folder that GCNSIM_SCREENSHOTS names, if it does."""
        folder = os.environ.get("GCNSIM_SCREENSHOTS")
        if folder:
            name = re.sub(r"[^a-z0-9]+", "-", f"{urlsplit(path).path}-{urlsplit(path).query}").strip("-") or "what-if"
            width = self.page.viewport_size["width"]
            self.page.screenshot(path=str(Path(folder) / f"{name}-{width}.png"), full_page=True)

    def faults(self) -> list[tuple[str, list[str]]]:
        """What axe finds wrong on the page; its policy must be off."""
        self.page.add_script_tag(content=files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8"))
        found = self.page.evaluate("axe.run()")["violations"]
        return [(entry["id"], [node["html"][:120] for node in entry["nodes"]]) for entry in found]

    def headline(self, past: str = "") -> str:
        """The sentence, once it is another than `past`."""
        # A function that waits in the page would be evaluated there, which its policy forbids.
        other = "" if not past else f":not(:has-text({json.dumps(past)}))"
        self.page.wait_for_selector(f"#headline:not(:empty){other}")
        return str(self.page.inner_text("#headline"))
