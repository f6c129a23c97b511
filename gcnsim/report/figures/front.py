"""Time against cost of the options of a recommendation: its Pareto front, the choice and the runner-up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.units import format_seconds, range_text
from gcnsim.planning.capacity_goal import percent
from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.style import escaped, layout, time_unit
from gcnsim.report.palette import LIGHT, faded
from gcnsim.report.recommended import shown_points, uncertain
from gcnsim.results import Advice, PointReport

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


class Option(NamedTuple):
    """A setting on a machine: seconds and cost with their 90 % intervals, None without; on_front: nothing beats it.

    number: its place in the table of options, None of one that is not there. chance: of meeting the target, None
    without one.
    """

    number: int | None
    name: str
    seconds: float
    seconds_low: float | None
    seconds_high: float | None
    cost: float
    cost_low: float | None
    cost_high: float | None
    chance: float | None
    on_front: bool
    chosen: bool


@dataclass(frozen=True, slots=True)
class Front:
    """Options with a price, the fastest first. compared: what times and costs are of; unpriced: options without one.

    times: by how much costs are multiplied to be read; of: what that makes them costs of. target_s: the longest
    allowed time, None without a target.
    """

    options: tuple[Option, ...]
    compared: str
    currency: str
    times: float
    of: str
    unpriced: int
    unit: str
    unit_s: float
    target_s: float | None

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """Names of the kinds of points, their colours in a theme, and that they are not hatched."""
        return [(kind.name, kind.color, False) for kind in KINDS if any(map(kind.holds, self.options))]


class Kind(NamedTuple):
    """Points of one mark. color: of a theme."""

    name: str
    color: str
    symbol: str
    holds: Callable[[Option], bool]


KINDS: Final = (
    Kind("on the front", "compute", "circle", lambda option: option.on_front and not option.chosen),
    Kind(
        "no clear difference from a better one",
        "other",
        "diamond",
        lambda option: not (option.on_front or option.chosen),
    ),
    Kind("recommended", "recommended", "star", lambda option: option.chosen),
)
"""The recommended one is drawn last, above all others."""


def front_data(advice: Advice) -> Front:
    """The front of `advice` with its choice."""
    goal, names = advice.goal, {item.name for item in (*advice.front, advice.choice)}
    numbers = {point.name: number for number, point in enumerate(shown_points(advice)[0], 1)}
    points = [point for point in advice.rows if point.name in names]
    options = tuple(
        _option(numbers.get(point.name), point, point.name == advice.choice.name, uncertain(advice))
        for point in points
        if point.cost is not None
    )
    unit = time_unit(max((option.seconds for option in options), default=1.0))
    times, of = OF[advice.compared]
    target = {"an iteration": goal.iteration_s, "an epoch": goal.epoch_s, "a training": goal.training_s}
    return Front(
        options,
        advice.compared,
        goal.currency,
        times,
        of,
        len(points) - len(options),
        unit.name,
        unit.size,
        target[advice.compared],
    )


ROOM: Final = 1.25
"""Length of an axis, in its largest value."""

NEAR: Final = 0.05
"""Points nearer to each other than this share of both axes share a label."""

OF: Final = {
    "an iteration": (1000.0, "1,000 iterations"),
    "an epoch": (1000.0, "1,000 epochs"),
    "a training": (1.0, "a training"),
}
"""Per what is compared: by how much costs are multiplied to be read, and what that is of."""


def _option(number: int | None, point: PointReport, chosen: bool, chances: bool) -> Option:
    times = (point.seconds, point.seconds_low, point.seconds_high)
    costs = (point.cost or 0.0, point.cost_low, point.cost_high)
    return Option(number, plain(point.name), *times, *costs, point.chance if chances else None, point.on_front, chosen)


def front_figure(data: Front) -> Figure:
    """Options with their intervals, the front as steps, the choice highlighted."""
    figure = _empty(data)
    steps = [option for option in data.options if option.on_front]
    figure.add_scatter(
        x=[step.seconds / data.unit_s for step in steps],
        y=[step.cost * data.times for step in steps],
        mode="lines",
        line={"color": LIGHT.compute, "width": 2, "shape": "hv"},
        name="front",
        hoverinfo="skip",
    )
    labels = _labels(data)
    for kind in KINDS:
        found = [option for option in data.options if kind.holds(option)]
        if found:
            figure.add_scatter(**_points(data, kind, found, labels))
    if data.target_s is not None:
        at = data.target_s / data.unit_s
        figure.add_vline(x=at, line={"color": LIGHT.ink, "width": 1.5, "dash": "dot"})
        figure.add_annotation(
            x=at, y=1, yref="paper", xanchor="right", yanchor="top", xshift=-4, showarrow=False, bgcolor=LIGHT.paper,
            text=f"target: {format_seconds(data.target_s)}", font={"size": 13, "color": LIGHT.ink},
        )  # fmt: skip
    return figure


def _empty(data: Front) -> Figure:
    import plotly.graph_objects as go

    figure = go.Figure()
    y_title = f"Cost of {data.of} ({data.currency})"
    figure.update_layout(**layout(f"Time of {data.compared} ({data.unit})", y_title, height=440))
    # Points are legible where axes end beyond them and the target: far ends of intervals are in the hover texts.
    longest = max([*(option.seconds for option in data.options), data.target_s or 0.0])
    figure.update_xaxes(range=[0, ROOM * longest / data.unit_s])
    figure.update_yaxes(range=[0, ROOM * data.times * max(option.cost for option in data.options)])
    return figure


def _labels(data: Front) -> dict[int, str]:
    """What stands beside the points with a number: the first of those at one place has all of their numbers."""
    places: list[tuple[Option, list[int]]] = []
    room = (
        NEAR * max((option.seconds for option in data.options), default=0.0),
        NEAR * max((option.cost for option in data.options), default=0.0),
    )
    for option in data.options:
        if option.number is None:
            continue
        for first, numbers in places:
            if abs(option.seconds - first.seconds) < room[0] and abs(option.cost - first.cost) < room[1]:
                numbers.append(option.number)
                break
        else:
            places.append((option, [option.number]))
    return {numbers[0]: _joined(numbers) for _, numbers in places}


def _joined(numbers: list[int]) -> str:
    """Rising numbers as text, several that follow each other by their ends."""
    if len(numbers) > 2 and numbers[-1] - numbers[0] == len(numbers) - 1:
        return f"{numbers[0]} to {numbers[-1]}"
    return ", ".join(map(str, numbers))


def _points(data: Front, kind: Kind, found: list[Option], labels: dict[int, str]) -> dict[str, Any]:
    color = LIGHT.color(kind.color)

    def reach(option: Option, end: float | None) -> float:
        return 0.0 if end is None else abs(end - option.seconds) / data.unit_s

    return {
        "x": [option.seconds / data.unit_s for option in found],
        "y": [option.cost * data.times for option in found],
        # Of the time alone: a cost is the time's multiple, so its interval says the same.
        "error_x": {
            "type": "data",
            "array": [reach(option, option.seconds_high) for option in found],
            "arrayminus": [reach(option, option.seconds_low) for option in found],
            "thickness": 1,
            "width": 0,
            "color": faded(color, 0.5),
        },
        "mode": "markers+text",
        "text": [labels.get(option.number or 0, "") for option in found],
        "textposition": "top right",
        "textfont": {"size": 13, "color": LIGHT.ink},
        "name": kind.name,
        "marker": {"color": color, "symbol": kind.symbol, "size": 15 if kind.symbol == "star" else 9},
        "customdata": [
            f"{f'{option.number}: ' if option.number else ''}{escaped(option.name)}<br>{format_seconds(option.seconds)}"
            f"{range_text(option.seconds_low, option.seconds_high)}"
            f"<br>{option.cost * data.times:.3g} {data.currency} for {data.of}"
            f"{range_text(option.cost_low, option.cost_high, lambda cost: f'{cost * data.times:.3g}')}"
            f"{'' if option.chance is None else f'<br>chance of meeting the target: {percent(option.chance)}'}"
            for option in found
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    }
