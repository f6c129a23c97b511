"""What a field may be and what it is by default is what docs/files.md says."""

from __future__ import annotations

from pathlib import Path

from gcnsim.scenario.load import describe_schema
from tests.docs.generated import catalogued

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "files.md"


def test_ranges_and_defaults_are_the_documented_ones() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    table = text.split("<!-- generated: scenario fields -->")[1].split("<!-- end -->")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| `")]
    message = {path.strip("`"): (allowed, default.strip("`")) for path, _, allowed, default, _ in rows}
    assert len(message) > 60
    assert {path: (catalogued(allowed), default) for path, _, allowed, default, _ in describe_schema()} == message


def test_names_of_the_catalogue_are_those_that_its_command_lists() -> None:
    allowed = {path: catalogued(allowed) for path, _, allowed, _, _ in describe_schema()}
    assert allowed["cluster.device"] == "one of `gcnsim catalog list devices`, or a file (.yaml)"
    assert allowed["workload.dataset"] == "one of `gcnsim catalog list datasets`, or null"
    assert allowed["method.name"] == "one of `gcnsim catalog list methods`"
