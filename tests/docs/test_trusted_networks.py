"""What is said wherever a document shows how to open a port."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPENS = re.compile(r"torchrun[^\n]*--rdzv-endpoint|MASTER_PORT=")
DOCUMENTS = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if OPENS.search(path.read_text())
]


def test_there_are_such_documents() -> None:
    assert {"guide_measure.md", "training.md", "calibration.md"} <= {path.name for path in DOCUMENTS}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_document_that_opens_a_port_says_on_which_networks_and_names_no_id_to_guess(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.search(r"trusted networks? only", text, re.IGNORECASE)
    ids = re.findall(r"--rdzv-id[= ](\S+)", text)
    assert set(ids) <= {"$ID", "RANDOM,"}, ids
