"""Figures as PNG or SVG images, rendered by Kaleido (extra `images`).

`gcnsim images` reads the figures back from a page that `--html` wrote.
"""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gcnsim.core.atomic import atomic_write
from gcnsim.core.errors import FileError
from gcnsim.core.json_files import parse_json, read_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SUFFIXES: Final = (".png", ".svg")
WIDTH: Final = 1000
"""Pixels of an image; PNG has twice as many in each direction."""


def write_image(path: str | Path, figure: Figure) -> None:
    """Write `figure` as PNG or SVG, by the file's suffix. Raises FileError, also without Kaleido or a browser."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FileError(f"{path}: its suffix says no format; allowed: {', '.join(SUFFIXES)}")
    refuse_without_kaleido(path)
    try:
        image = figure.to_image(format=suffix[1:], width=WIDTH, scale=2 if suffix == ".png" else 1)
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise FileError(f"{path}: the image cannot be drawn: {reason[0]}") from error
    with atomic_write(path) as file:
        file.write(image)


def refuse_without_kaleido(path: str | Path) -> None:
    """Raise FileError, naming the file, if images cannot be rendered here."""
    if importlib.util.find_spec("kaleido") is None:
        raise FileError(f"{path}: an image needs Kaleido; pip install 'gcnsim[images]'")


DRAWN: Final = re.compile(r'gcnsim\.draw\("([\w-]{1,80})", (".*")\); \}$', re.MULTILINE)
"""The form of a figure in `templates/parts.html.j2`: its name, and JSON text."""

MOST_BYTES: Final = 256_000_000
"""The largest page that is read: one of ours has 1 MB, of which the figures are a small part."""

KINDS: Final = ("bar", "heatmap", "scatter")
"""Trace types of gcnsim figures."""

LEGEND: Final = {"orientation": "h", "x": 0.0, "y": 0.0, "yref": "container", "yanchor": "bottom"}
LEGEND_HEIGHT: Final = 50
"""Pixels."""

WANTED: Final = "allowed: a page that --html wrote"


def page_figures(path: str | Path) -> dict[str, Figure]:
    """The figures of a page in order, by name. Raises FileError for a file that is not a gcnsim page.

    On the page, legends are separate text; here they are added to the figures.
    """
    try:
        size = Path(path).stat().st_size
    except OSError as error:
        raise FileError(f"{path}: cannot be read: {error.strerror}") from None
    if size > MOST_BYTES:
        raise FileError(f"{path}: has {size:,} bytes; {WANTED}, up to {MOST_BYTES:,}")
    drawn = DRAWN.findall(read_text(path))
    if not drawn:
        raise FileError(f"{path}: has no figures; {WANTED}")
    return {name: _figure(path, name, text) for name, text in drawn}


def _figure(path: str | Path, name: str, text: str) -> Figure:
    from plotly.graph_objects import Figure

    try:
        written = json.loads(text)
    except ValueError:
        written = ""
    document = parse_json(written, f"{path}: figure {name}")
    try:
        figure = Figure(document)
    except (ValueError, TypeError, AttributeError, KeyError, IndexError):
        raise FileError(f"{path}: figure {name}: is not a figure of Plotly; {WANTED}") from None
    # A browser renders it, so it must not contain anything that starts a request.
    if figure.layout.images or any(trace.type not in KINDS for trace in figure.data):
        raise FileError(f"{path}: figure {name}: holds more than {', '.join(KINDS)}; {WANTED}")
    named = any(trace.name and trace.showlegend is not False for trace in figure.data)
    if named and not figure.layout.showlegend:
        beneath = (figure.layout.margin.b or 0) + LEGEND_HEIGHT
        figure.update_layout(showlegend=True, legend=LEGEND, margin_b=beneath)
        if figure.layout.height:
            figure.update_layout(height=figure.layout.height + LEGEND_HEIGHT)
    figure.update_layout(paper_bgcolor="white", plot_bgcolor="white")
    return figure
