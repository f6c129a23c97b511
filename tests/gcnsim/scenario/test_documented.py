"""What a field may be and what it is by default is what docs/files.md says."""

from __future__ import annotations

from pathlib import Path

from gcnsim.scenario.load import describe_schema

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "files.md"


def test_ranges_and_defaults_are_the_documented_ones() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.split("<!-- generated: scenario fields -->")[1].split("<!-- end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    message = {path.strip("`"): (allowed, default.strip("`")) for path, _, allowed, default, _ in rows}
    assert len(message) > 60
    assert {path: (allowed, default) for path, _, allowed, default, _ in describe_schema()} == message
