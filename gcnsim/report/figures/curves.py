"""Iteration time against one axis (bandwidth, GPUs, tau, epsilon, cache, ...): lines with intervals as bands.

Measured runs are points.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.units import format_seconds, range_text
from gcnsim.report.answer.rows import plain, varies, words_of
from gcnsim.report.figures.style import LOG_FROM, MOST_LINES, PLAIN, Ticks, escaped, layout, log_ticks, time_unit
from gcnsim.report.palette import LIGHT, faded
from gcnsim.results import Row

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Line = tuple[str, str, str]
"""Colour, dashes and marker of a line."""


@dataclass(frozen=True, slots=True)
class CurveAxis:
    """An axis for iteration times. field: the row's field; size: its unit; log: whether steps are factors."""

    field: str
    title: str
    size: float
    log: bool
    suffix: str

    def text(self, value: float) -> str:
        """Format a value: `15 Gbps`, `tau 2`."""
        shown = f"{value / self.size:.6g}"
        return f"{shown}{self.suffix}" if self.suffix else f"{self.field} {shown}"


AXES: Final = {
    "bandwidth": CurveAxis("bandwidth_bytes_per_s", "NIC bandwidth (Gbps, log scale)", 1e9 / 8, True, " Gbps"),
    "gpus": CurveAxis("gpus", "GPUs", 1.0, False, " GPUs"),
    "tau": CurveAxis("tau", "tau (iterations of staleness)", 1.0, False, ""),
    "epsilon": CurveAxis("epsilon", "epsilon (share of edges drawn)", 1.0, False, ""),
    "rate": CurveAxis("rate", "rate (share of boundary nodes drawn)", 1.0, False, ""),
    "cache": CurveAxis("cache_fraction", "cache (% of boundary rows)", 0.01, False, " % cached"),
}
"""The axes by name."""

_KNOBS: Final = ("tau", "epsilon", "rate", "cache_fraction", "setting")


class Series(NamedTuple):
    """One setting's iteration time and interval at each value of the axis, ascending.

    Seconds; None for a time without an interval.
    """

    name: str
    values: tuple[float, ...]
    seconds: tuple[float, ...]
    low: tuple[float | None, ...]
    high: tuple[float | None, ...]
    recommended: bool = False


class MeasuredPoint(NamedTuple):
    """A measured run: its value of the axis, and seconds per iteration."""

    name: str
    value: float
    seconds: float


class Curve(NamedTuple):
    """Iteration time against an axis of `AXES`. requested: values to be marked."""

    axis: str
    series: tuple[Series, ...]
    measured: tuple[MeasuredPoint, ...] = ()
    requested: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class CurveData:
    """The figure's data. series: at most `MOST_LINES`; left_out: names of the others. unit_s: seconds of `unit`."""

    axis: CurveAxis
    series: tuple[Series, ...]
    measured: tuple[MeasuredPoint, ...]
    requested: tuple[float, ...]
    left_out: tuple[str, ...]
    unit: str
    unit_s: float
    log_time: bool
    x_ticks: Ticks
    y_ticks: Ticks


def curve_of_rows(rows: Sequence[Row], axis: str) -> Curve:
    """The lines of `rows` against `axis`: one line per setting apart from the axis, fastest first.

    Of rows with equal values, the last one counts.
    """
    field = AXES[axis].field
    apart = [key for key in words_of(rows[0]) if key != field and varies(rows, key)]
    held: dict[tuple[object, ...], dict[float, Row]] = {}
    for row in rows:
        held.setdefault(tuple(getattr(row, key) for key in apart), {})[float(getattr(row, field))] = row
    series = []
    for found in held.values():
        ordered = [found[value] for value in sorted(found)]
        series.append(
            Series(
                _name(ordered[0], rows, apart),
                tuple(sorted(found)),
                tuple(row.iteration_s for row in ordered),
                tuple(row.iteration_s_low for row in ordered),
                tuple(row.iteration_s_high for row in ordered),
                any(row.recommended for row in ordered),
            )
        )
    return Curve(axis, tuple(sorted(series, key=lambda item: min(item.seconds))))


def _name(row: Row, rows: Sequence[Row], apart: Sequence[str]) -> str:
    """What tells a row's line from others: of the knobs only those in which lines of its own method differ."""
    twins = [other for other in rows if other.method == row.method]
    named = [key for key in apart if key not in _KNOBS or varies(twins, key)]
    words = words_of(row)
    return plain(", ".join(words[key] for key in named or ["method"]))


def curve_data(curve: Curve) -> CurveData:
    """The drawn part of `curve`: the recommended line and the first of the others."""
    spare = MOST_LINES - sum(series.recommended for series in curve.series)
    others = [series for series in curve.series if not series.recommended]
    shown = tuple(series for series in curve.series if series.recommended or series in others[:spare])
    times = [value for series in shown for value in (*series.low, *series.seconds, *series.high) if value is not None]
    times += [item.seconds for item in curve.measured]
    values = [value for series in shown for value in series.values]
    values += [*curve.requested, *(item.value for item in curve.measured)]
    axis, unit = AXES[curve.axis], time_unit(max(times))
    low, high = min(times), max(times)
    return CurveData(
        axis=axis,
        series=shown,
        measured=curve.measured,
        requested=tuple(sorted(set(curve.requested))),
        left_out=tuple(other.name for other in others[spare:]),
        unit=unit.name,
        unit_s=unit.size,
        log_time=low > 0 and high / low > LOG_FROM,
        x_ticks=log_ticks(min(values), max(values), axis.size) if axis.log else _marks(values, axis.size),
        y_ticks=log_ticks(low, high, unit.size) if low > 0 else Ticks((), ()),
    )


def _marks(values: Sequence[float], size: float) -> Ticks:
    """A tick at each value, or at every second one and so on if there are many."""
    kept = sorted(set(values))
    kept = kept[:: -(-len(kept) // 12)]
    return Ticks(tuple(kept), tuple(f"{value / size:.6g}" for value in kept))


def curve_drawing(data: CurveData) -> dict[str, Any]:
    """The content of `curve_figure` as plain data, for speed (see `breakdown_drawing`)."""
    traces = [trace for series, style in styled(data.series) for trace in _line(data, series, style)]
    if data.measured:
        traces.append(_points(data))
    scale = ", log scale" if data.log_time else ""
    drawing = layout(data.axis.title, f"Time per iteration ({data.unit}{scale})", height=460) | PLAIN
    if data.requested:
        drawing["shapes"] = [_upright(value) for value in data.requested]
        drawing["annotations"] = [_mark(data.axis, value) for value in data.requested]
    drawing["xaxis"] |= {
        "type": "log" if data.axis.log else "linear",
        "tickvals": data.x_ticks.at,
        "ticktext": data.x_ticks.text,
    }
    drawing["yaxis"] |= {"rangemode": "tozero"}
    if data.log_time:
        at = [value / data.unit_s for value in data.y_ticks.at]
        drawing["yaxis"] |= {"type": "log", "tickvals": at, "ticktext": data.y_ticks.text}
    return {"data": traces, "layout": drawing}


def curve_figure(data: CurveData) -> Figure:
    """Lines of `data` with intervals as bands, measured runs as points, requested values as marks."""
    import plotly.graph_objects as go

    return go.Figure(curve_drawing(data))


def styled(series: Sequence[Series]) -> list[tuple[Series, Line]]:
    """Each line with its colour, dashes and marker."""
    places = accumulate((not item.recommended for item in series), initial=0)
    return [(item, LIGHT.line(place, item.recommended)) for item, place in zip(series, places, strict=False)]


def _upright(value: float) -> dict[str, Any]:
    """A dotted vertical line at a requested value."""
    place = {"x0": value, "x1": value, "xref": "x", "y0": 0, "y1": 1, "yref": "y domain"}
    return {"type": "line", **place, "line": {"color": LIGHT.ink, "width": 1, "dash": "dot"}}


def _mark(axis: CurveAxis, value: float) -> dict[str, Any]:
    """The name of a requested value, written along its line."""
    return {
        "x": math.log10(value) if axis.log else value,
        "y": 1,
        "yref": "paper",
        "yanchor": "top",
        "xanchor": "left",
        "text": axis.text(value),
        "textangle": 90,
        "showarrow": False,
        "font": {"size": 12, "color": LIGHT.muted},
    }


def _line(data: CurveData, series: Series, style: Line) -> Iterator[dict[str, Any]]:
    """The band of `series` and its line, in the style given."""
    color, dash, symbol = style
    values = list(series.values)
    low, high = _ends(series.low, series.seconds), _ends(series.high, series.seconds)
    yield {
        "type": "scatter",
        "x": values + values[::-1],
        "y": [value / data.unit_s for value in (*high, *low[::-1])],
        "mode": "lines",
        "fill": "toself",
        "fillcolor": faded(color),
        "line": {"width": 0},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": series.name,
    }
    rows = zip(values, series.seconds, series.low, series.high, strict=True)
    yield {
        "type": "scatter",
        "x": values,
        "y": [value / data.unit_s for value in series.seconds],
        "name": escaped(series.name),
        "legendgroup": series.name,
        "mode": "lines+markers",
        "line": {"color": color, "width": 2.5, "dash": dash},
        "marker": {"symbol": symbol, "size": 8},
        "customdata": [
            f"{escaped(series.name)} at {data.axis.text(value)}<br>{format_seconds(mean)}{range_text(least, most)}"
            for value, mean, least, most in rows
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }


def _ends(ends: Sequence[float | None], seconds: Sequence[float]) -> list[float]:
    """The ends of intervals as drawn; without an interval, the time itself."""
    return [mean if end is None else end for end, mean in zip(ends, seconds, strict=True)]


def _points(data: CurveData) -> dict[str, Any]:
    """Measured runs as hollow points."""
    runs = data.measured
    hover = [
        f"measured: {escaped(plain(run.name))} at {data.axis.text(run.value)}<br>{format_seconds(run.seconds)}"
        for run in runs
    ]
    return {
        "type": "scatter",
        "x": [run.value for run in runs],
        "y": [run.seconds / data.unit_s for run in runs],
        "name": "measured",
        "mode": "markers",
        "marker": {"symbol": "circle-open", "size": 12, "color": LIGHT.ink, "line": {"width": 2.5, "color": LIGHT.ink}},
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
    }
