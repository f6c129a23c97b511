"""A figure as an image: PNG or SVG, drawn by Kaleido, which the extra `images` brings."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Final

from gcnsim.errors import FileError
from gcnsim.io.atomic import atomic_write

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

SUFFIXES: Final = (".png", ".svg")
WIDTH: Final = 1000
"""Pixels of an image; PNG has twice as many each way."""


def write_image(path: str | Path, figure: Figure) -> None:
    """Write `figure` as PNG or SVG, by the file's suffix. Raises FileError, also without Kaleido or a browser."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise FileError(f"{path}: its suffix says no format; allowed: {', '.join(SUFFIXES)}")
    refuse_without_kaleido(path)
    try:
        drawn = figure.to_image(format=suffix[1:], width=WIDTH, scale=2 if suffix == ".png" else 1)
    except (OSError, RuntimeError, ValueError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise FileError(f"{path}: the image cannot be drawn: {reason[0]}") from error
    with atomic_write(path) as file:
        file.write(drawn)


def refuse_without_kaleido(path: str | Path) -> None:
    """Raises FileError, naming what was to be written, where nothing here can draw images."""
    if importlib.util.find_spec("kaleido") is None:
        raise FileError(f"{path}: an image needs Kaleido; pip install 'gcnsim[images]'")
