"""The utilisation of links in an iteration, and the bytes that each pair of workers exchanges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from gcnsim.core.ids import FloatArray, Iteration
from gcnsim.core.units import format_bytes, format_fraction
from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.style import byte_unit, escaped, layout
from gcnsim.report.palette import LIGHT
from gcnsim.results import LinkTraffic
from gcnsim.timeline import Timeline
from gcnsim.timeline.run_perfetto import messages

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_LINKS: Final = 24
FULL: Final = 0.95
"""A link with at least this utilisation is a bottleneck."""


class LinkBar(NamedTuple):
    """A link: bytes per iteration, and their share of its capacity."""

    name: str
    nbytes: float
    share: float


@dataclass(frozen=True, slots=True)
class LinkBars:
    """The busiest links, busiest first, and the number of others."""

    bars: tuple[LinkBar, ...]
    left_out: int


def links_data(links: Mapping[str, LinkTraffic], most: int = MOST_LINKS) -> LinkBars:
    """The load of `links` per iteration."""
    link_bars = [LinkBar(plain(name), link.bytes, link.utilization) for name, link in links.items()]
    link_bars.sort(key=lambda link_bar: -link_bar.share)
    return LinkBars(tuple(link_bars[:most]), max(0, len(link_bars) - most))


def links_figure(data: LinkBars) -> Figure:
    """One bar per link; a bottleneck has a different colour."""
    import plotly.graph_objects as go

    figure = go.Figure(
        go.Bar(
            orientation="h",
            y=[escaped(bar.name) for bar in data.bars],
            x=[100 * bar.share for bar in data.bars],
            marker={
                "color": [LIGHT.exposed if bar.share >= FULL else LIGHT.compute for bar in data.bars],
                "line": {"width": 0},
            },
            text=[format_bytes(bar.nbytes) for bar in data.bars],
            textposition="outside",
            cliponaxis=False,
            customdata=[
                f"{escaped(bar.name)}<br>{format_bytes(bar.nbytes)} per iteration, busy {format_fraction(bar.share)} "
                "of it"
                for bar in data.bars
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    )
    title = "Busy (% of the iteration)"
    figure.update_layout(**layout(title, height=90 + 24 * len(data.bars)), bargap=0.25)
    figure.update_xaxes(range=[0, 116], tickvals=[0, 20, 40, 60, 80, 100])
    figure.update_yaxes(autorange="reversed", showgrid=False)
    return figure


@dataclass(frozen=True, slots=True)
class TrafficMatrix:
    """Bytes per iteration from each worker (a row) to each other, float64[workers, workers]."""

    nbytes: FloatArray


def pairs_data(timeline: Timeline, first: Iteration, workers: int) -> TrafficMatrix:
    """The mean over the iterations from `first` on: rows, gradients, ids and parts of all-reduces."""
    sent = messages(timeline)
    sent = sent[timeline.iteration[sent] >= first]
    iterations = np.unique(timeline.iteration[sent]).size
    sums = np.zeros((workers, workers))
    np.add.at(sums, (timeline.worker[sent], timeline.peer[sent]), timeline.nbytes[sent])
    mean = sums / max(1, iterations)
    mean.setflags(write=False)
    return TrafficMatrix(mean)


def pairs_figure(data: TrafficMatrix) -> Figure:
    """One square per pair, darker for more bytes, with the number if there is space."""
    import plotly.graph_objects as go

    size = len(data.nbytes)
    unit = byte_unit(float(data.nbytes.max(initial=0.0)))
    shown = [
        [None if i == j else value / unit.size for j, value in enumerate(row)] for i, row in enumerate(data.nbytes)
    ]
    figure = go.Figure(
        go.Heatmap(
            z=shown,
            x=list(range(size)),
            y=list(range(size)),
            zmin=0,
            colorscale=[[0, LIGHT.paper], [1, LIGHT.busy]],
            colorbar={"title": {"text": unit.name}, "outlinewidth": 0, "thickness": 14, "tickfont": {"size": 12}},
            texttemplate="%{z:.3g}" if size <= 12 else None,
            textfont={"size": 12},
            customdata=[
                [f"worker {i} to worker {j}: {format_bytes(value)} per iteration" for j, value in enumerate(row)]
                for i, row in enumerate(data.nbytes)
            ],
            hovertemplate="%{customdata}<extra></extra>",
            hoverongaps=False,
            xgap=2,
            ygap=2,
        )
    )
    figure.update_layout(**layout("to worker", "from worker", height=140 + max(200, min(560, 52 * size))))
    figure.update_xaxes(showgrid=False, dtick=max(1, size // 12))
    figure.update_yaxes(showgrid=False, dtick=max(1, size // 12), autorange="reversed")
    return figure
