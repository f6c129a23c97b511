"""The common style of figures: fonts, axes, units of an axis, ticks of a logarithmic one."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from textwrap import wrap
from typing import Any, Final, NamedTuple

from gcnsim.core.units import LONG_TIMES
from gcnsim.report.answer.columns import BYTE_UNITS, TIME_UNITS
from gcnsim.report.palette import LIGHT

FONT: Final = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"

MOST_LINES: Final = 6
"""The most lines of one panel; more are unreadable."""

LOG_FROM: Final = 6.0
"""An axis is logarithmic if its largest value is this many times its smallest."""


class Unit(NamedTuple):
    """The unit of an axis, and its size in seconds or bytes."""

    name: str
    size: float


class Ticks(NamedTuple):
    """The positions and texts of the ticks of an axis."""

    at: tuple[float, ...]
    text: tuple[str, ...]


def time_unit(longest: float) -> Unit:
    """The unit for an axis of seconds up to `longest`.

    >>> time_unit(0.3)
    Unit(name='ms', size=0.001)
    """
    long = next((Unit(name, size) for name, size, least in LONG_TIMES if longest >= least), None)
    return long or _unit(longest, TIME_UNITS)


def byte_unit(most: float) -> Unit:
    """The unit for an axis of bytes up to `most`."""
    return _unit(most, BYTE_UNITS)


def _unit(most: float, units: Sequence[tuple[str, float]]) -> Unit:
    return Unit(*next((pair for pair in units if most >= pair[1]), units[-1]))


def log_ticks(low: float, high: float, unit: float = 1.0) -> Ticks:
    """Ticks at 1, 2 and 5 times the powers of ten of `unit` that cover [low, high], at most one beyond each end.

    >>> log_ticks(0.9, 30.0)
    Ticks(at=(1.0, 2.0, 5.0, 10.0, 20.0), text=('1', '2', '5', '10', '20'))
    """
    first, last = math.floor(math.log10(low / unit)), math.ceil(math.log10(high / unit))
    steps = [mantissa * 10.0**power for power in range(first, last + 1) for mantissa in (1, 2, 5)]
    inside = [step for step in steps if low / unit / 1.01 <= step <= high / unit * 1.01]
    return Ticks(tuple(step * unit for step in inside), tuple(f"{step:g}" for step in inside))


def layout(x_title: str, y_title: str = "", *, height: int) -> dict[str, Any]:
    """The layout of a figure without a legend: pages write legends as text, which wraps on a phone."""
    axis = {
        "gridcolor": LIGHT.grid,
        "zeroline": False,
        "linecolor": LIGHT.ink,
        "ticks": "",
        "automargin": True,
    }
    return {
        "template": "none",
        "font": {"family": FONT, "size": 14, "color": LIGHT.ink},
        "paper_bgcolor": LIGHT.paper,
        "plot_bgcolor": LIGHT.paper,
        "margin": {"l": 8, "r": 16, "t": 8, "b": 56},
        "height": height,
        "showlegend": False,
        "hoverlabel": {
            "bgcolor": LIGHT.paper,
            "bordercolor": LIGHT.muted,
            "font": {"family": FONT, "color": LIGHT.ink},
        },
        "xaxis": axis | {"title": {"text": x_title, "standoff": 12}},
        "yaxis": axis | {"title": {"text": y_title, "standoff": 12}},
    }


PLAIN: Final[Any] = {"template": {}}
"""Replaces the name of the template "none" if a figure stays plain data: only Plotly's Python knows template names."""


def line_legend(styled: Sequence[tuple[Any, tuple[str, str, str]]]) -> list[tuple[str, str, str]]:
    """Names, colours and dashes of lines, each with `name` and `recommended` beside its style."""
    return [(f"{line.name}{' (recommended)' * line.recommended}", color, dash) for line, (color, dash, _) in styled]


LETTERS: Final = 42
"""Characters of a label that a phone shows in a line."""

LINE: Final = 17
"""Pixels of a line of labels."""


def label_lines(head: str, rest: str) -> list[str]:
    """The lines of a bar's label after its head, which begins the first one."""
    taken = min(len(head), LETTERS)
    first, *others = wrap(f"{'x' * taken} {rest}", LETTERS, break_on_hyphens=False)
    return [first[taken:], *others]


def label_text(shown: str, head: str, rest: str) -> str:
    """A bar's whole label in lines: its head as it is `shown`, then the rest."""
    lines = "<br>".join(map(escaped, label_lines(head, rest)))
    return f"{shown}<span style='color:{LIGHT.muted};font-size:12px'>{lines}</span>" if rest else shown


def places_of(labels: Iterable[tuple[str, str]], below: int) -> list[int]:
    """Where rows begin and the last one ends, in pixels: each is its label's lines, then `below` for what is drawn."""
    return list(accumulate((LINE * len(label_lines(*label)) + below for label in labels), initial=0))


def escaped(text: str) -> str:
    """`text` with Plotly's tags escaped."""
    return html.escape(text)
