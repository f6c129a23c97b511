"""What a bought and a rented machine have cost by month, and where their lines cross."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from gcnsim.report.figures.style import layout
from gcnsim.report.palette import LIGHT, faded
from gcnsim.results import EnergyReport

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


OWNED: Final = (
    "What the recommended machine has cost by month: bought, with electricity and its 90 % interval, and rented."
)
PAYS: Final = "The dotted line marks when buying pays off."


class Owning(NamedTuple):
    """Cost from the first month to the end of the machine's life. bought, low, high, rented: at both ends; even: months
    to break even, None if that is later."""

    months: tuple[float, float]
    bought: tuple[float, float]
    low: tuple[float, float]
    high: tuple[float, float]
    rented: tuple[float, float]
    even: float | None
    currency: str

    @property
    def caption(self) -> str:
        """What is drawn, in words."""
        return OWNED if self.even is None else f"{OWNED} {PAYS}"

    @property
    def legend(self) -> list[tuple[str, str, bool]]:
        """Names of the lines, their colours in a theme, and that they are not hatched."""
        return [("bought", "recommended", False), ("rented", "compute", False)]


def owning_of(report: EnergyReport | None, index: int | None = 0) -> Owning | None:
    """Of the row `index`, None: of the recommended setting that is no row; None if a price is missing, or if a rented
    training practically never ends."""
    row = None if report is None else report.recommended if index is None else report.rows[index]
    if report is None or row is None or row.own is None:
        return None
    own, rent, hours = row.own, row.own.rented_per_hour, row.own.life_months * row.own.hours_per_month
    if rent is None or own.rented_hours is None:
        return None
    ends = (own.owned_per_hour, own.owned_per_hour_low, own.owned_per_hour_high)
    bought, low, high = ((own.purchase, each * hours) for each in ends)
    even = own.months if own.months is not None and own.months <= own.life_months else None
    return Owning((0.0, own.life_months), bought, low, high, (0.0, rent * hours), even, report.currency)


def owning_figure(data: Owning) -> Figure:
    """Two lines, a band for the electricity of the bought machine, and the month in which they cross."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_scatter(
        x=[*data.months, *data.months[::-1]],
        y=[*data.low, *data.high[::-1]],
        mode="lines",
        fill="toself",
        fillcolor=faded(LIGHT.recommended),
        line={"width": 0},
        hoverinfo="skip",
    )
    for name, values, color in (
        ("bought", data.bought, LIGHT.recommended),
        ("rented", data.rented, LIGHT.compute),
    ):
        figure.add_scatter(
            x=data.months,
            y=values,
            name=name,
            mode="lines",
            line={"color": color, "width": 2.5},
            hovertemplate=f"{name}: %{{y:,.0f}} {data.currency} after %{{x:.0f}} months<extra></extra>",
        )
    figure.update_layout(**layout("Months", f"Cost until then ({data.currency})", height=360))
    if data.even is not None:
        figure.add_vline(x=data.even, line={"color": LIGHT.ink, "width": 1, "dash": "dot"})
    return figure
