"""Validation accuracy against time and cost: who is fastest by iteration is often not who is done first.

Recorded accuracies by iteration stand at the time that an iteration takes on each row's machine; those of two recorded
runs that are compared, at their own times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gcnsim.core.units import format_seconds
from gcnsim.planning.capacity_goal import money
from gcnsim.report.answer.rows import plain, row_labels
from gcnsim.report.figures.style import MOST_LINES, escaped, layout, time_unit
from gcnsim.report.palette import LIGHT, faded
from gcnsim.results import WhatIf

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class Learning(NamedTuple):
    """A training: iterations and accuracies (shares); seconds of an iteration with their interval; the price of a
    second, None if unknown."""

    name: str
    points: tuple[tuple[int, float], ...]
    iteration_s: float
    low_s: float
    high_s: float
    price: float | None = None
    recommended: bool = False


class LearningLine(NamedTuple):
    """Accuracies (shares) and the seconds at which they are reached, with the ends of the interval."""

    name: str
    iterations: tuple[int, ...]
    accuracy: tuple[float, ...]
    seconds: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    price: float | None = None
    recommended: bool = False


@dataclass(frozen=True, slots=True)
class Convergence:
    """Lines, at most `MOST_LINES`, and the target accuracy or None."""

    lines: tuple[LearningLine, ...]
    left_out: tuple[str, ...]
    target: float | None
    unit: str
    unit_s: float
    currency: str = ""

    @property
    def priced(self) -> bool:
        """Whether the cost of a line is known."""
        return any(line.price is not None for line in self.lines)

    def styled(self) -> list[tuple[LearningLine, tuple[str, str, str]]]:
        """Each line with its colour, dashes and marker."""
        return [(line, LIGHT.line(place, line.recommended)) for place, line in enumerate(self.lines)]


def convergence_of(answer: WhatIf) -> Convergence | None:
    """The recorded accuracies of every row that runs tell of, on its own machine; None without one."""
    target = answer.target
    if target is None:
        return None
    apart = target.recommended is not None
    rows = [*answer.results, answer.recommendation.row]
    done = [*target.rows, *([] if target.recommended is None else [target.recommended])]
    found = []
    for label, row, reached in zip(row_labels(answer, apart=apart), rows, done, strict=False):
        times = (row.iteration_s, row.iteration_s_low or row.iteration_s, row.iteration_s_high or row.iteration_s)
        price = None if row.cost_per_hour is None else row.cost_per_hour / 3600.0
        for curve in reached.curves or ():
            name = label if len(reached.curves or ()) == 1 else f"{label}, {curve.run}"
            points = tuple(zip(curve.iterations, curve.accuracy, strict=True))
            found.append(Learning(name, points, *times, price, row.recommended))
    currency = next((row.currency for row in rows if row.currency), "")
    return convergence_data(found, target.accuracy, currency) if found else None


def convergence_of_runs(payload: Mapping[str, Any]) -> Convergence | None:
    """The accuracies of the recorded runs of `gcnsim.compare/1` at their own times; None without any."""
    found = []
    for side, points in payload["accuracy"].items():
        if points:
            done, seconds, shares = zip(*points, strict=True)
            name = plain(f"{side.upper()}: {payload[side]['label']}")
            found.append(LearningLine(name, done, shares, seconds, seconds, seconds))
    return _in_one_unit(found, (), None, "") if found else None


def convergence_data(runs: Sequence[Learning], target: float | None = None, currency: str = "") -> Convergence:
    """The lines of `runs` in order."""
    lines = []
    for run in runs[:MOST_LINES]:
        done = tuple(count for count, _ in run.points)
        shares = tuple(share for _, share in run.points)
        seconds, low, high = (
            tuple(count * item for count in done) for item in (run.iteration_s, run.low_s, run.high_s)
        )
        lines.append(LearningLine(plain(run.name), done, shares, seconds, low, high, run.price, run.recommended))
    return _in_one_unit(lines, [plain(run.name) for run in runs[MOST_LINES:]], target, currency)


def _in_one_unit(
    lines: Sequence[LearningLine], left_out: Sequence[str], target: float | None, currency: str
) -> Convergence:
    unit = time_unit(max((line.seconds[-1] for line in lines if line.seconds), default=1.0))
    return Convergence(tuple(lines), tuple(left_out), target, unit.name, unit.size, currency)


def convergence_figure(data: Convergence, *, cost: bool = False) -> Figure:
    """A line per training with a band for its time, and the target; cost: against cost, of those with a price."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for line, (color, dash, symbol) in data.styled():
        scale = line.price if cost else 1.0 / data.unit_s
        if scale is None:
            continue
        figure.add_scatter(
            x=[value * scale for value in (*line.low, *line.high[::-1])],
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
            x=[value * scale for value in line.seconds],
            y=[100 * share for share in line.accuracy],
            name=escaped(line.name),
            mode="lines+markers",
            line={"color": color, "dash": dash, "width": 2.5},
            marker={"symbol": symbol, "size": 7},
            customdata=[
                f"{escaped(line.name)}<br>{100 * share:.2f} % after {format_seconds(seconds)}, {count:,} iterations"
                f"{'' if line.price is None else f', {money(line.price * seconds)} {data.currency}'}"
                for count, share, seconds in rows
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
    title = f"Cost of training ({data.currency})" if cost else f"Time of training ({data.unit})"
    figure.update_layout(**layout(title, "Validation accuracy (%)", height=440))
    if data.target is not None:
        figure.add_hline(y=100 * data.target, line={"color": LIGHT.ink, "width": 1, "dash": "dot"})
    figure.update_xaxes(rangemode="tozero")
    return figure
