"""What is said wherever a document shows how to open a port."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OPENS = re.compile(r"torchrun[^\n]*--rdzv-endpoint|MASTER_PORT=")
DOCUMENTS = [
    path for path in (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))) if OPENS.search(path.read_text())
]


def test_a_document_that_opens_a_port_says_on_which_networks_and_names_no_id_to_guess() -> None:
    assert {"guide_measure.md", "training.md", "calibration.md"} <= {path.name for path in DOCUMENTS}
    for path in DOCUMENTS:
        text = path.read_text(encoding="utf-8")
        assert re.search(r"trusted networks? only", text, re.IGNORECASE), path.name
        assert set(re.findall(r"--rdzv-id[= ](\S+)", text)) <= {"$ID", "RANDOM,"}, path.name
