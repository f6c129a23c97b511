"""The effect of each assumption on the recommended setting's time, from the low to the high end of its range."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, NamedTuple

from gcnsim.core.terminal import UNLIMITED, aligned
from gcnsim.core.units import format_seconds
from gcnsim.report.answer.layout import fold
from gcnsim.report.answer.rows import plain, range_of
from gcnsim.report.figures.style import escaped, label_text, layout, places_of, time_unit
from gcnsim.report.palette import LIGHT
from gcnsim.results import Advice, WhatIf

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

ROOMY = 90
"""The characters of a line with enough space for every column."""

THICK, SPACE = 17, 7
"""Pixels of a bar of the figure, and below it."""

MOST_BARS = 12
"""Of the figure, longest first."""

NARROWEST = 10
"""Characters of a bar in a narrow terminal."""


class Swing(NamedTuple):
    """One assumption: its value and range in words, and the time (seconds) at both ends. share: of the variance;
    decides: of the draws in which it decides which setting is recommended."""

    name: str
    value: str
    range: str
    low_s: float
    high_s: float
    share: float | None
    decides: float | None = None

    @property
    def reach(self) -> float:
        """The difference between its two times in seconds."""
        return abs(self.high_s - self.low_s)

    @property
    def title(self) -> str:
        """Its name, which says whether it is an assumption of rivals: it decides, but moves this time by nothing."""
        return f"{self.name} (of rivals)" if self.decides and self.reach == 0.0 else self.name


class Tornado(NamedTuple):
    """The assumptions that change the time, largest effect first, and the time itself (seconds)."""

    center_s: float
    swings: tuple[Swing, ...]
    still: tuple[str, ...]
    """Names of the assumptions without effect."""


def tornado_data(answer: WhatIf) -> Tornado:
    """The effects of the answer's assumptions on the recommended setting."""
    center = answer.recommendation.row.iteration_s
    swings = [
        Swing(
            plain(assumption.name),
            plain(assumption.value),
            range_of(assumption),
            assumption.iteration_s_low,
            assumption.iteration_s_high,
            assumption.share,
            assumption.decides,
        )
        for assumption in answer.certainty.assumptions
    ]
    return _sorted(center, swings)


def _sorted(center: float, swings: Sequence[Swing]) -> Tornado:
    """The assumptions that change the time or the decision; others are listed by name only."""
    moved = [swing for swing in swings if swing.reach >= 1e-3 * center or swing.decides]
    still = tuple(swing.name for swing in swings if swing not in moved)
    return Tornado(center, tuple(sorted(moved, key=lambda swing: -swing.reach)), still)


def tornado_of_advice(advice: Advice) -> Tornado:
    """A recommendation's knobs over their requested values, and its assumptions, in seconds of the compared time."""
    swings = [
        Swing(f"knob {plain(knob.knob)}", plain(knob.value), plain(f"{knob.low} to {knob.high}"),
              knob.seconds_low, knob.seconds_high, None)
        for knob in advice.knobs
    ]  # fmt: skip
    swings += [
        Swing(plain(assumption.name), plain(assumption.value), range_of(assumption),
              *assumption.ends, assumption.share)
        for assumption in advice.assumptions
    ]  # fmt: skip
    return _sorted(advice.choice.seconds, swings)


def tornado_figure(tornado: Tornado) -> Figure:
    """One bar per assumption from its low to its high time, longest first; the line is the answer's time."""
    import plotly.graph_objects as go

    shown = [swing for swing in tornado.swings if swing.reach][:MOST_BARS]
    unit = time_unit(max([tornado.center_s, *(max(swing.low_s, swing.high_s) for swing in shown)]))
    places = places_of([(swing.title, swing.range) for swing in shown], THICK + SPACE)
    figure = go.Figure()
    for index, swing in enumerate(shown):
        low, high = sorted((swing.low_s, swing.high_s))
        knob = swing.name.startswith("knob ")
        figure.add_bar(
            orientation="h",
            y=[places[index + 1] - SPACE - THICK],
            base=[low / unit.size],
            x=[(high - low) / unit.size],
            width=THICK,
            offset=0,
            marker={"color": LIGHT.compute if knob else LIGHT.assumption, "line": {"width": 0}},
            customdata=[
                f"{escaped(swing.title)} {escaped(swing.value)} ({escaped(swing.range)})"
                f"<br>{format_seconds(swing.low_s)} to {format_seconds(swing.high_s)}"
            ],
            hovertemplate="%{customdata}<extra></extra>",
        )
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", yanchor="bottom", showarrow=False,
            y=places[index + 1] - SPACE - THICK - 2,
            text=label_text(escaped(swing.title), swing.title, swing.range), align="left",
            font={"size": 13},
        )  # fmt: skip
    figure.update_layout(**layout(f"Time ({unit.name})", height=80 + places[-1]), barmode="overlay")
    figure.add_vline(x=tornado.center_s / unit.size, line={"color": LIGHT.ink, "width": 1.5})
    figure.update_yaxes(range=[places[-1], 0], showticklabels=False, showgrid=False)
    return figure


def tornado_lines(tornado: Tornado, width: int) -> list[str]:
    """One line per assumption with an effect: its range, both times, and a bar; `|` marks the answer's time.

    With enough space, there are also its shares of the variance and of the draws in which it decides between settings.
    """
    if not tornado.swings:
        return ["no assumption changes the time by 0.1 % or more"] * bool(tornado.still)
    times = [time for swing in tornado.swings for time in (swing.low_s, swing.high_s)]
    ends = min(*times, tornado.center_s), max(*times, tornado.center_s)
    swings, roomy = tornado.swings, width >= ROOMY
    columns = {"assumption": [fold(swing.title, max(12, width // 4)) for swing in swings]}
    if roomy:
        columns["value (range)"] = [fold(f"{swing.value} ({swing.range})", width // 3) for swing in swings]
    columns["at low .. high end"] = [
        f"{format_seconds(swing.low_s)} .. {format_seconds(swing.high_s)}" for swing in swings
    ]
    if roomy:
        columns["variance"] = [_percent(swing.share) for swing in swings]
        if any(swing.decides is not None for swing in swings):
            columns["decides"] = [_percent(swing.decides) for swing in swings]
    room = max(NARROWEST, width - max(map(len, _lines(columns))) - 2)
    lines = _lines(columns | {"time": [_bar(swing, tornado.center_s, ends, room) for swing in swings]})
    still = f"less than 0.1 % each: {', '.join(tornado.still)}"
    return lines + (wrap(still, width - 2, break_on_hyphens=False) if tornado.still else []) + _first(tornado, width)


def _first(tornado: Tornado, width: int) -> list[str]:
    """What to measure first to know the time, and to be sure of the recommendation; empty where nothing decides it."""
    sure = max(tornado.swings, key=lambda swing: swing.decides or 0.0)
    if not sure.decides:
        return []
    most = max(tornado.swings, key=lambda swing: swing.share or 0.0)
    decides = f"decides in {_percent(sure.decides)} of the draws"
    text = f"to be sure of the choice, measure {sure.name}: it {decides}"
    if most is sure:
        text = (
            f"to know the time and to be sure of the choice, measure {sure.name}: it moves the time most and {decides}"
        )
    elif most.share:
        text = f"to know the time, measure {most.name}; {text}"
    return wrap(text, width - 2, break_on_hyphens=False)


def _percent(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.0f}%"


def _lines(columns: Mapping[str, Sequence[str]]) -> list[str]:
    rows = list(zip(*columns.values(), strict=True))
    return aligned(rows, list(columns), left=[head not in ("variance", "decides") for head in columns], width=UNLIMITED)


def _bar(swing: Swing, center: float, ends: tuple[float, float], room: int) -> str:
    """The range of one assumption on the common scale."""
    wide = (ends[1] - ends[0]) or 1.0
    place = {
        time: min(room - 1, round((time - ends[0]) / wide * (room - 1))) for time in (swing.low_s, swing.high_s, center)
    }
    first, last = sorted((place[swing.low_s], place[swing.high_s]))
    bar = ["#" if first <= k <= last else " " for k in range(room)]
    bar[place[center]] = "|"
    return "".join(bar)
