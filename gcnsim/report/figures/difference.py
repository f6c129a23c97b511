"""The difference between two iterations by part: a bar to the right if B takes longer, to the left if it takes less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from gcnsim.core.units import format_seconds
from gcnsim.evidence.difference import PARTS as NAMES
from gcnsim.report.figures.breakdown import PARTS
from gcnsim.report.figures.style import layout, time_unit
from gcnsim.report.palette import LIGHT, Theme

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

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


def difference_figure(data: DifferenceData, theme: Theme = LIGHT) -> Figure:
    """One bar per part from zero, and one for the whole iteration below."""
    import plotly.graph_objects as go

    figure = go.Figure()
    rows = [
        (change.name, change.seconds, theme.color(PARTS[change.part][1]), _hover(change, data.per))
        for change in data.changes
    ]
    whole = f"{data.per}: {_signed(data.whole_s)}"
    rows.append((f"the whole {data.per}", data.whole_s, theme.ink, whole))
    for index, (name, seconds, color, hover) in enumerate(rows):
        figure.add_bar(
            orientation="h", y=[index], x=[seconds / data.unit_s], width=0.42, offset=-0.02,
            marker={"color": color, "line": {"width": 0}}, name=name,
            customdata=[hover], hovertemplate="%{customdata}<extra></extra>",
        )  # fmt: skip
        figure.add_annotation(
            x=0, xref="paper", xanchor="left", y=index - 0.08, yanchor="bottom", showarrow=False,
            text=f"{name} <span style='color:{theme.muted};font-size:12px'>{_signed(seconds)}</span>",
            font={"size": 13},
        )  # fmt: skip
    title = f"Difference (B minus A), time per {data.per} ({data.unit})"
    figure.update_layout(**layout(theme, title, height=80 + 46 * len(rows)), barmode="overlay")
    figure.add_vline(x=0, line={"color": theme.ink, "width": 1.5})
    figure.update_yaxes(range=[len(rows) - 0.4, -0.7], showticklabels=False, showgrid=False)
    return figure


def _hover(change: PartChange, per: str) -> str:
    return (
        f"{change.name}<br>A {format_seconds(change.a_s)}, B {format_seconds(change.b_s)} per {per}"
        f"<br>{_signed(change.seconds)}"
    )


def _signed(seconds: float) -> str:
    return f"{'-' if seconds < 0 else '+'}{format_seconds(abs(seconds))}"
