"""The time of an iteration by part, per method or setting, and the difference of two iterations by part.

Stacked bars have the parts, with the work that overlaps them. A bar of a difference goes to the right if B takes
longer, to the left if it takes less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.units import format_fraction, format_seconds
from gcnsim.evidence.difference import PARTS as NAMES
from gcnsim.report.answer.rows import labels_of, plain
from gcnsim.report.figures.style import PLAIN, escaped, label_lines, label_text, layout, time_unit
from gcnsim.report.palette import LIGHT
from gcnsim.results import Row, WhatIf
from gcnsim.timeline.breakdown import HIDDEN, Parts, iteration_s

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

MOST_BARS: Final = 12
"""Bars that a figure shows at first; the page reveals the others on request."""

PARTS: Final = {
    "compute": ("compute", "compute"),
    "exposed_comm": ("exposed communication", "exposed"),
    "handling": ("unpacking received rows", "line2"),
    "network": ("row messages in flight", "exposed"),
    "copies": ("packing and copies", "line0"),
    "reduce": ("all-reduce", "reduce"),
    "waiting": ("waiting for peers", "idle"),
    "exposed_sampling": ("sampling", "sampling"),
    "exposed_other": ("other", "other"),
    "optimizer": ("optimizer", "optimizer"),
    "rest": ("all else", "other"),
}
"""The name and theme colour of each part, in stacking order."""

BENEATH: Final = {
    HIDDEN: ("hidden communication (in parallel)", "exposed"),
    "sampling": ("sampling (may overlap)", "sampling"),
}
"""Overlapping work, hatched below a bar because it adds no time: its name and its theme colour."""

ROW: Final = 60
"""Pixels of a row by line of its label, which has to clear the work hidden below the row before."""

_MAIN = {"offset": -0.14, "width": 0.36}
_BENEATH = {"offset": 0.24, "width": 0.14}


class Segment(NamedTuple):
    """A part of a bar, a key of `PARTS` or `BENEATH`, and its seconds."""

    part: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Bar:
    """One iteration in seconds. parts add up to it; beneath: the overlapping work. low_s, high_s: None if unknown."""

    method: str
    setting: str
    iteration_s: float
    low_s: float | None
    high_s: float | None
    parts: tuple[Segment, ...]
    beneath: tuple[Segment, ...]
    recommended: bool = False

    def seconds(self, part: str) -> float:
        """Seconds of one part or of overlapping work; 0 if the bar has none."""
        return sum(item.seconds for item in (*self.parts, *self.beneath) if item.part == part)


@dataclass(frozen=True, slots=True)
class BreakdownData:
    """Bars in order, and the unit of their axis (`unit_s` seconds)."""

    bars: tuple[Bar, ...]
    unit: str
    unit_s: float

    @property
    def parts(self) -> list[str]:
        """The parts of any bar, in stacking order."""
        return [name for name in PARTS if any(bar.seconds(name) > 0 for bar in self.bars)]

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """The name, theme colour and hatching of each part and of overlapping work."""
        filled = [(*PARTS[part], False) for part in self.parts]
        return filled + [(*BENEATH[part], True) for part in self.beneath]

    @property
    def beneath(self) -> list[str]:
        """The overlapping work of any bar."""
        return [name for name in BENEATH if any(bar.seconds(name) > 0 for bar in self.bars)]


def breakdown_data(answer: WhatIf, most: int | None = None) -> BreakdownData:
    """The breakdown of the rows of `answer`, fastest first; most: the rows, including the recommended ones."""
    return rows_data(answer.fastest_first, most)


def rows_data(rows: Sequence[Row], most: int | None = None) -> BreakdownData:
    """The breakdown of rows in order; most: as in `breakdown_data`."""
    bars = [_of_row(row, *label) for row, label in zip(rows, labels_of(rows), strict=True)]
    if most is not None and len(bars) > most:
        spare = most - sum(bar.recommended for bar in bars)
        first = [bar for bar in bars if not bar.recommended][:spare]
        bars = [bar for bar in bars if bar.recommended or bar in first]
    return _drawn(bars)


def _of_row(row: Row, method: str, setting: str) -> Bar:
    return Bar(
        plain(method),
        plain(setting or ", ".join(row.knobs)),
        row.iteration_s,
        row.iteration_s_low,
        row.iteration_s_high,
        tuple(Segment(name, getattr(row, f"{name}_s")) for name in ("compute", "exposed_comm", "exposed_other")),
        tuple(Segment(name, getattr(row, f"{name}_s")) for name in BENEATH),
        row.recommended,
    )


def parts_data(named: Sequence[tuple[str, Parts]]) -> BreakdownData:
    """The breakdown of named workers or settings, with waits by cause."""
    bars = [
        Bar(
            plain(name),
            "",
            iteration_s(parts),
            None,
            None,
            tuple(Segment(part, getattr(parts, f"{part}_s")) for part in PARTS if hasattr(parts, f"{part}_s")),
            (Segment(HIDDEN, parts.hidden_comm_s),),
        )
        for name, parts in named
    ]
    return _drawn(bars)


def sides_data(payload: Mapping[str, Any]) -> BreakdownData:
    """The breakdown of both sides of a comparison (`gcnsim.compare/1`), by its finest parts."""
    sums = {part["within"] for part in payload["parts"]}
    finest = [part for part in payload["parts"] if part["part"] not in sums]
    bars = [
        Bar(
            key.upper(),
            plain(payload[key]["label"]),
            payload["iteration_s"][key],
            payload[key]["iteration_s_low"],
            payload[key]["iteration_s_high"],
            tuple(Segment(part["part"].removesuffix("_s"), part[key]) for part in finest),
            tuple(Segment(entry["name"].removesuffix("_s"), entry[key]) for entry in payload["beneath"]),
        )
        for key in "ab"
    ]
    return _drawn(bars)


def _drawn(bars: Sequence[Bar]) -> BreakdownData:
    return BreakdownData(tuple(bars), *time_unit(max((bar.iteration_s for bar in bars), default=0.0)))


def breakdown_drawing(data: BreakdownData) -> dict[str, Any]:
    """The content of `breakdown_figure` as plain data.

    Plotly validates each value of a figure, which takes longer than everything else.
    """
    traces = []
    reached = [0.0] * len(data.bars)
    for part in data.parts:
        seconds = [bar.seconds(part) for bar in data.bars]
        name, color = PARTS[part]
        filled = {"color": LIGHT.color(color), "line": {"width": 0}}
        traces.append(_bars(data, name, seconds, reached, filled, _MAIN))
        reached = [sum(pair) for pair in zip(reached, seconds, strict=True)]
    start = [0.0] * len(data.bars)
    for index, part in enumerate(data.beneath):
        seconds = [bar.seconds(part) for bar in data.bars]
        name, color = BENEATH[part]
        own = _BENEATH | {"offset": _BENEATH["offset"] + 0.15 * index}
        traces.append(_bars(data, name, seconds, start, _hatched(getattr(LIGHT, color)), own))
    rows, lines = len(data.bars), max((len(label_lines(_head(bar), bar.setting)) for bar in data.bars), default=1)
    drawing = layout(f"Time per iteration ({data.unit})", height=64 + round(ROW * lines * (rows + 0.2)))
    drawing["xaxis"] |= {"rangemode": "tozero"}
    drawing["yaxis"] |= {"range": [rows - 0.45, -0.65], "showticklabels": False, "showgrid": False}
    labels = [_above(index, bar) for index, bar in enumerate(data.bars)]
    more = PLAIN | {"barmode": "overlay", **({"annotations": labels} if labels else {})}
    return {"data": [*traces, _whiskers(data)], "layout": drawing | more}


def breakdown_figure(data: BreakdownData) -> Figure:
    """Stacked bars of `data`; overlapping work is hatched below each bar because it adds no time."""
    import plotly.graph_objects as go

    return go.Figure(breakdown_drawing(data))


def _hatched(color: str) -> dict[str, Any]:
    return {
        "color": LIGHT.hatched,
        "line": {"color": color, "width": 1},
        "pattern": {"shape": "/", "fgcolor": color, "size": 6, "solidity": 0.25},
    }


def _above(place: int, bar: Bar) -> dict[str, Any]:
    """The label of a bar, above its left end so that the bar keeps the full width."""
    return {
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": place - 0.16,
        "yanchor": "bottom",
        "text": _label(bar),
        "showarrow": False,
        "align": "left",
        "font": {"size": 13, "color": LIGHT.recommended if bar.recommended else LIGHT.ink},
    }


def _label(bar: Bar) -> str:
    name = f"<b>{escaped(bar.method)}</b> (recommended)" if bar.recommended else escaped(bar.method)
    return label_text(name, _head(bar), bar.setting)


def _head(bar: Bar) -> str:
    return f"{bar.method} (recommended)" if bar.recommended else bar.method


def _bars(
    data: BreakdownData,
    name: str,
    seconds: Sequence[float],
    base: Sequence[float],
    marker: dict[str, Any],
    place: dict[str, float],
) -> dict[str, Any]:
    hover = [
        f"{escaped(bar.method)} {escaped(bar.setting)}<br>{name}: {format_seconds(value)}"
        f", {format_fraction(value / bar.iteration_s if bar.iteration_s else 0.0)} of {format_seconds(bar.iteration_s)}"
        for bar, value in zip(data.bars, seconds, strict=True)
    ]
    return {
        "type": "bar",
        "name": name,
        "orientation": "h",
        "y": list(range(len(data.bars))),
        "x": [value / data.unit_s for value in seconds],
        "base": [value / data.unit_s for value in base],
        "marker": marker,
        "customdata": hover,
        "hovertemplate": "%{customdata}<extra></extra>",
        **place,
    }


def _whiskers(data: BreakdownData) -> dict[str, Any]:
    """The interval of the iteration time as an error bar at the end of the main bar."""
    above = [0.0 if bar.high_s is None else bar.high_s - bar.iteration_s for bar in data.bars]
    below = [0.0 if bar.low_s is None else bar.iteration_s - bar.low_s for bar in data.bars]
    return {
        "type": "bar",
        "orientation": "h",
        "y": list(range(len(data.bars))),
        "x": [bar.iteration_s / data.unit_s for bar in data.bars],
        "base": [0.0] * len(data.bars),
        "marker": {"color": "rgba(0,0,0,0)", "line": {"width": 0}},
        "error_x": {
            "type": "data",
            "array": [value / data.unit_s for value in above],
            "arrayminus": [value / data.unit_s for value in below],
            "color": LIGHT.ink,
            "thickness": 1.5,
            "width": 5,
            "visible": any(above) or any(below),
        },
        "showlegend": False,
        "hoverinfo": "skip",
        **_MAIN,
    }


LEAST: Final = 1e-3
"""The least share of the longer iteration for which a part's difference is drawn."""


class PartChange(NamedTuple):
    """A part (a key of `PARTS` of a breakdown): its name, seconds in A and in B, and their difference B - A."""

    part: str
    name: str
    a_s: float
    b_s: float
    seconds: float


@dataclass(frozen=True, slots=True)
class DifferenceData:
    """The changed parts, largest change first; still: names of the others. whole_s: the total difference."""

    changes: tuple[PartChange, ...]
    still: tuple[str, ...]
    whole_s: float
    per: str
    unit: str
    unit_s: float


def difference_data(payload: Mapping[str, Any]) -> DifferenceData:
    """The finest parts of a comparison (`gcnsim.compare/1`)."""
    sums = {part["within"] for part in payload["parts"]}
    changes = [
        PartChange(part["part"].removesuffix("_s"), NAMES[part["part"]], part["a"], part["b"], part["difference"])
        for part in payload["parts"]
        if part["part"] not in sums
    ]
    whole = payload["iteration_s"]
    least = LEAST * max(whole["a"], whole["b"])
    changed = sorted(
        (change for change in changes if abs(change.seconds) >= least), key=lambda change: -abs(change.seconds)
    )
    still = tuple(change.name for change in changes if abs(change.seconds) < least)
    unit = time_unit(max([abs(item.seconds) for item in changed], default=0.0))
    return DifferenceData(tuple(changed), still, whole["difference"], payload["per"], unit.name, unit.size)


def difference_figure(data: DifferenceData) -> Figure:
    """One bar per part from zero, and one for the whole iteration below."""
    import plotly.graph_objects as go

    figure = go.Figure()
    rows = [
        (change.name, change.seconds, LIGHT.color(PARTS[change.part][1]), _hover(change, data.per))
        for change in data.changes
    ]
    whole = f"{data.per}: {_signed(data.whole_s)}"
    rows.append((f"the whole {data.per}", data.whole_s, LIGHT.ink, whole))
    for index, (name, seconds, color, hover) in enumerate(rows):
        figure.add_bar(
            orientation="h", y=[index], x=[seconds / data.unit_s], width=0.42, offset=-0.02,
            marker={"color": color, "line": {"width": 0}}, name=name,
            customdata=[hover], hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=index - 0.08, yanchor="bottom", showarrow=False,
            text=f"{name} <span style='color:{LIGHT.muted};font-size:12px'>{_signed(seconds)}</span>",
            font={"size": 13},
        )  # fmt: skip
    title = f"B minus A, time per {data.per} ({data.unit})"
    figure.update_layout(**layout(title, height=80 + 46 * len(rows)), barmode="overlay")
    figure.add_vline(x=0, line={"color": LIGHT.ink, "width": 1.5})
    figure.update_yaxes(range=[len(rows) - 0.4, -0.7], showticklabels=False, showgrid=False)
    return figure


def _hover(change: PartChange, per: str) -> str:
    return (
        f"{change.name}<br>A {format_seconds(change.a_s)}, B {format_seconds(change.b_s)} per {per}"
        f"<br>{_signed(change.seconds)}"
    )


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{format_seconds(abs(seconds))}"
