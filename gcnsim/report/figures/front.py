"""Time against cost of the options of a recommendation: its Pareto front, the choice and the runner-up."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.style import escaped, layout, time_unit
from gcnsim.report.palette import LIGHT, Theme
from gcnsim.results import Advice, PointReport
from gcnsim.units import format_seconds, range_text

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class Option(NamedTuple):
    """A setting on a machine: seconds and cost with their 90 % intervals, None without; on_front: not dominated."""

    name: str
    seconds: float
    seconds_low: float | None
    seconds_high: float | None
    cost: float
    cost_low: float | None
    cost_high: float | None
    on_front: bool
    chosen: bool


@dataclass(frozen=True, slots=True)
class Front:
    """Options with a price, fastest first. compared: what times and costs refer to; unpriced: options without a price.

    times: the factor on costs for display; of: the unit of the resulting costs.
    """

    options: tuple[Option, ...]
    compared: str
    currency: str
    times: float
    of: str
    unpriced: int
    unit: str
    unit_s: float


def front_data(advice: Advice) -> Front:
    """The front of `advice` with its choice."""
    points = {item.name: item for item in (*advice.front, advice.choice)}
    priced = [point for point in points.values() if point.cost is not None]
    options = tuple(
        _option(item, item.name == advice.choice.name) for item in sorted(priced, key=lambda one: one.seconds)
    )
    training = advice.choice.iterations > advice.choice.row.iterations_per_epoch
    unit = time_unit(max((option.seconds for option in options), default=1.0))
    times, of = (1.0, "a training") if training else (1000.0, f"1,000 times {advice.compared}")
    unpriced = len(points) - len(priced)
    return Front(options, advice.compared, advice.goal.currency, times, of, unpriced, unit.name, unit.size)


def _option(point: PointReport, chosen: bool) -> Option:
    times = (point.seconds, point.seconds_low, point.seconds_high)
    costs = (point.cost or 0.0, point.cost_low, point.cost_high)
    return Option(plain(point.name), *times, *costs, point.on_front, chosen)


def front_figure(data: Front, theme: Theme = LIGHT) -> Figure:
    """Options with their intervals, the front as steps, the choice highlighted."""
    figure = _empty(data, theme)
    steps = [option for option in data.options if option.on_front]
    figure.add_scatter(
        x=[step.seconds / data.unit_s for step in steps],
        y=[step.cost * data.times for step in steps],
        mode="lines",
        line={"color": theme.compute, "width": 2, "shape": "hv"},
        name="front",
        hoverinfo="skip",
    )
    kinds = (
        ("on the front", [step for step in steps if not step.chosen], theme.compute, "circle"),
        (
            "no clear difference from it",
            [option for option in data.options if not (option.on_front or option.chosen)],
            theme.other,
            "diamond",
        ),
        ("recommended", [option for option in data.options if option.chosen], theme.recommended, "star"),
    )
    for name, found, color, symbol in kinds:
        if found:
            figure.add_scatter(**_points(data, name, found, color, symbol))
    return figure


def _empty(data: Front, theme: Theme) -> Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    y_title = f"Cost of {data.of} ({data.currency})"
    figure.update_layout(**layout(theme, f"Time of {data.compared} ({data.unit})", y_title, height=440))
    figure.update_xaxes(rangemode="tozero")
    figure.update_yaxes(rangemode="tozero")
    return figure


def _points(data: Front, name: str, options: list[Option], color: str, symbol: str) -> dict[str, Any]:
    def bars(ends: list[tuple[float, float | None, float | None]], scale: float) -> dict[str, Any]:
        above = [0.0 if high is None else (high - value) * scale for value, _, high in ends]
        below = [0.0 if low is None else (value - low) * scale for value, low, _ in ends]
        return {"type": "data", "array": above, "arrayminus": below, "thickness": 1, "width": 3, "color": color}

    return {
        "x": [option.seconds / data.unit_s for option in options],
        "y": [option.cost * data.times for option in options],
        "error_x": bars(
            [(option.seconds, option.seconds_low, option.seconds_high) for option in options], 1 / data.unit_s
        ),
        "error_y": bars([(option.cost, option.cost_low, option.cost_high) for option in options], data.times),
        "mode": "markers",
        "name": name,
        "marker": {"color": color, "symbol": symbol, "size": 15 if symbol == "star" else 9},
        "customdata": [
            f"{escaped(option.name)}<br>{format_seconds(option.seconds)}"
            f"{range_text(option.seconds_low, option.seconds_high)}"
            f"<br>{option.cost * data.times:.3g} {data.currency} for {data.of}"
            f"{range_text(option.cost_low, option.cost_high, lambda cost: f'{cost * data.times:.3g}')}"
            for option in options
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
