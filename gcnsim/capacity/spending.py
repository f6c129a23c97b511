"""A budget of money over time, as people have it: 500 USD a month, at 8 hours of use a day."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from gcnsim.errors import ScenarioError, nearest
from gcnsim.fields import shown
from gcnsim.hardware import Exchange, amount_in

HOUR: Final = "hour"
DAYS: Final = {"day": 1.0, "month": 365.0 / 12.0, "year": 365.0}
"""Days of a period: a month is a twelfth of a year, 730 hours, as clouds count."""

NAMES: Final = {
    **dict.fromkeys(("h", "hr", HOUR), HOUR),
    **dict.fromkeys(("d", "day"), "day"),
    **dict.fromkeys(("mo", "month"), "month"),
    **dict.fromkeys(("y", "yr", "year"), "year"),
}
USUAL_HOURS: Final = 24.0

_PATTERN: Final = re.compile(r"\s*([0-9.]+(?:[eE][+-]?\d{1,3})?\s*[A-Za-z]{3})\s*/\s*([A-Za-z]+)\s*")


@dataclass(frozen=True, slots=True)
class Budget:
    """At most `amount` (in `currency`) each `period` (hour, day, month or year), of `hours_per_day` hours of use a
    day."""

    amount: float
    currency: str
    period: str
    hours_per_day: float = USUAL_HOURS

    @property
    def hours(self) -> float:
        """Hours of use in a period."""
        return 1.0 if self.period == HOUR else DAYS[self.period] * self.hours_per_day

    @property
    def per_hour(self) -> float:
        """What an hour of use may cost at most."""
        return self.amount / self.hours

    def text_of(self, per_hour: float) -> str:
        """What a machine of this price costs in a period of the budget."""
        return f"{_money(per_hour * self.hours)} {self.currency} {self._each}"

    @property
    def text(self) -> str:
        """The budget in words."""
        hour = "" if self.period == HOUR else f" ({_money(self.per_hour)} {self.currency} an hour)"
        return f"{self.amount:,.10g} {self.currency} {self._each}{hour}"

    @property
    def _each(self) -> str:
        if self.period == HOUR:
            return "an hour"
        used = "" if self.hours_per_day == USUAL_HOURS else f" at {self.hours_per_day:g} hours a day"
        return f"a {self.period}{used}"


def read_budget(text: object, hours_per_day: object, exchange: Exchange) -> Budget | None:
    """The budget that `text` states (500USD/month, 10EUR/hour); None where there is none.

    hours_per_day: of use, None for all 24. The amount is converted to the currency of `exchange`. Raises ScenarioError.
    """
    if text is None:
        if hours_per_day is not None:
            raise ScenarioError("--hours-per-day: says how far a budget goes; give --budget, e.g. 500USD/month")
        return None
    found = _PATTERN.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ScenarioError(f"--budget: {shown(text)} is not money over time; write e.g. 500USD/month, 2EUR/hour")
    unit = found[2].lower()
    if unit not in NAMES:
        hint = nearest(unit, sorted(set(NAMES.values())))
        raise ScenarioError(f"--budget: {shown(text)}: unknown time {found[2]!r}; {hint}")
    amount = amount_in(found[1], "--budget", exchange, per_hour=False)
    if amount <= 0:
        raise ScenarioError(f"--budget: {shown(text)} is not allowed; an amount above 0")
    return Budget(amount, exchange.currency, NAMES[unit], _hours(hours_per_day, NAMES[unit]))


def _hours(value: object, period: str) -> float:
    if value is None:
        return USUAL_HOURS
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= USUAL_HOURS:
        raise ScenarioError(f"--hours-per-day: {value!r} is not allowed; hours above 0 and at most 24")
    if period == HOUR:
        raise ScenarioError("--hours-per-day: changes nothing of a budget an hour; give --budget a day, month or year")
    return float(value)


def _money(value: float) -> str:
    return f"{value:,.2f}" if value >= 0.0995 else f"{value:.2g}"
