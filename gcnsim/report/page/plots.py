"""The figures drawn with Plotly from their plain data.

A figure has no legend of its own: the page writes it as text, which wraps on a phone. Labels of bars stand above them
for the same reason.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from gcnsim.report.page.figures import BandwidthInfo, Bar, Breakdown, Series, gbps_text
from gcnsim.report.palette import COMPUTE, EXPOSED, GRID, INK, MUTED, OTHER, RECOMMENDED, SETTINGS
from gcnsim.units import format_seconds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_HATCHED = {
    "color": "#FBE3D3",
    "line": {"color": EXPOSED, "width": 1},
    "pattern": {"shape": "/", "fgcolor": EXPOSED, "size": 6, "solidity": 0.25},
}
_MAIN = {"offset": -0.14, "width": 0.36}
_BENEATH = {"offset": 0.24, "width": 0.14}


def line_style(position: int, recommended: bool) -> tuple[str, str, str]:
    """Colour, dashes and marker of a setting's line; `position` counts those that are not recommended."""
    return (RECOMMENDED, "solid", "circle") if recommended else SETTINGS[position % len(SETTINGS)]


def breakdown_figure(info: Breakdown) -> Figure:
    """Stacked bars of `info`; the hidden communication hatched beneath each, because it adds no time."""
    import plotly.graph_objects as go

    compute = [bar.compute_s for bar in info.bars]
    exposed = [bar.exposed_comm_s for bar in info.bars]
    other = [bar.exposed_other_s for bar in info.bars]
    hidden = [bar.hidden_comm_s for bar in info.bars]
    start = [0.0] * len(info.bars)
    figure = go.Figure(
        [
            _bars(info, "compute", compute, start, {"color": COMPUTE}, _MAIN),
            _bars(info, "exposed communication", exposed, compute, {"color": EXPOSED}, _MAIN),
            _bars(
                info,
                "other",
                other,
                [sum(pair) for pair in zip(compute, exposed, strict=True)],
                {"color": OTHER},
                _MAIN,
            ),
            _bars(info, "hidden communication (in parallel)", hidden, start, _HATCHED, _BENEATH),
            _whiskers(info),
        ]
    )
    rows = len(info.bars)
    figure.update_layout(**_layout(f"Time per iteration ({info.unit})"), height=70 + 62 * rows, barmode="overlay")
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(range=[rows - 0.5, -0.65], showticklabels=False, showgrid=False)
    for place, bar in enumerate(info.bars):
        figure.add_annotation(_above(place, bar))
    return figure


def _above(place: int, bar: Bar) -> dict[str, Any]:
    """The label of a bar, above its left end, where it takes no room from the bar."""
    return {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": place - 0.16,
        "yanchor": "bottom",
        "text": _label(bar),
        "showarrow": False,
        "align": "left",
        "font": {"size": 13, "color": RECOMMENDED if bar.recommended else INK},
    }


def bandwidth_figure(info: BandwidthInfo) -> Figure:
    """Lines of `info` with their intervals as bands, and a mark at each bandwidth asked for."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for series, style in styled(info.curve.series):
        figure.add_traces(list(_line(info, series, *style)))
    for value in info.current:
        figure.add_vline(x=value, line={"color": INK, "width": 1, "dash": "dot"})
        figure.add_annotation(_mark(value))
    figure.update_layout(**_layout("NIC bandwidth (Gbps, log scale)"), height=460)
    figure.update_xaxes(type="log", tickvals=info.x_ticks.at, ticktext=info.x_ticks.text)
    scale = ", log scale" if info.log_time else ""
    figure.update_yaxes(title=f"Time per iteration ({info.unit}{scale})", rangemode="tozero", automargin=True)
    if info.log_time:
        at = [value / info.unit_s for value in info.y_ticks.at]
        figure.update_yaxes(type="log", tickvals=at, ticktext=info.y_ticks.text)
    return figure


def styled(series: Sequence[Series]) -> list[tuple[Series, tuple[str, str, str]]]:
    """Each line with its colour, dashes and marker."""
    places = accumulate((not each.recommended for each in series), initial=0)
    return [(each, line_style(place, each.recommended)) for each, place in zip(series, places, strict=False)]


def _layout(x_title: str) -> dict[str, Any]:
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": INK, "title": {"standoff": 12}}
    return {
        "template": "plotly_white",
        "font": {"family": FONT, "size": 14, "color": INK},
        "paper_bgcolor": "#FFFFFF",
        "plot_bgcolor": "#FFFFFF",
        "margin": {"l": 8, "r": 16, "t": 8, "b": 56},
        "showlegend": False,
        "hoverlabel": {"bgcolor": "#FFFFFF", "font": {"family": FONT, "color": INK}},
        "xaxis": axis | {"title": {"text": x_title, "standoff": 12}, "automargin": True},
        "yaxis": axis,
    }


def _mark(value: float) -> dict[str, Any]:
    """The name of a bandwidth (bytes/s), written along its line."""
    return {
        "x": math.log10(value),
        "y": 1,
        "yref": "paper",
        "yanchor": "top",
        "xanchor": "left",
        "text": gbps_text(value),
        "textangle": 90,
        "showarrow": False,
        "font": {"size": 12, "color": MUTED},
    }


def _label(bar: Bar) -> str:
    setting = f" <span style='font-size:12px;color:{MUTED}'>{html.escape(bar.setting)}</span>" if bar.setting else ""
    name = f"<b>{html.escape(bar.method)}</b> (recommended)" if bar.recommended else html.escape(bar.method)
    return f"{name}{setting}"


def _bars(
    info: Breakdown,
    name: str,
    seconds: Sequence[float],
    base: Sequence[float],
    marker: dict[str, Any],
    place: dict[str, float],
) -> Any:
    import plotly.graph_objects as go

    return go.Bar(
        name=name,
        orientation="h",
        y=list(range(len(info.bars))),
        x=[value / info.unit_s for value in seconds],
        base=[value / info.unit_s for value in base],
        marker=marker,
        customdata=[
            f"{_label(bar)}<br>{name}: {format_seconds(value)}" for bar, value in zip(info.bars, seconds, strict=True)
        ],
        hovertemplate="%{customdata}<extra></extra>",
        **place,
    )


def _whiskers(info: Breakdown) -> Any:
    """The interval of the iteration time as an error bar at the end of the main bar."""
    import plotly.graph_objects as go

    return go.Bar(
        orientation="h",
        y=list(range(len(info.bars))),
        x=[bar.iteration_s / info.unit_s for bar in info.bars],
        base=[0.0] * len(info.bars),
        marker={"color": "rgba(0,0,0,0)"},
        error_x={
            "type": "data",
            "array": [(bar.high_s - bar.iteration_s) / info.unit_s for bar in info.bars],
            "arrayminus": [(bar.iteration_s - bar.low_s) / info.unit_s for bar in info.bars],
            "color": INK,
            "thickness": 1.5,
            "width": 5,
        },
        showlegend=False,
        hoverinfo="skip",
        **_MAIN,
    )


def _line(info: BandwidthInfo, series: Series, color: str, dash: str, symbol: str) -> Iterator[Any]:
    """The band of `series` and its line, in the colour, dash and marker given."""
    import plotly.graph_objects as go

    widths = list(info.curve.bandwidths)
    yield go.Scatter(
        x=widths + widths[::-1],
        y=[value / info.unit_s for value in (*series.high, *series.low[::-1])],
        mode="lines",
        fill="toself",
        fillcolor=f"rgba({', '.join(str(int(color[i : i + 2], 16)) for i in (1, 3, 5))}, 0.15)",
        line={"width": 0},
        hoverinfo="skip",
        showlegend=False,
        legendgroup=series.name,
    )
    rows = zip(widths, series.seconds, series.low, series.high, strict=True)
    yield go.Scatter(
        x=widths,
        y=[value / info.unit_s for value in series.seconds],
        name=html.escape(series.name),
        legendgroup=series.name,
        mode="lines+markers",
        line={"color": color, "width": 2.5, "dash": dash},
        marker={"symbol": symbol, "size": 8},
        customdata=[
            f"{html.escape(series.name)} at {gbps_text(width)}<br>{format_seconds(mean)}"
            f" [{format_seconds(low)}, {format_seconds(high)}]"
            for width, mean, low, high in rows
        ],
        hovertemplate="%{customdata}<extra></extra>",
    )
