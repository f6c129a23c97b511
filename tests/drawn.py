"""The figures of a page that `--html` wrote, read back."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from plotly.graph_objects import Figure

DRAWN: Final = re.compile(r'gcnsim\.draw\("([\w-]{1,80})", (".*")\); \}$', re.MULTILINE)
"""The form of a figure in `templates/parts.html.j2`: its name, and JSON text."""


def page_figures(path: Path) -> dict[str, Any]:
    """The figures of a page in order, by name."""
    drawn = DRAWN.findall(path.read_text(encoding="utf-8"))
    return {name: Figure(json.loads(json.loads(text))) for name, text in drawn}
