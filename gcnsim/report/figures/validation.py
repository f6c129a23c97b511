"""Figures of a validation: predicted against measured iterations, and the errors by configuration.

The first shows intervals and the spread of repeated runs. The second shows the error of each run and the mean.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.units import format_seconds
from gcnsim.report.answer.rows import plain
from gcnsim.report.figures.style import Ticks, escaped, label_text, layout, log_ticks, places_of, time_unit
from gcnsim.report.palette import LIGHT

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


SPAN: Final = 5.0
"""An axis of few runs ends at this many times its beginning: it has two marks at least."""


class ValidatedRun(NamedTuple):
    """A run in seconds. low_s, high_s: the predicted interval; least_s, most_s: the range of repeats."""

    setting: str
    configuration: str
    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    least_s: float
    most_s: float
    covered: bool


@dataclass(frozen=True, slots=True)
class Validation:
    """The runs, the ends of the diagonal (seconds), the unit of both axes and their ticks."""

    runs: tuple[ValidatedRun, ...]
    ends: tuple[float, float]
    unit: str
    unit_s: float
    ticks: Ticks

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """Names of the kinds of runs, their colours in a theme, and that they are not hatched."""
        return _legend({run.covered for run in self.runs})


def validation_data(payload: Mapping[str, Any]) -> Validation:
    """The runs of a payload of `gcnsim.validation/1`."""
    rows = payload["rows"]
    repeats: dict[tuple[str, str], list[float]] = {}
    for row in rows:
        repeats.setdefault((row["setting"], row["configuration"]), []).append(row["measured_s"])
    runs = []
    for row in rows:
        same = repeats[row["setting"], row["configuration"]]
        measured, predicted, low, high = (row[key] for key in ("measured_s", "predicted_s", "low_s", "high_s"))
        names = plain(row["setting"]), plain(row["configuration"])
        runs.append(ValidatedRun(*names, measured, predicted, low, high, min(same), max(same), row["covered"]))
    # An interval that reaches down to nothing has no place on a logarithmic axis.
    times = [time for run in runs for time in (run.measured_s, run.predicted_s, run.low_s, run.high_s) if time]
    low, high = _widened(min(times), max(times))
    unit = time_unit(high)
    return Validation(tuple(runs), (low, high), unit.name, unit.size, log_ticks(low, high, unit.size))


def _widened(low: float, high: float) -> tuple[float, float]:
    """The ends of an axis with two marks at least, also where there is one run."""
    if len(log_ticks(low, high).at) > 1:
        return low, high
    room = (SPAN * low / high) ** 0.5
    return low / room, high * room


def validation_figure(data: Validation) -> Figure:
    """One point per run on logarithmic axes; points on the dotted line are predicted exactly."""
    import plotly.graph_objects as go

    ends = [end / data.unit_s for end in data.ends]
    figure = go.Figure()
    line = {"color": LIGHT.other, "dash": "dot"}
    figure.add_scatter(x=ends, y=ends, mode="lines", line=line, name="exact", hoverinfo="skip")
    for covered, (name, color, symbol) in MARKS.items():
        found = [run for run in data.runs if run.covered is covered]
        if not found:
            continue
        figure.add_scatter(
            x=[run.measured_s / data.unit_s for run in found],
            y=[run.predicted_s / data.unit_s for run in found],
            mode="markers",
            name=f"{name} ({len(found)})",
            marker={"color": LIGHT.color(color), "symbol": symbol, "size": 8},
            error_y=_bars([_reach(run) for run in found], data.unit_s, LIGHT.color(color)),
            error_x=_bars(
                [(run.most_s - run.measured_s, run.measured_s - run.least_s) for run in found],
                data.unit_s,
                LIGHT.color(color),
            ),
            customdata=[_hover(run) for run in found],
            hovertemplate="%{customdata}<extra></extra>",
        )
    titles = f"Measured ({data.unit}, log scale)", f"Predicted ({data.unit}, log scale)"
    figure.update_layout(**layout(*titles, height=640))
    marks = {"type": "log", "tickvals": [at / data.unit_s for at in data.ticks.at], "ticktext": data.ticks.text}
    figure.update_xaxes(**marks)
    figure.update_yaxes(**marks)
    return figure


MARKS: Final[Mapping[bool, tuple[str, str, str]]] = {
    True: ("within its interval", "compute", "circle"),
    False: ("outside its interval", "exposed", "x"),
}
"""Name, colour of a theme and symbol of runs by whether their interval holds the measurement."""


def _legend(kinds: Collection[bool]) -> list[tuple[str, str, bool]]:
    return [(name, color, False) for covered, (name, color, _) in MARKS.items() if covered in kinds]


def _reach(run: ValidatedRun) -> tuple[float, float]:
    """How far the interval reaches above and below the prediction, in seconds."""
    return run.high_s - run.predicted_s, run.predicted_s - run.low_s


def _bars(ends: list[tuple[float, float]], unit_s: float, color: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [above / unit_s for above, _ in ends],
        "arrayminus": [below / unit_s for _, below in ends],
        "thickness": 1,
        "color": color,
    }


def _hover(run: ValidatedRun) -> str:
    measured, predicted = format_seconds(run.measured_s), format_seconds(run.predicted_s)
    interval = f" [{format_seconds(run.low_s)}, {format_seconds(run.high_s)}]"
    spread = (
        f" (repeats {format_seconds(run.least_s)} to {format_seconds(run.most_s)})" if run.least_s < run.most_s else ""
    )
    return (
        f"{escaped(run.setting)}<br>{escaped(run.configuration)}<br>measured {measured}{spread}"
        f"<br>predicted {predicted}{interval}"
    )


BELOW: Final = 24
"""Pixels of a row below its label: the bar, and space."""

MOST_SHOWN: Final = 24
"""The most configurations drawn, worst first."""


class Setting(NamedTuple):
    """The runs of one configuration. errors: (predicted - measured) / measured of each run."""

    setting: str
    configuration: str
    errors: tuple[float, ...]
    covered: tuple[bool, ...]

    @property
    def mean(self) -> float:
        """The mean of their errors."""
        return fmean(self.errors)


@dataclass(frozen=True, slots=True)
class Errors:
    """Configurations by falling mean error. left_out: the number of others."""

    judged: tuple[Setting, ...]
    left_out: int

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """Names of the kinds of runs, their colours in a theme, and that they are not hatched."""
        return _legend({covered for setting in self.judged for covered in setting.covered})


def errors_data(payload: Mapping[str, Any]) -> Errors:
    """The configurations of a payload of `gcnsim.validation/1`."""
    held: dict[tuple[str, str], list[tuple[float, bool]]] = {}
    for row in payload["rows"]:
        held.setdefault((row["setting"], row["configuration"]), []).append((row["error"], row["covered"]))
    every = [
        Setting(plain(setting), plain(configuration), *map(tuple, zip(*found, strict=True)))
        for (setting, configuration), found in held.items()
    ]
    every.sort(key=lambda setting: -abs(setting.mean))
    return Errors(tuple(every[:MOST_SHOWN]), max(0, len(every) - MOST_SHOWN))


def errors_figure(data: Errors) -> Figure:
    """One row per configuration: a bar to the mean error, a mark per run, another one if its interval misses."""
    import plotly.graph_objects as go

    figure, names = go.Figure(), [(f"{100 * setting.mean:+.1f} %", _named(setting)) for setting in data.judged]
    places = places_of(names, BELOW)
    for setting, place, label in zip(data.judged, places[1:], names, strict=True):
        text = f"{escaped(setting.setting)}<br>{escaped(setting.configuration)}<br>mean {100 * setting.mean:+.1f} %"
        figure.add_bar(
            orientation="h", y=[place - BELOW], x=[100 * setting.mean], width=14, offset=1, customdata=[text],
            marker={"color": LIGHT.idle, "line": {"width": 0}}, hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=place - BELOW - 2, yanchor="bottom", showarrow=False,
            text=label_text(label[0], *label), align="left", font={"size": 13},
        )  # fmt: skip
    for covered, (name, color, symbol) in MARKS.items():
        marks = [
            (place - BELOW + 8, setting, error)
            for setting, place in zip(data.judged, places[1:], strict=True)
            for error, inside in zip(setting.errors, setting.covered, strict=True)
            if inside is covered
        ]
        if not marks:
            continue
        figure.add_scatter(
            x=[100 * error for _, _, error in marks], y=[place for place, _, _ in marks], mode="markers",
            marker={"color": LIGHT.color(color), "symbol": symbol, "size": 9},
            name=name,
            customdata=[f"{escaped(item.setting)}<br>{escaped(item.configuration)}<br>{100 * error:+.1f} %"
                        for _, item, error in marks],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    drawing = layout("Predicted less measured (%)", height=80 + places[-1])
    figure.update_layout(**drawing, barmode="overlay")
    figure.add_vline(x=0, line={"color": LIGHT.ink, "width": 1.5})
    figure.update_yaxes(range=[places[-1], 0], showticklabels=False, showgrid=False)
    return figure


def _named(setting: Setting) -> str:
    """A configuration with its graph."""
    return f"{setting.setting.partition(',')[0]}: {setting.configuration}"
