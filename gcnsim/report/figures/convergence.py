"""Validation accuracy against time: recorded accuracies by iteration, at the time that an iteration takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from gcnsim.core.units import format_seconds
from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.style import MOST_LINES, escaped, layout, time_unit
from gcnsim.report.palette import LIGHT, Theme, faded

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class Learning(NamedTuple):
    """A training: iterations and accuracies (shares); seconds of an iteration with their interval."""

    name: str
    points: tuple[tuple[int, float], ...]
    iteration_s: float
    low_s: float
    high_s: float


class LearningLine(NamedTuple):
    """Accuracies (shares) and the seconds at which they are reached, with the ends of the interval."""

    name: str
    iterations: tuple[int, ...]
    accuracy: tuple[float, ...]
    seconds: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Convergence:
    """Lines, at most `MOST_LINES`, and the target accuracy or None."""

    lines: tuple[LearningLine, ...]
    left_out: tuple[str, ...]
    target: float | None
    unit: str
    unit_s: float


def convergence_data(runs: Sequence[Learning], target: float | None = None) -> Convergence:
    """The lines of `runs` in order."""
    lines = []
    for run in runs[:MOST_LINES]:
        done = tuple(count for count, _ in run.points)
        shares = tuple(share for _, share in run.points)
        times = (tuple(count * item for count in done) for item in (run.iteration_s, run.low_s, run.high_s))
        lines.append(LearningLine(plain(run.name), done, shares, *times))
    unit = time_unit(max((line.seconds[-1] for line in lines if line.seconds), default=1.0))
    return Convergence(tuple(lines), tuple(plain(run.name) for run in runs[MOST_LINES:]), target, unit.name, unit.size)


def convergence_figure(data: Convergence, theme: Theme = LIGHT) -> Figure:
    """A line per training with a band for its time, and the target."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for index, line in enumerate(data.lines):
        color, dash, symbol = theme.line(index)
        figure.add_scatter(
            x=[value / data.unit_s for value in (*line.low, *line.high[::-1])],
            y=[100 * share for share in (*line.accuracy, *line.accuracy[::-1])],
            mode="lines",
            fill="toself",
            fillcolor=faded(color),
            line={"width": 0},
            hoverinfo="skip",
            showlegend=False,
        )
        rows = zip(line.iterations, line.accuracy, line.seconds, strict=True)
        figure.add_scatter(
            x=[value / data.unit_s for value in line.seconds],
            y=[100 * share for share in line.accuracy],
            name=escaped(line.name),
            mode="lines+markers",
            line={"color": color, "dash": dash, "width": 2.5},
            marker={"symbol": symbol, "size": 7},
            customdata=[
                f"{escaped(line.name)}<br>{100 * share:.2f} % after {format_seconds(seconds)}, {count:,} iterations"
                for count, share, seconds in rows
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    figure.update_layout(**layout(theme, f"Time of training ({data.unit})", "Validation accuracy (%)", height=440))
    if data.target is not None:
        figure.add_hline(y=100 * data.target, line={"color": theme.ink, "width": 1, "dash": "dot"})
    figure.update_xaxes(rangemode="tozero")
    return figure
