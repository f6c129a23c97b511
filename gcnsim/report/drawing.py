"""The figures drawn with Plotly from their plain data.

Colours are Okabe and Ito's, which all readers can tell apart; hatching, dashes and marker shapes say the same again for
print without colour.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from gcnsim.report.figures import BandwidthInfo, Bar, Breakdown, Series, gbps_text
from gcnsim.units import format_seconds

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

BLUE, VERMILION, GREY, INK, MUTED, GRID = "#0072B2", "#D55E00", "#8A8F98", "#1F2933", "#52606D", "#E3E7EC"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_LINES = (
    ("#D55E00", "solid", "circle"),
    ("#0072B2", "dash", "square"),
    ("#009E73", "dashdot", "diamond"),
    ("#CC79A7", "dot", "triangle-up"),
    ("#E69F00", "longdash", "x"),
    ("#56B4E9", "longdashdot", "star"),
)
_HATCHED = {
    "color": "#FBE3D3",
    "line": {"color": VERMILION, "width": 1},
    "pattern": {"shape": "/", "fgcolor": VERMILION, "size": 6, "solidity": 0.25},
}
_MAIN = {"offset": -0.32, "width": 0.46}
_BENEATH = {"offset": 0.18, "width": 0.16}


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
            _bars(info, "compute", compute, start, {"color": BLUE}, _MAIN),
            _bars(info, "exposed communication", exposed, compute, {"color": VERMILION}, _MAIN),
            _bars(
                info, "other", other, [sum(pair) for pair in zip(compute, exposed, strict=True)], {"color": GREY}, _MAIN
            ),
            _bars(info, "hidden communication (in parallel)", hidden, start, _HATCHED, _BENEATH),
            _whiskers(info),
        ]
    )
    rows = len(info.bars)
    figure.update_layout(**_layout(f"Time per iteration ({info.unit})"), height=150 + 58 * rows, barmode="overlay")
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(
        range=[rows - 0.45, -0.55],
        tickvals=list(range(rows)),
        ticktext=[_label(bar) for bar in info.bars],
        showgrid=False,
        automargin=True,
    )
    return figure


def bandwidth_figure(info: BandwidthInfo) -> Figure:
    """Lines of `info` with their intervals as bands, and a mark at each bandwidth asked for."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for position, series in enumerate(info.curve.series):
        figure.add_traces(list(_line(info, series, *_LINES[position % len(_LINES)])))
    for value in info.current:
        figure.add_vline(x=value, line={"color": INK, "width": 1, "dash": "dot"})
        figure.add_annotation(_mark(value))
    figure.update_layout(**_layout("NIC bandwidth per server (Gbps, log scale)"), height=460)
    figure.update_xaxes(type="log", tickvals=info.x_ticks.at, ticktext=info.x_ticks.text)
    scale = ", log scale" if info.log_time else ""
    figure.update_yaxes(title=f"Time per iteration ({info.unit}{scale})", rangemode="tozero", automargin=True)
    if info.log_time:
        at = [value / info.unit_s for value in info.y_ticks.at]
        figure.update_yaxes(type="log", tickvals=at, ticktext=info.y_ticks.text)
    return figure


def _layout(x_title: str) -> dict[str, Any]:
    axis = {"gridcolor": GRID, "zeroline": False, "linecolor": INK, "title": {"standoff": 12}}
    return {
        "template": "plotly_white",
        "font": {"family": FONT, "size": 14, "color": INK},
        "paper_bgcolor": "#FFFFFF",
        "plot_bgcolor": "#FFFFFF",
        "margin": {"l": 8, "r": 16, "t": 40, "b": 56},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom", "font": {"size": 13}},
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
    setting = f"<br><span style='font-size:12px;color:{MUTED}'>{html.escape(bar.setting)}</span>" if bar.setting else ""
    return f"{html.escape(bar.method)}{setting}"


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
