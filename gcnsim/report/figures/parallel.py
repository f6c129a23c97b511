"""Points of a sweep as parallel coordinates: one row per axis, one line per point through its values.

Axes are horizontal, one below the other, so that a phone shows as many as a wide screen. Numbers are placed by size, on
a logarithmic row if they span a factor of six or more. Names are placed at equal distances.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.errors import UnitError
from gcnsim.core.fields import Number as Numeral
from gcnsim.core.fields import QuantityRange
from gcnsim.core.units import FRACTION
from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.style import LOG_FROM, Unit, byte_unit, escaped, layout, log_ticks, time_unit
from gcnsim.report.palette import LIGHT, faded
from gcnsim.scenario import rule_at
from gcnsim.workload.caching import Cache

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_DRAWN: Final = 400
"""The most lines drawn; more merge into one colour."""

MOST_TICKS: Final = 8
"""The most tick labels of a row."""

LETTERS: Final = 44
"""The letters that fit on a row on a phone."""

FASTEST: Final = 0.1
"""The share of highlighted points, in addition to the first."""

EMPTY: Final = "none"
"""The text for a point without a value on an axis."""

Number = Callable[[Any], float]
"""A function that parses an axis's value to a number; raises ValueError or UnitError for a name."""


def number_of(path: str) -> Number:
    """A parser for values of the field at `path`: quantities in their base unit, shares for `10%`."""
    rule, _ = rule_at(path)
    if isinstance(rule, QuantityRange):
        return rule.quantity.parse
    if isinstance(rule, Cache):
        return FRACTION.parse
    return float if isinstance(rule, Numeral) else _name


def _name(value: Any) -> float:
    raise ValueError(f"{value} is a name")


class Tick(NamedTuple):
    """A tick of a row: its place in [0, 1] and its text."""

    place: float
    text: str


class ParallelAxis(NamedTuple):
    """An axis: what it is called, and its marks."""

    name: str
    ticks: tuple[Tick, ...]


class Line(NamedTuple):
    """A point: its number, its place on each row, its values in words, and whether it is highlighted."""

    point: int
    places: tuple[float, ...]
    hover_text: tuple[str, ...]
    fast: bool


@dataclass(frozen=True, slots=True)
class Parallel:
    """Rows from top to bottom, and lines, the best by `by` first. left_out: points that are not drawn."""

    rows: tuple[ParallelAxis, ...]
    lines: tuple[Line, ...]
    left_out: int

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """Names of the kinds of lines and their theme colours; none is hatched."""
        entries = [
            ("the first", "recommended", False),
            ("the first tenth", "compute", False),
            ("others", "other", False),
        ]
        kinds = [bool(self.lines), any(line.fast for line in self.lines[1:]), any(not e.fast for e in self.lines[1:])]
        return [entry for entry, there in zip(entries, kinds, strict=True) if there]


def parallel_data(records: Sequence[Mapping[str, Any]], axes: Sequence[str], by: str) -> Parallel:
    """Points in order over `axes` (paths of fields) and the column `by`, which all of them have.

    Axes with equal values for all points have no row. Of many points, the first and a regular sample are drawn.
    """
    shown = _spread(len(records))
    varied = [path for path in axes if len({str(record[path]) for record in records}) > 1]
    columns = [_row(plain(path), [record[path] for record in records], number_of(path), None)
               for path in varied]  # fmt: skip
    columns.append(_row(plain(by), [record[by] for record in records], _name if _is_text(records, by) else float, by))
    fast = math.ceil(FASTEST * len(records))
    lines = tuple(
        Line(
            int(records[index]["point"]),
            tuple(places[index] for _, places, _ in columns),
            tuple(f"{row.name}: {texts[index]}" for row, _, texts in columns),
            index < fast,
        )
        for index in shown
    )
    return Parallel(tuple(row for row, _, _ in columns), lines, len(records) - len(lines))


def _is_text(records: Sequence[Mapping[str, Any]], by: str) -> bool:
    return any(isinstance(record[by], str | bool) for record in records)


def _spread(count: int) -> list[int]:
    if count <= MOST_DRAWN:
        return list(range(count))
    return sorted({round(index * (count - 1) / (MOST_DRAWN - 1)) for index in range(MOST_DRAWN)})


def _row(name: str, values: list[Any], number: Number, by: str | None) -> tuple[ParallelAxis, list[float], list[str]]:
    """The row of an axis, with the place and the text of each value."""
    held = [value for value in values if value is not None]
    try:
        worth = {value: number(value) for value in dict.fromkeys(held)}
    except (TypeError, ValueError, UnitError):
        return _named(name, values)
    if not worth or not all(map(math.isfinite, worth.values())):
        return _named(name, values)
    low, high = min(worth.values()), max(worth.values())
    log = low > 0 and high >= LOG_FROM * low
    scale = math.log if log else float
    ends = scale(low), (scale(high) - scale(low)) or 1.0
    room = 1.0 if len(held) == len(values) else 0.86  # points without a value are to the right of all others
    place = {value: room * (scale(amount) - ends[0]) / ends[1] for value, amount in worth.items()}
    if by is None:
        known = sorted(worth, key=worth.__getitem__)
        marks = [Tick(place[value], _text(value)) for value in known]
        words = {value: _text(value) for value in worth}
        title = name
    else:
        unit = _unit_of(by, high)
        title = f"{plain(by)}{f' ({unit[0]})' if unit[0] else ''}"
        words = {value: f"{amount / unit[1]:.4g}" for value, amount in worth.items()}
        at = _marks(low, high, unit[1], log=log)
        marks = [Tick(room * (scale(value) - ends[0]) / ends[1], f"{value / unit[1]:.4g}") for value in at]
    ticks = _apart(marks if room == 1.0 else [*marks, Tick(1.0, EMPTY)])
    places = [1.0 if value is None else place[value] for value in values]
    return ParallelAxis(title, tuple(ticks)), places, [EMPTY if value is None else words[value] for value in values]


def _named(name: str, values: list[Any]) -> tuple[ParallelAxis, list[float], list[str]]:
    """A row of names at equal distances, in order of appearance."""
    words = [EMPTY if value is None else _text(value) for value in values]
    names = sorted(dict.fromkeys(words))
    place = {word: (turn / (len(names) - 1) if len(names) > 1 else 0.5) for turn, word in enumerate(names)}
    return (
        ParallelAxis(name, tuple(_apart([Tick(place[word], word) for word in names]))),
        [place[word] for word in words],
        words,
    )


def _text(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else plain(str(value))


def _unit_of(by: str, high: float) -> Unit:
    """The unit of an answer column, from the end of its name."""
    if by.endswith(("_s", "_s_low", "_s_high")):
        return time_unit(high)
    return byte_unit(high) if by.endswith("_bytes") else Unit("", 1.0)


def _marks(low: float, high: float, unit: float, *, log: bool) -> list[float]:
    inside = [item for item in log_ticks(low, high, unit).at if low < item < high] if log else []
    return [low, *(inside or [low + (high - low) * share for share in (0.25, 0.5, 0.75)]), high]


def _apart(ticks: Sequence[Tick]) -> list[Tick]:
    """Ticks whose texts do not overlap: both ends, and between them those far enough from the previous one."""
    if len(ticks) < 3:
        return list(ticks)
    kept = [ticks[0]]
    for tick in ticks[1:-1]:
        room = _room(kept[-1], tick)
        if tick.place - kept[-1].place >= room and ticks[-1].place - tick.place >= _room(tick, ticks[-1]):
            kept.append(tick)
    return [*kept, ticks[-1]]


def _room(one: Tick, other: Tick) -> float:
    """The share of a row that the texts of two ticks need on a phone; texts at the ends are inside the row."""
    taken = len(one.text) / (1 if one.place <= 0 else 2) + len(other.text) / (1 if other.place >= 1 else 2)
    return max(1 / MOST_TICKS, (taken + 1) / LETTERS)


def parallel_figure(data: Parallel) -> Figure:
    """The rows with their ticks; other points are faint, highlighted ones on top, the best last."""
    import plotly.graph_objects as go

    figure = go.Figure()
    others = [line for line in data.lines[1:] if not line.fast]
    fast = [line for line in data.lines[1:] if line.fast]
    figure.add_scatter(**_lines(others, "others", faded(LIGHT.other, 0.35), 1.0))
    figure.add_scatter(**_lines(fast, "the first tenth", LIGHT.compute, 1.4))
    figure.add_scatter(**_lines(data.lines[:1], "the first", LIGHT.recommended, 4.0))
    for index, row in enumerate(data.rows):
        figure.add_shape(type="line", x0=0, x1=1, y0=index, y1=index, line={"color": LIGHT.muted, "width": 1})
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=index - 0.08, yanchor="bottom", showarrow=False,
            text=f"<b>{escaped(row.name)}</b>", font={"size": 13}, bgcolor=LIGHT.paper, borderpad=1,
        )  # fmt: skip
        for tick in row.ticks:
            anchor = "left" if tick.place < 0.02 else "right" if tick.place > 0.98 else "center"
            figure.add_annotation(
                x=tick.place, xanchor=anchor, y=index + 0.06, yanchor="top", showarrow=False, text=escaped(tick.text),
                font={"size": 12, "color": LIGHT.ink}, bgcolor=faded(LIGHT.paper, 0.85), borderpad=1,
            )  # fmt: skip
    figure.update_layout(**layout("", height=40 + 88 * len(data.rows)))
    figure.update_layout(margin={"l": 12, "r": 12, "t": 8, "b": 8}, hovermode="closest")
    figure.update_xaxes(visible=False, range=[-0.01, 1.01], fixedrange=True)
    figure.update_yaxes(visible=False, range=[len(data.rows) - 0.55, -0.42], fixedrange=True)
    return figure


def _lines(lines: Sequence[Line], name: str, color: str, width: float) -> dict[str, Any]:
    """Lines as one trace, with gaps between them."""
    x: list[float | None] = []
    y: list[int | None] = []
    hover: list[str] = []
    for line in lines:
        words = f"point {line.point}<br>" + "<br>".join(map(escaped, line.hover_text))
        x += [*(round(place, 5) for place in line.places), None]
        y += [*range(len(line.places)), None]
        hover += [words] * (len(line.places) + 1)
    return {
        "x": x,
        "y": y,
        "mode": "lines+markers",
        "name": name,
        "line": {"color": color, "width": width},
        "marker": {"color": color, "size": 4 + width},
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
        "connectgaps": False,
    }
