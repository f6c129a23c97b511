"""How far off predictions of recorded runs are, by configuration: the error of each run, and their mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.report.answer.provenance import plain
from gcnsim.report.figures.style import cut, layout, said
from gcnsim.report.figures.validation import marks_of
from gcnsim.report.palette import LIGHT, Theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

LETTERS: Final = 44
MOST_SHOWN: Final = 24
"""Configurations that are drawn, the worst first."""


class Judged(NamedTuple):
    """The runs of one configuration of one setting. errors: (predicted - measured) / measured of each."""

    setting: str
    configuration: str
    errors: tuple[float, ...]
    covered: tuple[bool | None, ...]

    @property
    def mean(self) -> float:
        """The mean of their errors."""
        return fmean(self.errors)


@dataclass(frozen=True, slots=True)
class Errors:
    """Configurations, that with the largest mean error first. left_out: how many have smaller ones than those."""

    judged: tuple[Judged, ...]
    left_out: int


def errors_data(payload: Mapping[str, Any]) -> Errors:
    """The configurations of a payload of `gcnsim.validation/1`."""
    held: dict[tuple[str, str], list[tuple[float, bool | None]]] = {}
    for row in payload["rows"]:
        held.setdefault((row["setting"], row["configuration"]), []).append((row["error"], row["covered"]))
    every = [
        Judged(plain(setting), plain(configuration), *map(tuple, zip(*found, strict=True)))
        for (setting, configuration), found in held.items()
    ]
    every.sort(key=lambda each: -abs(each.mean))
    return Errors(tuple(every[:MOST_SHOWN]), max(0, len(every) - MOST_SHOWN))


def errors_figure(data: Errors, theme: Theme = LIGHT) -> Figure:
    """A row per configuration: a bar to the mean error, a mark for each run, another where its interval misses."""
    import plotly.graph_objects as go

    figure = go.Figure()
    for place, each in enumerate(data.judged):
        told = f"{said(each.setting)}<br>{said(each.configuration)}<br>mean {100 * each.mean:+.1f} %"
        figure.add_bar(
            orientation="h", y=[place], x=[100 * each.mean], width=0.3, offset=0.02, customdata=[told],
            marker={"color": theme.idle, "line": {"width": 0}}, hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=place - 0.04, yanchor="bottom", showarrow=False,
            text=f"{100 * each.mean:+.1f} % <span style='color:{theme.muted};font-size:12px'>{_named(each)}</span>",
            font={"size": 13},
        )  # fmt: skip
    for covered, (color, symbol, name) in marks_of(theme).items():
        marks = [
            (place + 0.17, each, error)
            for place, each in enumerate(data.judged)
            for error, inside in zip(each.errors, each.covered, strict=True)
            if inside is covered
        ]
        if not marks and covered is None:
            continue
        figure.add_scatter(
            x=[100 * error for _, _, error in marks], y=[place for place, _, _ in marks], mode="markers",
            marker={"color": color, "symbol": symbol, "size": 9},
            name=name,
            customdata=[f"{said(each.setting)}<br>{said(each.configuration)}<br>{100 * error:+.1f} %"
                        for _, each, error in marks],
            hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
    height = 80 + 46 * len(data.judged)
    figure.update_layout(**layout(theme, "Predicted less measured (% of measured)", height=height), barmode="overlay")
    figure.add_vline(x=0, line={"color": theme.ink, "width": 1.5})
    figure.update_yaxes(range=[len(data.judged) - 0.4, -0.7], showticklabels=False, showgrid=False)
    return figure


def _named(each: Judged) -> str:
    """A configuration with its graph, as long as a phone has room for."""
    return said(cut(f"{each.setting.partition(',')[0]}: {each.configuration}", LETTERS))
