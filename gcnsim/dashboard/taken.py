"""What jobs of the pages write for their users to take home."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def sweep(options: Mapping[str, Any], folder: Path, say: Callable[[str], None]) -> None:
    """Points of a sweep that a filter leaves, the first first: CSV, JSON and a page. Raises GcnsimError."""
    import pyarrow as pa

    from gcnsim import api
    from gcnsim.report import write_points

    say("reading the points")
    found = api.open_sweep(options["folder"])
    order = {"by": options["by"], "descending": options["descending"], "where": options["where"]}
    table = pa.Table.from_pylist(found.best(None, **order), found.folder.schema)
    for suffix in ("csv", "json"):
        write_points(folder / f"points.{suffix}", table)
    say("drawing the page")
    found.to_html(folder / "points.html", **order)
